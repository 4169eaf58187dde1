"""Dense embeddings of a study's row, a split at a time: of a run's best encoder, or given by a user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.encoders.encode import encode_collection, metadata_of, stored_collection
from diptych.studies.plan import Plan
from diptych.studies.sources import Subject, given_name, mark_given
from diptych.studies.study import Row

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.training.sections import Data


@dataclass(frozen=True)
class DenseRows:
    """Embeddings of a collection, which heads and searches start from."""

    folder: Path  # of the row
    collection: Collection  # all splits
    data: Data  # names of the splits
    source: str  # what was given; empty of what was trained
    encoded: Callable[[str], EncodedCollection]  # embeddings of a split

    @property
    def splits(self) -> tuple[str, str, str]:
        return self.data.train, self.data.validation, self.data.test


def encode_split(encoder: DualEncoder, collection: Collection, folder: Path, split: str) -> EncodedCollection:
    """Embed a split into the folder of a row, or open what is there."""
    kept = folder / "embeddings" / safe_name(f"{collection.name}-{split}")
    return encode_collection(encoder, collection.split(split), kept, split)


def encoded_split(
    subject: Subject, split: str, encoder: DualEncoder | None = None, *, kept: bool = False
) -> EncodedCollection:
    """Return embeddings of a split by an encoder, a run's best unless another is given.

    Of a run on cached features they are made of those of the central crop, in single precision whatever training
    used, as the encoder makes them of the images; they are written to the run's folder where ``kept``.
    """
    run, part = subject.run, subject.collection.split(split)
    name = f"{part.name}-{split}" if encoder is None else f"{part.name}-{split}-{encoder.fingerprint}"
    folder = run.folder / "embeddings" / safe_name(name)
    encoder = encoder or DualEncoder.load(run.best)
    if run.recipe.features is None:
        return encode_collection(encoder, part, folder, split)
    if not kept:
        return _of_features(encoder, part, split, subject.features)
    if stored_collection(encoder, part, folder, split) is None:
        _of_features(encoder, part, split, subject.features).save(folder)
    return EncodedCollection.open(folder)


def _of_features(encoder: DualEncoder, part: Collection, split: str, features: Path) -> EncodedCollection:
    from diptych.encoders.image_tower import FeatureOptions, FeatureStore, ImageTower
    from diptych.encoders.two_tower import TwoTowerEncoder

    assert isinstance(encoder, TwoTowerEncoder)
    assert isinstance(encoder.model.image, ImageTower)
    store = FeatureStore.of(encoder.model.image, part, features, FeatureOptions())
    metadata = metadata_of(encoder, part, split)
    rows = {
        "image": (part.image_ids, encoder.project_features(store.rows[:, 0])),
        "text": (part.caption_ids, encoder.encode_texts(part.captions)),
    }
    images, texts = (
        Embeddings(ids, values, encoder.fingerprint, metadata["data"], kind, metadata, encoder.similarity)
        for kind, (ids, values) in rows.items()
    )
    return EncodedCollection(images, texts, part.caption_image, metadata)


def rows_of(subject: Subject) -> DenseRows:
    """Return the embeddings of a dense row: those that were given, or by its run, which are kept."""
    if isinstance(run := subject.run, DenseRows):
        return run
    return DenseRows(
        run.folder, subject.collection, run.recipe.data, "", partial(encoded_split, subject, kept=True)
    )


def dense_rows(plan: Plan, row: Row) -> DenseRows:
    """Return the embeddings of a row: those of its finished run, or those that a user gives."""
    from diptych.training.run import Run

    if not plan.is_given(row):
        run = Run.open(plan.target(row))
        return rows_of(Subject(run, plan.collections.of(run.recipe.data), plan.features))
    encoded: Callable[[str], EncodedCollection]
    data, source, target = plan.data_of(row), given_name(plan, row), plan.target(row)
    collection, path = plan.collections.of(data), Path(source).expanduser()
    folders = (path, *(path / safe_name(split) for split in (data.train, data.validation, data.test)))
    if any(_holds_embeddings(folder) for folder in folders):
        encoded = partial(_given_split, path, collection)
        mark = encoded(data.test).images.encoder
    else:
        encoder = DualEncoder.load(source)
        encoded = partial(encode_split, encoder, collection, target)
        mark = encoder.fingerprint
    return DenseRows(target, collection, data, f"{source} (fingerprint {mark})", encoded)


def given_rows(plan: Plan, row: Row, what: str) -> Subject:
    """Take the run, encoder or embeddings that a user gives for a row."""
    rows = dense_rows(plan, row)
    test = rows.encoded(rows.data.test)
    captions = [rows.collection.split(split).text_fingerprint for split in rows.splits]
    marks = {"fingerprint": test.images.encoder, "data": fingerprint(test.about["data"], captions)}
    mark_given(plan, row, rows.source, marks, what)
    return Subject(
        rows,
        rows.collection,
        plan.features,
        plan.choices.positives,
        state=tuple(marks.values()),
        given=rows.source,
    )


def _holds_embeddings(folder: Path) -> bool:
    return (folder / "images" / "embeddings.json").is_file()


def _given_split(path: Path, collection: Collection, split: str) -> EncodedCollection:
    """Return a split's embeddings of a folder that has one folder per split, or all of them and perhaps more."""
    folder, part = path / safe_name(split), collection.split(split)
    whole = EncodedCollection.open(folder if _holds_embeddings(folder) else path)
    fix = "give the embeddings of this collection's splits: diptych embed"
    images = whole.images.select(part.image_ids, str(path), fix)
    texts = whole.texts.select(part.caption_ids, str(path), fix)
    metadata = {**whole.about, "dataset": part.name, "split": split}
    return EncodedCollection(images, texts, part.caption_image, metadata)
