"""Options, registries, progress: what is given is checked once, and the first fault is one line."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

from pydantic import Field, model_validator
from refusals import refused

from diptych.core.context import Task, report_to, track
from diptych.core.errors import RecipeError, StorageError, UnknownNameError, UsageError
from diptych.core.options import Options
from diptych.core.registry import Registry
from diptych.data.readers import READERS
from diptych.encoders.family import FAMILIES
from diptych.index import ENGINES
from diptych.metrics.measures import MEASURES
from diptych.objectives import OBJECTIVES


class Grid(Options):
    kind: Literal["grid"] = "grid"
    cells: int = Field(4, ge=1)


class Wave(Options):
    kind: Literal["wave"] = "wave"
    length: float = 1.0


class Everything(Options):
    pattern: Grid | Wave = Grid()
    stages: tuple[Grid, ...] = ()
    low: float = 0.0
    high: float = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> Everything:
        if self.low > self.high:
            raise ValueError(f"low {self.low} above high {self.high}")
        return self


def test_a_fault_is_one_line_of_the_readers_error_and_fix() -> None:
    given: Any
    for given, message, fix in (
        ({"lwo": 1}, "file: unknown key 'lwo'", "did you mean 'low'? known there: high, low, pattern"),
        ({"stages": [{"cell": 1}]}, "file: unknown key 'stages.0.cell'", "did you mean 'stages.0.cells'? k"),
        ({"stages": [{"cells": 0}]}, "file: stages.0.cells: Input should be greater than or", "got 0"),
        ({"low": 2}, "file: low 2.0 above high 1.0", ""),
        ({"low": "x", "high": "y"}, "file: low: .*; 1 more", "got 'x'"),
        ([1], "file: Input should be a valid dictionary or instance of Everything", "got [1]"),
    ):
        assert refused(UsageError, message, Everything.read, given, "file").fix.startswith(fix)
    args = ({"low": "x"}, "file", StorageError, "recreate it")
    assert refused(StorageError, "low", Everything.read, *args).fix == "recreate it"
    refused(RecipeError, "unknown key", Everything.read, {"x": 1}, "recipe", RecipeError)


def test_registries_describe_their_members_and_list_the_nearest_name() -> None:
    registry: Registry[Any] = Registry("thing", "diptych.core")
    for name in ("recall", "precision"):
        registry.add(SimpleNamespace(name=name))
    error = refused(UnknownNameError, "unknown thing 'recal'", registry.get, "recal")
    assert (error.fix, error.exit_code) == ("did you mean 'recall'? known: precision, recall", 2)
    for registry in (READERS, FAMILIES, OBJECTIVES, ENGINES, MEASURES):
        assert registry.names()
        for member in registry:
            assert len(member.description) > 10, member.name


class Recorder:
    def __init__(self) -> None:
        self.events: list[str] = []

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        self.events.append(f"start {description} {done}/{total} {unit}")
        recorder = self

        class Bar:
            def advance(self, steps: int = 1, note: str = "") -> None:
                recorder.events.append(f"+{steps}{note}")

        return Bar()

    def finish(self, task: Task) -> None:
        self.events.append("finish")


def test_tracked_items_advance_the_bar_that_is_installed() -> None:
    recorder = Recorder()
    with report_to(recorder):
        assert list(track(["a", "b"], "letters", unit="letters")) == ["a", "b"]
    assert recorder.events == ["start letters 0/2 letters", "+1", "+1", "finish"]
