"""A run's encoder on one split, from cached features where the run has them.

The backbone of a run with cached features is frozen and the same in every row and seed of a study:
its features of the test split are computed once for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.studies.study import Subject

if TYPE_CHECKING:
    from diptych.encoders.encode import EncodedCollection

__all__ = ["encoded_split"]


def encoded_split(subject: Subject, split: str) -> EncodedCollection:
    """Rows of the best encoder for all pictures and captions of ``split``.

    Features are those of the central crop, in single precision whatever training used, so that the
    rows are those that the encoder gives for the pictures.
    """
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.encode import encode_collection

    run, part = subject.run, subject.collection.split(split)
    encoder = DualEncoder.load(run.best)
    if run.recipe.features is None:
        folder = run.folder / "embeddings" / f"{part.name}-{split}"
        return encode_collection(encoder, part, folder, split)
    return _from_features(encoder, subject, split)


def _from_features(encoder: object, subject: Subject, split: str) -> EncodedCollection:
    from diptych.core.fingerprint import fingerprint
    from diptych.data.contents import picture_contents
    from diptych.encoders.embeddings import Embeddings
    from diptych.encoders.encode import EncodedCollection
    from diptych.encoders.image_tower import ImageTower
    from diptych.encoders.store import FeatureOptions, FeatureStore
    from diptych.encoders.two_tower import TwoTowerEncoder

    assert isinstance(encoder, TwoTowerEncoder)
    assert isinstance(encoder.model.image, ImageTower)
    part = subject.collection.split(split)
    store = FeatureStore.of(encoder.model.image, part, subject.features, FeatureOptions())
    data = fingerprint(part.text_fingerprint, picture_contents(part))
    about = {
        "dataset": part.name,
        "split": split,
        "data": data,
        "encoder": encoder.describe(),
        "notes": list(part.notes),
    }
    rows = {
        "image": (part.image_ids, encoder.project_features(store.rows[:, 0])),
        "text": (part.caption_ids, encoder.encode_texts(part.captions)),
    }
    images, texts = (
        Embeddings(ids, values, encoder.fingerprint, data, kind, about, encoder.similarity)
        for kind, (ids, values) in rows.items()
    )
    return EncodedCollection(images, texts, part.caption_image, about)
