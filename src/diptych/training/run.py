"""Run: the folder of one training of a dual encoder, in which nothing reported is ever lost.

::

    RUN/
      run.json          state (running, finished), what it was begun with (fingerprints of the training
                        captions and of the encoder it began with, its shortcuts), where it stands
      recipe.toml       the complete recipe
      environment.json  versions, devices, threads
      metrics.jsonl     one line per logged step and per epoch
      checkpoint/       everything needed to resume: weights, optimizer, place
      best/             the encoder with the best validation rsum (checkpoints.keep = "last": the latest);
                        DualEncoder.load reads it
      targets/          what latent targets are made with, where there are any
      caption_targets/  what captions are read with, where the caption tower takes vectors
      evaluation/       one folder per evaluated split
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from diptych.core.artifact import Artifact, not_here
from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import write_json, write_text
from diptych.core.locking import exclusive_folder
from diptych.core.reading import opening, read_log, read_text
from diptych.core.version import __version__
from diptych.objectives import OBJECTIVES, Objective
from diptych.training.environment import environment
from diptych.training.recipe import Recipe, parse_recipe


def trained_objective(run: Run, **options: Any) -> Objective:
    """Return the run's own objective, learned options (a temperature, a bias) as of the encoder it keeps."""
    given = run.begun_with.get("objective") if run.begun else None
    if given is not None:
        raise UsageError(
            f"{run.folder} was trained with the objective {given}, which was given in Python",
            "name one of diptych's own with --objective",
        )
    recipe = dict(run.recipe.objective)
    kind = OBJECTIVES.get(recipe.pop("name"))
    known = {**kind.options, **recipe, **options}
    learned = {
        name.removeprefix("learn_")
        for name, value in known.items()
        if name.startswith("learn_") and value is True
    }
    needed = learned - set(options)
    values = _logged_when_kept(run, needed) if needed else {}
    missing = sorted(needed - set(values))
    if missing:
        raise UsageError(
            f"{run.folder} learned a {missing[0]} that its metrics.jsonl does not hold",
            f"give it: --option {missing[0]}=VALUE",
        )
    return kind(**{**recipe, **values, **options})


def _logged_when_kept(run: Run, names: set[str]) -> dict[str, float]:
    """Return the last values that were logged up to the end of the epoch whose encoder is kept; to the log's end
    before there is one."""
    lines = list(run.metrics())
    # Before its first step a fine-tuning measures the encoder it begins with.
    validated = [line for line in lines if "validation" in line and line["step"]]
    stop = None
    if validated and run.recipe.checkpoints.keep == "last":
        stop = validated[-1]["step"]
    elif validated:
        stop = max(validated, key=lambda line: line["validation"]["rsum"])["step"]
    values: dict[str, float] = {}
    for line in lines:
        if stop is None or line["step"] <= stop:
            values |= {name: line[name] for name in names if name in line}
    return values


@dataclass(frozen=True)
class TrainingState(Artifact, kind="training", version=2, recreate="train again in a new folder"):
    """Record what a training was begun with and what came of it.

    Attributes:
        state: ``running`` or ``finished``.
        begun_with: JSON-able values, in sections.
        numbers: of its end.
        diptych: the version that wrote it.
    """

    state: str
    begun_with: dict[str, Any]
    numbers: dict[str, Any] = field(default_factory=dict)
    diptych: str = __version__


