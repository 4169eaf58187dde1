"""Where a row's numbers come from: how each kind of row is made, and what of it is measured.

::

    rows/ROW/seed-N/
      run.json …     a training
      given.json     or what was given in its place, and its fingerprint: another one is refused

A kind of row is a class here: what has to be seen before anything is made (``check``), and making it, going on with
it or finding it there (``make``). :data:`SOURCES` has them by the names that rows have in papers' files.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.context import check_stop, stopping
from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import write_json, write_text
from diptych.core.reading import read_json
from diptych.studies.plan import FINE_TUNE, Plan
from diptych.studies.study import Row

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.training.recipe import Recipe
    from diptych.training.run import Run

logger = logging.getLogger("diptych.studies")
"""Gets one line before each training and measurement."""

_COST, _GIVEN = "cost.json", "given.json"
_STARTS = ("warm_start", "fine_tune")
_PLACES = ("data", *_STARTS, "name", "description")  # where things are and what they are called


@dataclass(frozen=True)
class Subject:
    """What is measured: a finished run and the collection it was trained on.

    Attributes:
        run: the run (:class:`diptych.training.run.Run`), or what stands in its place: dense rows that were
            given, a head, a search.
        collection: all splits.
        features: folder of cached features.
        positives: further judgements to measure by, as :class:`~diptych.studies.plan.Choices` has them.
        begun_with: where the encoder that training began with is today; where the run's recipe says, when
            not given.
        measuring: what a user set about measuring (``--set measure.words=FILE``).
    """

    run: Any
    collection: Any
    features: Any
    positives: str | None = None
    begun_with: str | None = None
    measuring: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """A row and seed that is there.

    Attributes:
        subject: what is measured.
        state: what it is, JSON-able: with the way of measuring, the name of a measurement.
        epochs: how many were trained, and the best; 0 where nothing was.
        given: the encoder that the user gave, to measure or to go on from, with its fingerprint.
        stands_for: of a published encoder's row, what was made in its place.
        data: what it is measured on, in one line.
        dataset: which of several collections that is.
        seconds: processor time of making it; what its folder says when not given.
        costs: whether the time of measuring is counted too.
        again: whether it is measured even where it was: quick, and its line names what else was evaluated.
    """

    subject: Subject
    state: tuple[Any, ...]
    epochs: tuple[int, int] = (0, 0)
    given: str = ""
    stands_for: str = ""
    data: str = ""
    dataset: str | None = None
    seconds: float | None = None
    costs: bool = False
    again: bool = False


class Source:
    """A kind of row. There is one per call of a study, which may keep what its rows share."""

    nothing = ""
    """Why a row without any measurement is left out; empty where that is not said."""

    def begin(self, plan: Plan, rows: Sequence[Row], seeds: Sequence[int]) -> dict[str, str]:
        """Open what the rows share; return those that cannot be made, and why."""
        return {}

    def is_fixed(self, row: Row) -> bool:
        """Return whether no seed changes a row."""
        return False

    def check(self, plan: Plan, row: Row) -> None:
        """See that a row can be made and measured as asked, before its base is made for it."""

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Made:
        """Make a row, go on with it, or find it there; its base is there already. ``what``: how lines begin."""
        raise NotImplementedError

    def hint(self) -> tuple[str, str]:
        """Return what was measured, in one line, and what to do where it gave nothing at all."""
        return "", ""


@contextmanager
def cost_of(folder: Path) -> Iterator[None]:
    """Add the block's processor time to what a run has taken."""
    begun, before = _processor_time(), cpu_seconds(folder)
    try:
        yield
    finally:
        write_json(folder / _COST, {"cpu_seconds": before + _processor_time() - begun})


