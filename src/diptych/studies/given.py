"""Rows that are published encoders, measured as they are: which encoder a person gives for one, and the encoder
of whatever a row is.

::

    rows/ROW/seed-N/
      given.json     what was given, and its fingerprint: another one is refused
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import safe_name, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_json
from diptych.studies.making import Collections, Machine, Made, Wanted, logger
from diptych.studies.rows import recipe_of, refuse_recipe_keys
from diptych.studies.study import Subject

if TYPE_CHECKING:
    import numpy as np

    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import Embeddings, EncodedCollection
    from diptych.training.run import Run
    from diptych.training.sections import Data


_FILE = "given.json"


@dataclass(frozen=True)
class GivenEncoder:
    """An encoder that is given for a row, loaded when it is first needed."""

    folder: Path
    source: str
    device: str | None = None

    @property
    def place(self) -> str | Path:
        """Where the encoder is; of a run, its best."""
        best = Path(self.source).expanduser() / "best"
        return best if (best / "diptych.json").is_file() else self.source

    def check(self) -> None:
        """See that it can be loaded: the rows before it may be measured for hours."""
        from diptych.encoders.dual_encoder import DualEncoder

        DualEncoder.load(self.place, device="cpu")

    @cached_property
    def encoder(self) -> DualEncoder:
        """The encoder."""
        from diptych.encoders.dual_encoder import DualEncoder

        return DualEncoder.load(self.place, device=self.device)


def encoder_of(run: Run | GivenEncoder) -> DualEncoder:
    """The encoder that a row is: a run's best, or the one that is given."""
    from diptych.encoders.dual_encoder import DualEncoder

    return run.encoder if isinstance(run, GivenEncoder) else DualEncoder.load(run.best)


def given_encoder(wanted: Wanted, accelerator: str = "auto") -> GivenEncoder:
    """What a person gives for a row."""
    device = None if accelerator == "auto" else accelerator
    return GivenEncoder(wanted.target, str(wanted.choices.values[wanted.row.given]), device)


