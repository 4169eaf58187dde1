"""Sources of rows: how each kind of row is made.

``rows/ROW/seed-N/`` holds a training (run.json …), or given.json: what was given in its place, and its fingerprint.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import safe_name, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_json
from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.encoders.encode import encode_collection, metadata_of, stored_collection
from diptych.studies.plan import GIVEN, Plan
from diptych.studies.study import Row

if TYPE_CHECKING:
    from diptych.training.run import Run, TrainingFolder
    from diptych.training.sections import Data


logger: logging.Logger = logging.getLogger(
    "diptych.studies"
)  # gets one line before each training and measurement

_COST, _GIVEN = "cost.json", "given.json"
_KEY = 8  # characters of a fingerprint that tell folders apart


@dataclass(frozen=True)
class Subject:
    """A row and seed that is there, to be measured."""

    run: Any  # a training (diptych.training.run.Run), or what stands in its place: dense rows, a head, a search …
    collection: Any  # all splits; None where the runner chooses it
    features: Any  # folder of cached features
    positives: str | None = None  # further judgements to measure by, as Choices has them
    measuring: Mapping[str, Any] = field(default_factory=dict)  # set with --set measure.KEY
    state: tuple[Any, ...] = ()  # JSON-able: with the way of measuring, the key of a measurement
    epochs: tuple[int, int] = (0, 0)  # trained, and the best; 0 where nothing was
    given: str = ""  # the encoder that the user gave, to measure or to start from, with its fingerprint
    stands_for: str = ""  # of a published encoder's row, what was made in its place
    data: str = ""  # what it is measured on, in one line; the collection's own line when not given
    dataset: str | None = None  # which of several collections that is
    seconds: float | None = None  # CPU time of making it, if not what its folder says
    costs: bool = False  # the time of measuring is counted too
    again: bool = False  # measured even where it was: quick, and its line names what else was evaluated


class Source:
    """A kind of row. There is one per call of a study, which may keep what its rows share."""

    nothing = ""  # why a row without any measurement is left out; empty where it is not left out
    limit = ""  # why no row may have any: a study of nothing is then a result, not an error

    def begin(self, plan: Plan, rows: Sequence[Row], seeds: Sequence[int]) -> dict[str, str]:
        """Open what the rows share; return those that cannot be made, and why."""
        return {}

    def is_fixed(self, row: Row) -> bool:
        """Return whether no seed changes a row."""
        return False

    def check(self, plan: Plan, row: Row) -> None:
        """Check that a row can be made and measured as chosen, before its base is made for it."""

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        """Return all that changes a row's numbers, under the keys that --set has."""
        return {}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        """Make a row, resume it, or find it there; its base is there already. ``what``: how lines begin."""
        raise NotImplementedError

    def hint(self) -> tuple[str, str]:
        """Return what was measured, in one line, and what to do where it gave nothing at all."""
        return "", ""


def source_of(row: Row) -> Source:
    found: Source = resolve_name(SOURCES[row.kind])()
    return found


def keyed(folder: Path, name: str, *depends_on: Any) -> Path:
    return folder / f"{safe_name(name)}-{fingerprint(*depends_on)[:_KEY]}"


@contextmanager
def cost_of(folder: Path) -> Iterator[None]:
    """Add the block's CPU time, and that of the processes that it waits for, to what a run has taken."""
    begun, before = sum(os.times()[:4]), cpu_seconds(folder)
    try:
        yield
    finally:
        write_json(folder / _COST, {"cpu_seconds": before + sum(os.times()[:4]) - begun})


def cpu_seconds(folder: Path) -> float:
    file = folder / _COST
    return float(read_json(file)["cpu_seconds"]) if file.is_file() else 0.0


class Recipes(Source):
    """A training of a recipe, or dense rows that a user gives in its place."""

    def check(self, plan: Plan, row: Row) -> None:
        if plan.is_given(row):
            given_name(plan, row)

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        is_trained = not plan.is_given(row) and row.recipe in plan.setting.recipes
        return plan.recipe_of(row).model_dump(mode="json") if is_trained else {}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        if plan.is_given(row):
            return given_rows(plan, row, what)
        from diptych.training.again import run_of, train

        base, folder = plan.base_of(row), plan.target(row, seed)
        if row.given and (folder / _GIVEN).is_file():  # of an earlier call
            raise UsageError(
                f"{folder} has {read_json(folder / _GIVEN)['source']}, not a training",
                f"give it again with --set {row.given}=…, or {plan.elsewhere(row)}",
            )
        recipe = plan.recipe_of(row, seed, None if base is None else plan.target(base))
        collection = plan.collections.of(recipe.data)
        try:
            run = run_of(folder, recipe, collection)
        except MismatchError as error:
            raise UsageError(error.message, plan.elsewhere(row)) from None
        tell_of(run, what)
        if not run.finished:
            with cost_of(folder):
                train(run, collection, plan.devices, plan.features, plan.accelerator)
        is_given = base is None and recipe.fine_tune is not None
        return Subject(
            run,
            collection,
            plan.features,
            plan.choices.positives,
            state=(run.numbers["step"], run.numbers["best"]),
            epochs=(int(run.numbers["epoch"]), int(run.numbers["best_epoch"])),
            given=start_of(run).name if is_given else "",
        )


