"""Declared objects by name: losses, measures, readers, engines, perturbations, studies.

Adding one is one new file that calls ``REGISTRY.add``; the CLI's help, the documentation and the
reports read the same declarations.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Generic, Protocol, TypeVar

from diptych.core.errors import UnknownNameError


class Declared(Protocol):
    """The protocol of a registry's members: a name and a one-line description."""

    @property
    def name(self) -> str:
        """The name by which it is chosen."""

    @property
    def description(self) -> str:
        """One line for help texts."""


T = TypeVar("T", bound=Declared)


class Registry(Generic[T]):
    """Named objects of one kind, filled by importing every module of one package, and entry points of its name."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
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
        for entry in entry_points(group=self._package):  # of other rooms and of plug-ins
            entry.load()
        self._complete = True

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