def make_encoder(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Take the encoder that the person gives, or that the setting names."""
    refuse_recipe_keys(wanted.study, wanted.row, wanted.choices.values)
    given = given_encoder(wanted, machine.accelerator)
    if (wanted.target / "run.json").is_file():
        raise UsageError(f"{wanted.target} has a training, not {given.source}", wanted.elsewhere)
    file = wanted.target / _FILE
    there = read_json(file) if file.is_file() else None
    mark = given.encoder.fingerprint
    if there is not None and there["fingerprint"] != mark:
        raise UsageError(
            f"{wanted.target} has {there['source']} (fingerprint {there['fingerprint']}), not "
            f"{given.source} ({mark})",
            wanted.elsewhere,
        )
    if there is None:
        write_json(file, {"source": given.source, "fingerprint": mark})
    logger.info(f"{wanted.what}: {'there already' if there else 'given'}")
    subject = Subject(given, None, machine.features_root, wanted.choices.positives)
    return Made(subject, ("given", mark), given=f"{given.source} (fingerprint {mark})")


def refuse_encoder(wanted: Wanted) -> None:
    """See that a row that is to be trained has not been given in an earlier call."""
    file = wanted.target / _FILE
    if file.is_file():
        raise UsageError(
            f"{wanted.target} has {read_json(file)['source']}, not a training",
            f"give it again with --set {wanted.row.given}=…, or {wanted.elsewhere}",
        )


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
        folder = run.folder / "embeddings" / safe_name(f"{part.name}-{split}")
        return encode_collection(encoder, part, folder, split)
    return _from_features(encoder, subject, split)


def kept_split(subject: Subject, split: str) -> EncodedCollection:
    """As :func:`encoded_split`, and kept in the run's folder: what is there already is opened."""
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import EncodedCollection

    run = subject.run
    if run.recipe.features is None:
        return encoded_split(subject, split)
    part = subject.collection.split(split)
    folder = run.folder / "embeddings" / safe_name(f"{part.name}-{split}")
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


_DENSE_FILE = "dense.json"


@dataclass(frozen=True)
class DenseRows:
    """Dense rows of a collection, a split at a time."""

    folder: Path
    collection: Collection
    data: Data
    source: str
    encoded: Callable[[str], EncodedCollection]

    @property
    def splits(self) -> tuple[str, str, str]:
        """What is trained on, validated and tested on."""
        return self.data.train, self.data.validation, self.data.test


def dense_rows(wanted: Wanted, collections: Collections, machine: Machine) -> DenseRows:
    """The dense rows of a row that is there."""
    if wanted.way == "given":
        return _given(wanted, collections)
    from diptych.training.run import Run

    run = Run.open(wanted.target)
    collection = collections.of(run.recipe.data)
    subject = Subject(run, collection, machine.features_root)
    return DenseRows(run.folder, collection, run.recipe.data, "", lambda split: kept_split(subject, split))


def dense_of(subject: Subject, split: str) -> EncodedCollection:
    """A split's rows of whatever a dense row is: a run, or rows that were given."""
    if isinstance(subject.run, DenseRows):
        return subject.run.encoded(split)
    return encoded_split(subject, split)


def make_given(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Take what the person gives."""
    refuse_recipe_keys(wanted.study, wanted.row, wanted.choices.values)
    rows = _given(wanted, collections)
    test = rows.encoded(rows.data.test)
    captions = [rows.collection.split(split).text_fingerprint for split in rows.splits]
    about = {"fingerprint": test.images.encoder, "data": fingerprint(test.about["data"], captions)}
    file = rows.folder / _DENSE_FILE
    there = read_json(file) if file.is_file() else None
    if there is None and (rows.folder / "run.json").is_file():
        raise UsageError(
            f"{rows.folder} has the rows of a training, not those of {rows.source}", wanted.elsewhere
        )
    for key, value in about.items():
        if there is not None and there.get(key) != value:
            raise UsageError(
                f"{rows.folder} has rows with {key} {there.get(key)}, those of {rows.source} have {value}",
                wanted.elsewhere,
            )
    if there is None:
        write_json(file, {"source": rows.source, **about})
    logger.info(f"{wanted.what}: {'there already' if there else 'given'}")
    subject = Subject(rows, rows.collection, machine.features_root, wanted.choices.positives)
    return Made(subject, tuple(about.values()), changed=(wanted.row.given,), given=rows.source)


def refuse_given(wanted: Wanted) -> None:
    """See that a row that is to be trained has not been given in an earlier call."""
    file = wanted.target / _DENSE_FILE
    if file.is_file():
        raise UsageError(
            f"{wanted.target} has the rows of {read_json(file)['source']}, not of a training",
            f"give them again with --set {wanted.row.given}=…, or {wanted.elsewhere}",
        )


def _given(wanted: Wanted, collections: Collections) -> DenseRows:
    data = _data_of(wanted)
    collection = collections.of(data)
    source = str(wanted.choices.values[wanted.row.given])
    path = Path(source).expanduser()
    splits = (data.train, data.validation, data.test)
    if (path / "images" / "embeddings.json").is_file() or any(
        (path / safe_name(split) / "images" / "embeddings.json").is_file() for split in splits
    ):

        def encoded(split: str) -> EncodedCollection:
            return _of_embeddings(path, collection, split)

        name = f"{source} (fingerprint {encoded(data.test).images.encoder})"
    else:
        encoder = _encoder(source)

        def encoded(split: str) -> EncodedCollection:
            from diptych.encoders.encode import encode_collection

            part = collection.split(split)
            return encode_collection(
                encoder, part, wanted.target / "embeddings" / safe_name(f"{part.name}-{split}"), split
            )

        name = f"{source} (fingerprint {encoder.fingerprint})"
    return DenseRows(wanted.target, collection, data, name, encoded)


def _data_of(wanted: Wanted) -> Data:
    """The data that was chosen, else what the setting trains the row on."""
    from diptych.training.sections import Data

    chosen = wanted.study.settings[wanted.setting]
    if wanted.row.model in chosen.recipes:
        return recipe_of(wanted.study, wanted.row, wanted.setting, wanted.choices).data
    if wanted.choices.data is None:
        raise UsageError("no data given", "give a dataset with --data")
    return Data.model_validate(wanted.choices.data)


def _encoder(source: str) -> DualEncoder:
    from diptych.encoders.dual_encoder import DualEncoder

    folder = Path(source).expanduser()
    best = folder / "best"
    return DualEncoder.load(best if (best / "diptych.json").is_file() else source)


def _of_embeddings(path: Path, collection: Collection, split: str) -> EncodedCollection:
    """A split's rows of a folder that holds them, or more."""
    from diptych.encoders.embeddings import EncodedCollection

    own = path / safe_name(split)
    whole = EncodedCollection.open(own if (own / "images" / "embeddings.json").is_file() else path)
    part = collection.split(split)
    images = _taken(whole.images, part.image_ids, path, "pictures")
    texts = _taken(whole.texts, part.caption_ids, path, "captions")
    about = {**whole.about, "dataset": part.name, "split": split}
    return EncodedCollection(images, texts, part.caption_image, about)


def _taken(rows: Embeddings, ids: Sequence[str], path: Path, what: str) -> Embeddings:
    """The rows of ``ids``, in that order; not copied where they are all there are."""
    from diptych.encoders.embeddings import Embeddings

    if list(rows.ids) == list(ids):
        return rows
    places = {name: place for place, name in enumerate(rows.ids)}
    missing = [name for name in ids if name not in places]
    if missing:
        raise MismatchError(
            f"{path} has no rows of {len(missing):,} of {len(ids):,} {what}, the first: {missing[0]!r}",
            "give the embeddings of this collection's splits: diptych embed",
        )
    chosen = _chosen(rows, [places[name] for name in ids])
    return Embeddings(
        list(ids), chosen, rows.encoder, rows.data, rows.kind, dict(rows.about), rows.similarity
    )


def _chosen(rows: Embeddings, places: list[int]) -> np.ndarray:
    import numpy as np

    chosen: np.ndarray = np.asarray(rows.rows)[np.array(places, dtype=np.int64)]
    return chosen
