"""Dense rows of a row of a study, a split at a time: of a run's best encoder, or given by a user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.studies.plan import Plan
from diptych.studies.sources import Subject, given_name, load_encoder, mark_given
from diptych.studies.study import Row

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import Embeddings, EncodedCollection
    from diptych.training.sections import Data


@dataclass(frozen=True)
class DenseRows:
    """Dense rows of a collection.

    Attributes:
        folder: of the row.
        collection: all splits.
        data: names of the splits.
        source: what was given; empty of what was trained.
        encoded: rows of a split.
    """

    folder: Path
    collection: Collection
    data: Data
    source: str
    encoded: Callable[[str], EncodedCollection]

    @property
    def splits(self) -> tuple[str, str, str]:
        """What is trained on, validated and tested on."""
        return self.data.train, self.data.validation, self.data.test


def encoded_split(subject: Subject, split: str, encoder: DualEncoder | None = None) -> EncodedCollection:
    """Return rows of an encoder, the best unless another is given, for all pictures and captions of ``split``.

    Features are those of the central crop, in single precision whatever training used, so that the
    rows are those that the encoder gives for the pictures.
    """
    from diptych.encoders.encode import encode_collection

    run, part = subject.run, subject.collection.split(split)
    kept = _embeddings(run.folder, part, split if encoder is None else f"{split}-{encoder.fingerprint}")
    encoder = encoder or load_encoder(str(run.best))
    if run.recipe.features is None:
        return encode_collection(encoder, part, kept, split)
    return _from_features(encoder, subject, split)


def kept_split(subject: Subject, split: str) -> EncodedCollection:
    """Return the same, kept in the run's folder: what is there already is opened."""
    from diptych.encoders.embeddings import EncodedCollection

    run, part = subject.run, subject.collection.split(split)
    folder = _embeddings(run.folder, part, split)
    if run.recipe.features is None:
        return encoded_split(subject, split)
    if EncodedCollection.is_at(folder):
        found = EncodedCollection.open(folder)
        if found.about == _about(load_encoder(str(run.best)), part, split):
            return found
    encoded_split(subject, split).save(folder)
    return EncodedCollection.open(folder)


def dense_of(subject: Subject, split: str) -> EncodedCollection:
    """Return a split's rows of whatever a dense row is: a run, or rows that were given."""
    return subject.run.encoded(split) if isinstance(subject.run, DenseRows) else encoded_split(subject, split)


def dense_rows(plan: Plan, row: Row) -> DenseRows:
    """Return the dense rows of a row that is there."""
    if plan.is_given(row):
        return _given(plan, row)
    from diptych.training.run import Run

    run = Run.open(plan.target(row))
    collection = plan.collections.of(run.recipe.data)
    subject = Subject(run, collection, plan.features)
    return DenseRows(run.folder, collection, run.recipe.data, "", lambda split: kept_split(subject, split))


def given_rows(plan: Plan, row: Row, what: str) -> Subject:
    """Take the run, encoder or embeddings that a user gives for a row."""
    rows = _given(plan, row)
    test = rows.encoded(rows.data.test)
    captions = [rows.collection.split(split).text_fingerprint for split in rows.splits]
    about = {"fingerprint": test.images.encoder, "data": fingerprint(test.about["data"], captions)}
    mark_given(plan, row, rows.source, about, what)
    return Subject(
        rows,
        rows.collection,
        plan.features,
        plan.choices.positives,
        state=tuple(about.values()),
        given=rows.source,
    )


def _given(plan: Plan, row: Row) -> DenseRows:
    from diptych.encoders.encode import encode_collection

    data, source, target = _data_of(plan, row), given_name(plan, row), plan.target(row)
    collection, path = plan.collections.of(data), Path(source).expanduser()
    places = (path, *(path / safe_name(split) for split in (data.train, data.validation, data.test)))
    if any((place / "images" / "embeddings.json").is_file() for place in places):

        def encoded(split: str) -> EncodedCollection:
            return _of_embeddings(path, collection, split)

        mark = encoded(data.test).images.encoder
    else:
        encoder = load_encoder(source)
        mark = encoder.fingerprint

        def encoded(split: str) -> EncodedCollection:
            part = collection.split(split)
            return encode_collection(encoder, part, _embeddings(target, part, split), split)

    return DenseRows(target, collection, data, f"{source} (fingerprint {mark})", encoded)


def _data_of(plan: Plan, row: Row) -> Data:
    """Return the data that was chosen, else what the setting trains the row on."""
    from diptych.training.sections import Data

    if row.recipe in plan.setting.recipes:
        return plan.recipe_of(row).data
    if plan.choices.data is None:
        raise UsageError("no data given", "give a dataset with --data")
    return Data.model_validate(plan.choices.data)


def _embeddings(folder: Path, part: Collection, split: str) -> Path:
    return folder / "embeddings" / safe_name(f"{part.name}-{split}")


def _about(encoder: DualEncoder, part: Collection, split: str) -> dict[str, Any]:
    """Return what :func:`diptych.encoders.encode.encode_collection` says of what it makes."""
    from diptych.data.loading import picture_contents

    return {
        "dataset": part.name,
        "split": split,
        "data": fingerprint(part.text_fingerprint, picture_contents(part)),
        "encoder": encoder.describe(),
        "notes": list(part.notes),
    }


def _from_features(encoder: DualEncoder, subject: Subject, split: str) -> EncodedCollection:
    from diptych.encoders.embeddings import Embeddings, EncodedCollection
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


def _of_embeddings(path: Path, collection: Collection, split: str) -> EncodedCollection:
    """Return a split's rows of a folder that holds them, or more."""
    from diptych.encoders.embeddings import EncodedCollection

    own = path / safe_name(split)
    whole = EncodedCollection.open(own if (own / "images" / "embeddings.json").is_file() else path)
    part = collection.split(split)
    images = taken(whole.images, part.image_ids, str(path))
    texts = taken(whole.texts, part.caption_ids, str(path))
    return EncodedCollection(
        images, texts, part.caption_image, {**whole.about, "dataset": part.name, "split": split}
    )


def taken(rows: Embeddings, ids: Sequence[str], where: str = "") -> Embeddings:
    """Return the rows of ``ids``, in that order; not copied where they are all there are."""
    if list(rows.ids) == list(ids):
        return rows
    places = {name: place for place, name in enumerate(rows.ids)}
    missing = [name for name in ids if name not in places]
    if missing:
        raise MismatchError(
            f"{where} has no rows of {len(missing):,} of {len(ids):,} {rows.kind}s, the first: {missing[0]!r}",
            "give the embeddings of this collection's splits: diptych embed",
        )
    chosen = np.asarray(rows.rows)[np.array([places[name] for name in ids], dtype=np.int64)]
    return replace(rows, ids=list(ids), rows=chosen)