def tell_of(folder: TrainingFolder, what: str) -> None:
    state = "there already" if folder.finished else "resumed" if folder.begun else "training"
    logger.info(f"{what}: {state}")


def given_name(plan: Plan, row: Row) -> str:
    given = plan.choices.values[row.given]
    if not isinstance(given, str) or not given:
        raise UsageError(f"{row.given} is {given!r}", f"--set {row.given}={GIVEN[row.kind]}")
    return given


def mark_given(plan: Plan, row: Row, source: str, metadata: Mapping[str, Any], what: str) -> None:
    """Keep what was given for a row; refuse another one, and a training."""
    for key in filter(plan.is_of_recipes, plan.choices.values):
        raise UsageError(
            f"{key} is about the training of {row.name}, which is given ({row.given}={source})",
            f"leave {key} out, or leave {row.given} out to have {row.name} trained",
        )
    folder = plan.target(row)
    if (folder / "run.json").is_file():
        raise UsageError(f"{folder} has a training, not {source}", plan.elsewhere(row))
    file = folder / _GIVEN
    if not file.is_file():
        write_json(file, {"source": source, **metadata})
        logger.info(f"{what}: given")
        return
    there = read_json(file)
    for key, value in metadata.items():
        if there.get(key) != value:
            has = f"{there['source']} ({key} {there.get(key)})"
            raise UsageError(f"{folder} has {has}, not {source} ({value})", plan.elsewhere(row))
    logger.info(f"{what}: there already")


@dataclass(frozen=True)
class GivenEncoder:
    """An encoder that is not trained for a row, loaded when it is first needed."""

    folder: Path  # of the row
    source: str
    device: str | None = None
    began: str = ""  # of one that training began with, its fingerprint then

    @cached_property
    def encoder(self) -> DualEncoder:
        found = DualEncoder.load(self.source, device=self.device)
        if self.began not in ("", found.fingerprint):
            raise MismatchError(
                f"training began with {self.name}, which now holds {found.fingerprint}",
                "put the old encoder back, or train the row again in another folder",
            )
        return found

    @property
    def name(self) -> str:
        return f"{self.source} (fingerprint {self.began or self.encoder.fingerprint})"


def encoder_of(run: Run | GivenEncoder) -> DualEncoder:
    return run.encoder if isinstance(run, GivenEncoder) else DualEncoder.load(run.best)


def start_of(run: Run) -> GivenEncoder:
    recipe, begun_with = run.recipe, run.begun_with
    began = begun_with.get("fine_tune") or begun_with["warm_start"]
    return GivenEncoder(run.folder, str(recipe.fine_tune or recipe.warm_start), began=began)


def given_encoder(plan: Plan, row: Row) -> GivenEncoder:
    device = None if plan.accelerator == "auto" else plan.accelerator
    return GivenEncoder(plan.target(row), given_name(plan, row), device)


class Pretrained(Recipes):
    """A published encoder as it is; in a setting with a recipe for it, a stand-in is trained."""

    def check(self, plan: Plan, row: Row) -> None:
        """Check that what is given can be loaded: the rows before it may be measured for hours."""
        if plan.is_given(row):
            DualEncoder.load(given_name(plan, row), device="cpu")

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        if not plan.is_given(row):
            trained = super().make(plan, row, seed, what)
            return replace(trained, stands_for=str(trained.run.recipe.description))
        given = given_encoder(plan, row)
        state = "given", given.encoder.fingerprint
        mark_given(plan, row, given.source, {"fingerprint": given.encoder.fingerprint}, what)
        return Subject(given, None, plan.features, plan.choices.positives, state=state, given=given.name)


class Captions(Source):
    """Nothing is made: what is measured are the captions themselves."""

    def is_fixed(self, row: Row) -> bool:
        return True

    def check(self, plan: Plan, row: Row) -> None:
        for key in filter(plan.is_of_recipes, plan.choices.values):
            known = ", ".join(f"measure.{name}" for name in plan.study.measured_by) or "nothing"
            raise UsageError(
                f"{key} is about a training, and {plan.study.name} trains nothing",
                f"leave it out; what can be set: {known}",
            )

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        return Subject(SimpleNamespace(folder=plan.target(row)), None, plan.features, state=("captions",))


SOURCES = {  # by kind of row; heavy ones are imported where there is one
    "recipe": "diptych.studies.sources:Recipes",
    "pretrained": "diptych.studies.sources:Pretrained",
    "captions": "diptych.studies.sources:Captions",
    "adapt": "diptych.studies.retrieval:Adaptations",
    "head": "diptych.studies.sparse:Heads",
    "search": "diptych.studies.searched:Searches",
    "log": "diptych.studies.logs:LogRows",
    "catalogue": "diptych.studies.catalogues:CatalogueRows",
}


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
    from diptych.encoders.image_tower import ImageTower
    from diptych.encoders.two_tower import TwoTowerEncoder
    from diptych.training.features import FeatureOptions, FeatureStore

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