def _processor_time() -> float:
    """Return that of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def cpu_seconds(folder: Path) -> float:
    """Return the processor time that a run has taken, all attempts together."""
    file = folder / _COST
    return float(read_json(file)["cpu_seconds"]) if file.is_file() else 0.0


# What is trained -----------------------------------------------------------------------------------


class Recipes(Source):
    """A training of a recipe, or dense rows that a user gives in its place."""

    def check(self, plan: Plan, row: Row) -> None:
        """See that what is given has a name."""
        if plan.is_given(row):
            given_name(plan, row)

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Made:
        """Train it, or take what the user gives."""
        if plan.is_given(row):
            from diptych.studies.dense import given_rows

            return given_rows(plan, row, what)
        refuse_given(plan, row, seed)
        base = plan.base_of(row)
        recipe = plan.recipe_of(row, seed, None if base is None else plan.target(base))
        collection = plan.collections.of(recipe.data)
        run = _trained(plan, row, seed, recipe, collection, what)
        begun = start_of(run, recipe.fine_tune) if base is None and recipe.fine_tune is not None else None
        return Made(
            Subject(
                run, collection, plan.features, plan.choices.positives, recipe.fine_tune or recipe.warm_start
            ),
            (run.numbers["step"], run.numbers["best"]),
            (int(run.numbers["epoch"]), int(run.numbers["best_epoch"])),
            "" if begun is None else begun.name,
        )


def _trained(plan: Plan, row: Row, seed: int, recipe: Recipe, collection: Collection, what: str) -> Run:
    """Return the finished run of ``recipe``, which no other process trains in meanwhile."""
    from diptych.training.fit import fit
    from diptych.training.run import Run

    folder = plan.target(row, seed)
    if (folder / "run.json").is_file():
        run = Run.open(folder)
        if other := next(_differences(run, recipe, collection), None):
            raise UsageError(f"{folder} {other}", plan.elsewhere(row))
        if run.finished:
            logger.info(f"{what}: there already")
            return run
        # It is resumed from where its beginning is now: the study's folder may have moved.
        begun_with = {key: getattr(recipe, key) for key in _STARTS if getattr(run.recipe, key) is not None}
        now = {key: place for key, place in begun_with.items() if place is not None}
        run = Run(folder, run.recipe.model_copy(update=now))
        logger.info(f"{what}: goes on")
    else:
        run = Run.prepare(folder, recipe)
        logger.info(f"{what}: training")
    with cost_of(folder):
        if plan.devices > 1:
            _fit_on_devices(run, plan)
            return Run.open(folder)
        fit(run, collection, accelerator=plan.accelerator, features_root=plan.features)
    return run


def _fit_on_devices(run: Run, plan: Plan) -> None:
    """Train a run in a command of its own, which its further processes can repeat."""
    recipe = run.folder.with_name(f"recipe-{run.folder.name}.toml")
    words: list[object] = ["train", "--resume", run.folder]
    if not run.begun:  # nothing is in its folder before its first step
        write_text(recipe, run.recipe.to_toml())
        words = ["train", recipe, "--out", run.folder]
    words += ["--devices", plan.devices, "--accelerator", plan.accelerator]
    command = [sys.executable, "-m", "diptych", *map(str, words), "--features", str(plan.features)]
    process = subprocess.Popen(command, start_new_session=True)  # it is told to stop here alone
    while process.poll() is None:
        if stopping():
            process.send_signal(signal.SIGINT)
            process.wait()
        time.sleep(0.2)
    if run.begun:
        recipe.unlink(missing_ok=True)
    check_stop(f"stopped while {run.folder} was training; nothing is lost")
    if process.returncode:
        fix = f"see what it says above, or run it alone: {shlex.join(['diptych', *map(str, words)])}"
        raise UsageError(f"{run.folder} was not trained (exit code {process.returncode})", fix)


def _differences(run: Run, recipe: Recipe, collection: Collection) -> Iterator[str]:
    """Yield what a run has that is not wanted."""
    from diptych.training.fine_tune import open_fine_tune

    have, want = (one.model_dump(mode="json", exclude=set(_PLACES)) for one in (run.recipe, recipe))
    for key in want:
        if have[key] != want[key]:
            yield f"was trained with {key} = {_short(have[key])}, not {_short(want[key])}"
    if run.recipe.fine_tune != recipe.fine_tune:  # an encoder under another name may be the same
        began = run.begun_with.get("fine_tune")
        now = None if recipe.fine_tune is None else open_fine_tune(recipe.fine_tune).fingerprint
        if None in (run.recipe.fine_tune, recipe.fine_tune) or began != now:
            yield f"was begun with {run.recipe.fine_tune} ({began}), not {recipe.fine_tune} ({now})"
    data = collection.split(run.recipe.data.train).text_fingerprint
    if run.begun_with["data"] != data:
        yield f"was trained on captions {run.begun_with['data']}, those of {collection.name} are {data}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"


@dataclass(frozen=True)
class Start:
    """An encoder that a training went on from: the recipe's key, its folder or name, the fingerprint of its weights."""

    key: str
    source: str
    fingerprint: str

    @property
    def name(self) -> str:
        """``SOURCE (fingerprint F)``."""
        return f"{self.source} (fingerprint {self.fingerprint})"

    def line(self) -> str:
        """Return it for protocols."""
        return f"{'fine-tuned from' if self.key == FINE_TUNE else 'begun with'} {self.name}"

    def open(self) -> DualEncoder:
        """Load the encoder; another one in its place is refused."""
        encoder = load_encoder(self.source)
        if encoder.fingerprint != self.fingerprint:
            raise MismatchError(
                f"training began with {self.name}, which now holds {encoder.fingerprint}",
                "put the old encoder back, or train the row again in another folder",
            )
        return encoder


def start_of(run: Run, now: str | None = None) -> Start | None:
    """Return what ``run`` began with; None for fresh weights. ``now``: where that is today, if not where it was."""
    for key, source in ((FINE_TUNE, run.recipe.fine_tune), ("warm_start", run.recipe.warm_start)):
        if source is not None:
            return Start(key, now or source, str(run.begun_with[key]))
    return None


# What is given -------------------------------------------------------------------------------------


def load_encoder(source: str, device: str | None = None) -> DualEncoder:
    """Load an encoder by its name or folder; of a run, its best."""
    from diptych.encoders.dual_encoder import DualEncoder

    best = Path(source).expanduser() / "best"
    return DualEncoder.load(best if (best / "diptych.json").is_file() else source, device=device)


