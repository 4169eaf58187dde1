"""A pin: a name and a function from a world to numbers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SUBJECTS = ("evaluation", "index", "training", "sparse", "analysis", "intent", "categories", "studies")


@dataclass(frozen=True)
class Pin:
    """What is pinned.

    Attributes:
        name: of the pin and of its stored file.
        measure: the function; it takes a :class:`pins.world.World` and returns what JSON can hold.
        fast: whether the tests run it too.
        study: of a study's pin, the study's name.
    """

    name: str
    measure: Callable[..., Any]
    fast: bool = False
    study: str | None = None


_PINS: dict[str, Pin] = {}


def add(name: str, measure: Callable[..., Any], *, fast: bool = False, study: str | None = None) -> None:
    """Register a pin."""
    if name in _PINS:
        raise ValueError(f"two pins are called {name}")
    _PINS[name] = Pin(name, measure, fast, study)


def pin(name: str, *, fast: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function below as a pin."""

    def register(measure: Callable[..., Any]) -> Callable[..., Any]:
        add(name, measure, fast=fast)
        return measure

    return register


def pins() -> dict[str, Pin]:
    """All pins by name."""
    for subject in SUBJECTS:
        importlib.import_module(f"pins.catalogue.{subject}")
    return dict(_PINS)
