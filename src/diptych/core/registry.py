"""Declared objects by name: losses, measures, readers, engines, perturbations, studies.

Adding one is one new file that calls ``REGISTRY.add``; the CLI's help, the documentation and the
reports read the same declarations. Another distribution's file is named by an entry point, such as
``[project.entry-points."diptych.losses"]`` with ``anything = "package.module"``.
"""

import importlib
import logging
import pkgutil
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Protocol, TypeVar

from diptych.core.errors import UnknownNameError

logger: logging.Logger = logging.getLogger(__name__)


def plug_ins(*groups: str, load: Callable[[EntryPoint], Any] = EntryPoint.load) -> Iterator[tuple[str, Any]]:
    """Yield name and content of every entry point of some groups; of one that cannot be loaded warn in one line."""
    entries = [entry for group in groups for entry in entry_points(group=group)]
    entries.sort(key=lambda entry: entry.module.partition(".")[0] != "diptych")  # our own first
    for entry in entries:
        try:
            found = load(entry)
        except Exception as error:  # noqa: BLE001  # what another distribution raises is not known
            distribution = "an unknown distribution" if entry.dist is None else entry.dist.name
            where = f"{entry.group}: {entry.name} = {entry.value}"
            reason = f"{type(error).__name__}: {error}".split("\n")[0]
            logger.warning("the plug-in of %s is left out (%s): %s", distribution, where, reason)
        else:
            yield entry.name, found


class Declared(Protocol):
    """A registry's member."""

    @property
    def name(self) -> str:
        """The name by which it is chosen."""


T = TypeVar("T", bound=Declared)


class Registry(Generic[T]):
    """Named objects of one kind, filled by importing every module of one package, and entry points.

    Those are the entry points of ``group`` and of the package's name.
    """

    def __init__(self, kind: str, package: str, group: str = "") -> None:
        self.kind = kind
        self._package = package
        self._groups = [package, *([group] if group else [])]
        self._members: dict[str, T] = {}
        self._complete = False

    def add(self, member: T) -> T:
        """Register ``member`` under its name; a second one of the same name is a programming error."""
        if member.name in self._members:
            raise ValueError(f"two {self.kind}s are named {member.name!r}")
        self._members[member.name] = member
        return member

    def _discover(self) -> None:
        if self._complete:
            return
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(getattr(package, "__path__", [])):  # a module holds them itself
            importlib.import_module(f"{self._package}.{module.name}")
        for _ in plug_ins(*self._groups, load=self._load):
            pass
        self._complete = True

    def _load(self, entry: EntryPoint) -> None:
        """Import a module of another room or distribution, which registers its members: all of them or none."""
        before = dict(self._members)
        try:
            entry.load()
        except BaseException:
            self._members = before
            raise

    def get(self, name: str) -> T:
        self._discover()
        try:
            return self._members[name]
        except KeyError:
            raise UnknownNameError(self.kind, name, self._members) from None

    def names(self) -> list[str]:
        self._discover()
        return sorted(self._members)

    def __iter__(self) -> Iterator[T]:
        return iter([self._members[name] for name in self.names()])