class TrainingFolder:
    """Hold the folder of a training; nothing is written before :meth:`begin`."""

    MARKER: ClassVar[str] = "training.json"

    def __init__(self, folder: Path | str) -> None:
        self.folder: Path = Path(folder)

    @property
    def begun(self) -> bool:
        return (self.folder / self.MARKER).is_file()

    @property
    def finished(self) -> bool:
        return self.begun and self._state.state == "finished"

    @property
    def _state(self) -> TrainingState:
        return TrainingState.open(self.folder / self.MARKER)

    @property
    def begun_with(self) -> dict[str, Any]:
        return self._state.begun_with

    @property
    def numbers(self) -> dict[str, Any]:
        return self._state.numbers

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def check(
        self, request: Mapping[str, Any], allowed: Collection[str] | None = None, *, whole: bool = True
    ) -> None:
        """See that a training with ``request`` can begin or be resumed here."""
        if self.begun:
            before = self.begun_with
            self.compare(before if whole else {name: before.get(name) for name in request}, request)
        elif allowed is not None and self.folder.is_dir():
            there = {path.name for path in self.folder.iterdir() if not path.name.startswith(".")}
            if not there <= set(allowed):
                raise UsageError(
                    f"{self.folder} holds other things (no {self.MARKER})", "give a new or empty folder"
                )

    def compare(self, before: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        """Refuse a request for other values than those that the training was begun with."""
        old, new = _flat(before), _flat(_as_json(request))
        for name in [*old, *(name for name in new if name not in old)]:
            if old.get(name) != new.get(name):
                raise MismatchError(
                    f"{self.folder} was begun with {name} = {old.get(name)}, requested is {new.get(name)}",
                    "resume it with what it was begun with, or choose another folder",
                )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out of the folder; leave no new folder where nothing was begun."""
        new = not self.folder.exists()
        try:
            with exclusive_folder(self.folder):
                yield
        finally:
            if new and not self.begun:
                with suppress(OSError):
                    self.folder.rmdir()

    def begin(self, request: Mapping[str, Any]) -> None:
        """Record what a new training is made of; see that an old one was made of the same."""
        self.check(request)
        if not self.begun:
            TrainingState("running", _as_json(request)).save(self.folder / self.MARKER)

    def finish(self, *, keep_checkpoint: bool = False, **numbers: Any) -> None:
        """Record that the training came to its end; what it produced is written already."""
        TrainingState("finished", self.begun_with, numbers).save(self.folder / self.MARKER)
        if not keep_checkpoint:
            shutil.rmtree(self.checkpoint, ignore_errors=True)

    def log(self, **values: Any) -> None:
        """Append one line to metrics.jsonl; ``step`` says what it belongs to."""
        try:
            with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as handle:
                handle.write(json.dumps(values) + "\n")
        except OSError as error:
            raise StorageError(
                f"cannot write {self.folder / 'metrics.jsonl'}: {error.strerror}",
                "free some space, then resume: nothing up to the last checkpoint is lost",
            ) from error

    def metrics(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of metrics.jsonl; a last line that a kill cut short is left out."""
        path = self.folder / "metrics.jsonl"
        if not path.is_file():
            return
        for number, found in read_log(path):
            if not isinstance(found.get("step"), int):
                step = found.get("step", "missing")
                raise StorageError(
                    f"{path}, line {number} is corrupt: step is {step!r:.40}", "remove that line"
                )
            yield found

    def rewind_metrics(self, step: int) -> None:
        """Forget what was logged after ``step``, so that a resumed training's log is an unbroken one's."""
        if (self.folder / "metrics.jsonl").is_file():
            kept = [json.dumps(line) + "\n" for line in self.metrics() if line["step"] <= step]
            write_text(self.folder / "metrics.jsonl", "".join(kept))


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(values)))


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return values of nested sections under dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            value = {str(place): one for place, one in enumerate(value)}
        flat |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {before + name: value}
    return flat


class Run(TrainingFolder):
    """A run folder; create one with :meth:`prepare` and ``fit``, read one with :meth:`open`."""

    MARKER: ClassVar[str] = "run.json"

    def __init__(self, folder: Path | str, recipe: Recipe) -> None:
        super().__init__(folder)
        self.recipe = recipe
        self.precision: str = recipe.precision
        self._kept: list[Callable[[], object]] = []
        self._new = False

    @classmethod
    def prepare(cls, folder: Path | str, recipe: Recipe) -> Run:
        """Return a run that will be in ``folder``; nothing is written before its first step.

        Raises:
            UsageError: the folder already holds a run.
        """
        run = cls(folder, recipe)
        if run.begun:
            raise UsageError(
                f"{folder} already holds a run",
                f"resume it with: diptych train --resume {folder}, or choose another folder with --out",
            )
        if Path(folder).exists() and not Path(folder).is_dir():
            raise UsageError(f"{folder} is a file, not a folder for a run", "choose a new folder with --out")
        run._new = True
        return run

    @classmethod
    @opening("train it again")
    def open(cls, folder: Path | str) -> Run:
        """Read a run.

        Raises:
            UsageError: the folder holds no run.
            StorageError: the run was made by another version of the format.
        """
        folder = Path(folder)
        if not (folder / cls.MARKER).is_file():
            raise UsageError(*not_here(folder, "run", cls.MARKER, "diptych train RECIPE --out FOLDER"))
        try:
            TrainingState.open(folder / cls.MARKER)
        except StorageError as error:
            repeat = f"repeat it with: diptych train {folder / 'recipe.toml'} --out NEW"
            raise StorageError(error.message, repeat) from None
        recipe = folder / "recipe.toml"
        return cls(folder, parse_recipe(read_text(recipe), str(recipe)))

    def keep(self, write: Callable[[], object]) -> None:
        """Call ``write``, which writes into the folder, as soon as the run holds it."""
        if self.begun:
            write()
        else:
            self._kept.append(write)

    def begin(self, request: Mapping[str, Any]) -> None:
        """Write the recipe and the environment of a new run; see that an old one was begun with the same."""
        if self._new and self.begun:
            raise UsageError(f"{self.folder} holds another run by now", "choose another folder with --out")
        self._new = False
        if not self.begun:
            for write in self._kept:
                write()
            write_text(self.folder / "recipe.toml", self.recipe.to_toml())
            write_json(self.folder / "environment.json", environment() | {"precision": self.precision})
        super().begin(request)

    def describe(self) -> dict[str, Any]:
        return {"name": self.recipe.name, "state": "finished" if self.finished else "running", **self.numbers}

    def __repr__(self) -> str:
        if not self.begun:
            return f"<Run {self.folder}: not begun>"
        state = "finished" if self.finished else "running"
        return f"<Run {self.folder}: {', '.join([state, *(f'{key} {one:g}' for key, one in self.numbers.items())])}>"

    @property
    def best(self) -> Path:
        """Return the folder of the encoder that is kept; :func:`diptych.load` reads it."""
        return self.folder / "best"
