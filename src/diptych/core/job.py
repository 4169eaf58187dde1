"""Job: keyed units of work in a locked folder; finished ones are kept, the others are run.

::

    OUT/KIND.json      the job's header: what its units are made from; a folder of another job is refused
    OUT/units/KEY.npz  one artifact per finished unit

A kill loses the units that were running. The order of units and the number of processes never change a result.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from diptych.core.artifact import Artifact
from diptych.core.context import RESUME, task
from diptych.core.errors import Interrupted, MismatchError, StorageError
from diptych.core.files import check_replaceable, safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import exclusive_folder
from diptych.core.processes import in_processes

U = TypeVar("U", bound=Artifact)

_UNITS = "units"


@dataclass(frozen=True, eq=False)
class Job(Generic[U]):
    """A grid of units in a folder.

    Attributes:
        folder: new, empty, or with this job's header.
        header: an artifact that says what all units depend on; saved first and compared on resuming.
        unit: the class of a finished unit.
        noun: of units in progress and messages.
        suffix: layout of a unit: ``.npz``, ``.json``, or nothing for a folder.
    """

    folder: Path
    header: Artifact
    unit: type[U]
    noun: str = "units"
    suffix: str = ".npz"

    def path(self, key: str) -> Path:
        return self.folder / _UNITS / f"{safe_name(key)}{self.suffix}"

    def get(self, key: str, state: Any = None) -> U | None:
        """Return a finished unit of that key and state; None where it is missing, corrupt or of another state."""
        path = self.path(key)
        if not path.exists():
            return None
        try:
            return self.unit.open(path, of=fingerprint(state))
        except StorageError:
            return None

    def run(
        self,
        units: Mapping[str, Any],
        work: Callable[..., U],
        *,
        processes: int = 1,
        setup: Callable[..., Any] | None = None,
        setup_args: tuple[Any, ...] = (),
        states: Mapping[str, Any] | None = None,
    ) -> None:
        """Run the units that are not finished; :meth:`get` gives them afterwards.

        Args:
            units: key → what ``work`` gets, after what ``setup`` returned once per process.
            processes: how many share the work.
            states: key → JSON-able values that a unit depends on besides the header.

        Raises:
            Interrupted: a stop was requested; finished units are kept.
            MismatchError: the folder holds another job.
        """
        states = states or {}
        check_replaceable(self.folder, self.header.marker())
        with exclusive_folder(self.folder):
            self._claim()
            todo = [key for key in units if self.get(key, states.get(key)) is None]
            tasks = [(key, self.path(key), fingerprint(states.get(key)), units[key]) for key in todo]
            with task(self.noun, len(units), self.noun, len(units) - len(todo)) as bar:
                finished = 0
                for key in in_processes(tasks, partial(_save, work), processes, setup, setup_args):
                    bar.advance(1, key)
                    finished += 1
        if finished < len(todo):
            kept = len(units) - len(todo) + finished
            raise Interrupted(f"stopped: {kept:,} of {len(units):,} {self.noun} are kept", RESUME)

    def _claim(self) -> None:
        path = self.folder / self.header.marker()
        if not path.exists():
            self.header.save(path)
            return
        fix = "give another folder, or remove this one"
        try:
            there = type(self.header).open(path)
        except StorageError as error:
            raise StorageError(error.message, fix) from None
        if there != self.header:
            differing = "; ".join(differences(there, self.header))
            raise MismatchError(f"{self.folder} holds other {self.noun}: {differing}", fix)


def _save(work: Callable[..., Artifact], *arguments: Any) -> str:
    *made, (key, path, of, given) = arguments
    work(*made, given).save(path, of=of)
    return str(key)


def differences(there: Any, requested: Any) -> Iterator[str]:
    """Yield ``name THERE, requested REQUESTED`` of each field in which two dataclasses differ."""
    for name in (name for name, field in there.__dataclass_fields__.items() if field.compare):
        first, second = getattr(there, name), getattr(requested, name)
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            for key in dict.fromkeys([*first, *second]):
                if first.get(key) != second.get(key):
                    yield f"{name}.{key} {first.get(key)!r}, requested {second.get(key)!r}"
        elif first != second:
            yield f"{name} {first!r}, requested {second!r}"