def given_name(plan: Plan, row: Row) -> str:
    """Return what a user gives for a row."""
    given = plan.choices.values[row.given]
    if not isinstance(given, str) or not given:
        what = "RUN or ENCODER" if row.kind == "pretrained" else "RUN, ENCODER or EMBEDDINGS"
        raise UsageError(f"{row.given} is {given!r}", f"--set {row.given}={what}")
    return given


def mark_given(plan: Plan, row: Row, source: str, about: Mapping[str, Any], what: str) -> None:
    """Keep what was given for a row; refuse another one, and a training."""
    for key in plan.choices.values:
        if not plan.not_of_recipes(key):
            raise UsageError(
                f"{key} is about the training of {row.name}, which is given ({row.given}={source})",
                f"leave {key} out, or leave {row.given} out to have {row.name} trained",
            )
    folder = plan.target(row)
    if (folder / "run.json").is_file():
        raise UsageError(f"{folder} has a training, not {source}", plan.elsewhere(row))
    file = folder / _GIVEN
    there = read_json(file) if file.is_file() else None
    for key, value in about.items():
        if there is not None and there.get(key) != value:
            raise UsageError(
                f"{folder} has {there['source']} ({key} {there.get(key)}), not {source} ({value})",
                plan.elsewhere(row),
            )
    if there is None:
        write_json(file, {"source": source, **about})
    logger.info(f"{what}: {'there already' if there else 'given'}")


def refuse_given(plan: Plan, row: Row, seed: int) -> None:
    """See that a row that is to be trained has not been given in an earlier call."""
    file = plan.target(row, seed) / _GIVEN
    if row.given and file.is_file():
        raise UsageError(
            f"{file.parent} has {read_json(file)['source']}, not a training",
            f"give it again with --set {row.given}=…, or {plan.elsewhere(row)}",
        )


@dataclass(frozen=True)
class GivenEncoder:
    """An encoder that is given for a row, loaded when it is first needed."""

    folder: Path
    source: str
    device: str | None = None

    @cached_property
    def encoder(self) -> DualEncoder:
        """The encoder."""
        return load_encoder(self.source, self.device)


def encoder_of(run: Run | GivenEncoder) -> DualEncoder:
    """Return the encoder that a row is: a run's best, or the one that is given."""
    from diptych.encoders.dual_encoder import DualEncoder

    return run.encoder if isinstance(run, GivenEncoder) else DualEncoder.load(run.best)


def given_encoder(plan: Plan, row: Row) -> GivenEncoder:
    """Return the encoder that a user gives for a row, or that the setting names."""
    device = None if plan.accelerator == "auto" else plan.accelerator
    return GivenEncoder(plan.target(row), given_name(plan, row), device)


class Pretrained(Recipes):
    """A published encoder as it is; in a setting with a recipe for it, a stand-in is trained."""

    def check(self, plan: Plan, row: Row) -> None:
        """See that what is given can be loaded: the rows before it may be measured for hours."""
        if plan.is_given(row):
            load_encoder(given_name(plan, row), "cpu")

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Made:
        """Take the encoder, or train what stands for it."""
        if not plan.is_given(row):
            made = super().make(plan, row, seed, what)
            return replace(made, stands_for=str(made.subject.run.recipe.description))
        given = given_encoder(plan, row)
        mark = given.encoder.fingerprint
        mark_given(plan, row, given.source, {"fingerprint": mark}, what)
        subject = Subject(given, None, plan.features, plan.choices.positives)
        return Made(subject, ("given", mark), given=f"{given.source} (fingerprint {mark})")


class Captions(Source):
    """Nothing is made: what is measured are the captions themselves."""

    def is_fixed(self, row: Row) -> bool:
        """Return that captions are the same with every seed."""
        return True

    def check(self, plan: Plan, row: Row) -> None:
        """See that nothing is set about a training."""
        for key in plan.choices.values:
            if not plan.not_of_recipes(key):
                known = ", ".join(f"measure.{one}" for one in plan.study.measured_by)
                raise UsageError(
                    f"{key} is about a training, and {plan.study.name} trains nothing",
                    f"leave it out; what can be set: {known}",
                )

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Made:
        """Say where the row's measurements go."""
        return Made(Subject(Folder(plan.target(row)), None, plan.features), ("captions",))


@dataclass(frozen=True)
class Folder:
    """What stands in a run's place where nothing is made: where measurements are kept."""

    folder: Path


SOURCES = {
    "recipe": "diptych.studies.sources:Recipes",
    "pretrained": "diptych.studies.sources:Pretrained",
    "captions": "diptych.studies.sources:Captions",
    "adapt": "diptych.studies.zero_shot:Adaptations",
    "head": "diptych.studies.sparse:Heads",
    "search": "diptych.studies.searched:Searches",
    "log": "diptych.studies.logs:LogRows",
    "catalogue": "diptych.studies.catalogues:CatalogueRows",
}
"""Kinds of rows: heavy ones are imported where there is one."""
