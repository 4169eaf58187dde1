"""The folder of one training: what it was begun with, its metrics and its checkpoint.

::

    FOLDER/
      training.json   what it was begun with, state (running, finished), numbers of its end
      metrics.jsonl   one JSON object per logged step or epoch
      checkpoint/     everything that resuming needs
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from diptych.core.artifact import Artifact
from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import write_text
from diptych.core.locking import exclusive_folder
from diptych.core.reading import read_log
from diptych.core.version import __version__


@dataclass(frozen=True)
class TrainingState(Artifact, kind="training", version=2, recreate="train again in a new folder"):
    """What a training was begun with and what came of it.

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
    """Where a training is kept; nothing is written before :meth:`begin`."""

    MARKER: ClassVar[str] = "training.json"

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    @property
    def begun(self) -> bool:
        """Whether a training was begun here."""
        return (self.folder / self.MARKER).is_file()

    @property
    def finished(self) -> bool:
        """Whether the training came to its end."""
        return self.begun and self._state.state == "finished"

    @property
    def _state(self) -> TrainingState:
        return TrainingState.open(self.folder / self.MARKER)

    @property
    def begun_with(self) -> dict[str, Any]:
        """What the training was begun with."""
        return self._state.begun_with

    @property
    def numbers(self) -> dict[str, Any]:
        """What the training ended with; empty before."""
        return self._state.numbers

    @property
    def checkpoint(self) -> Path:
        """The folder of the state to resume from."""
        return self.folder / "checkpoint"

    def check(
        self, request: Mapping[str, Any], beside: Collection[str] | None = None, *, whole: bool = True
    ) -> None:
        """See that a training with ``request`` can begin or be resumed here."""
        if self.begun:
            before = self.begun_with
            self._compare(before if whole else {name: before.get(name) for name in request}, request)
        elif beside is not None and self.folder.is_dir():
            there = {path.name for path in self.folder.iterdir() if not path.name.startswith(".")}
            if not there <= set(beside):
                raise UsageError(
                    f"{self.folder} holds other things (no {self.MARKER})", "give a new or empty folder"
                )

    def _compare(self, before: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        old, new = _flat(before), _flat(_as_json(request))
        for name in [*old, *(name for name in new if name not in old)]:
            if old.get(name) != new.get(name):
                raise MismatchError(
                    f"{self.folder} was begun with {name} = {old.get(name)}, asked for is {new.get(name)}",
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
        kept = [json.dumps(line) + "\n" for line in self.metrics() if line["step"] <= step]
        write_text(self.folder / "metrics.jsonl", "".join(kept))


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as they are when they have been written and read."""
    return dict(json.loads(json.dumps(values)))


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Values of nested sections under dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {before + name: value}
    return flat
