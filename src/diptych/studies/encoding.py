"""A run's encoder on one split, from cached features where the run has them.

The backbone of a run with cached features is frozen and the same in every row and seed of a study:
its features of the test split are computed once for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from diptych.studies.measurement import Subject

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.encoded import EncodedCollection


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


def kept_split(subject: Subject, split: str) -> EncodedCollection:
    """As :func:`encoded_split`, and kept in the run's folder: what is there already is opened."""
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.encoded import EncodedCollection

    run = subject.run
    if run.recipe.features is None:
        return encoded_split(subject, split)
    part = subject.collection.split(split)
    folder = run.folder / "embeddings" / f"{part.name}-{split}"
    about = _about(DualEncoder.load(run.best), part, split)
    if EncodedCollection.is_at(folder):
        found = EncodedCollection.open(folder)
        if found.about == about:
            return found
    encoded_split(subject, split).save(folder)
    return EncodedCollection.open(folder)


def _about(encoder: DualEncoder, part: Collection, split: str) -> dict[str, Any]:
    """As :func:`diptych.encoders.encode.encode_collection` describes what it makes."""
    from diptych.core.fingerprint import fingerprint
    from diptych.data.contents import picture_contents

    return {
        "dataset": part.name,
        "split": split,
        "data": fingerprint(part.text_fingerprint, picture_contents(part)),
        "encoder": encoder.describe(),
        "notes": list(part.notes),
    }


def _from_features(encoder: DualEncoder, subject: Subject, split: str) -> EncodedCollection:
    from diptych.encoders.embeddings import Embeddings
    from diptych.encoders.encoded import EncodedCollection
    from diptych.encoders.image_tower import ImageTower
    from diptych.encoders.store import FeatureOptions, FeatureStore
    from diptych.encoders.two_tower import TwoTowerEncoder

    assert isinstance(encoder, TwoTowerEncoder)
    assert isinstance(encoder.model.image, ImageTower)
    part = subject.collection.split(split)
    store = FeatureStore.of(encoder.model.image, part, subject.features, FeatureOptions())
    about = _about(encoder, part, split)
    rows = {
        "image": (part.image_ids, encoder.project_features(store.rows[:, 0])),
        "text": (part.caption_ids, encoder.encode_texts(part.captions)),
    }
    images, texts = (
        Embeddings(ids, values, encoder.fingerprint, about["data"], kind, about, encoder.similarity)
        for kind, (ids, values) in rows.items()
    )
    return EncodedCollection(images, texts, part.caption_image, about)
