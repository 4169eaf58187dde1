"""Options: what is given is checked once, and the first fault is one line."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import Field, model_validator
from refusals import refused

from diptych.core.errors import RecipeError, StorageError, UsageError
from diptych.core.options import Options


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


@pytest.mark.parametrize(
    ("given", "message", "fix"),
    [
        ({"lwo": 1}, "file: unknown key 'lwo'", "did you mean 'low'? known there: high, low, pattern"),
        (
            {"stages": [{"cell": 1}]},
            "file: unknown key 'stages.0.cell'",
            "did you mean 'stages.0.cells'? known",
        ),
        (
            {"stages": [{"cells": 0}]},
            "file: stages.0.cells: Input should be greater than or equal to 1",
            "got 0",
        ),
        ({"low": 2}, "file: low 2.0 above high 1.0", ""),
        ({"low": "x", "high": "y"}, "file: low: .*; 1 more", "got 'x'"),
        ([1], "file: Input should be a valid dictionary or instance of Everything", "got [1]"),
    ],
)
def test_a_fault_is_one_line_with_the_keys_or_the_value(given: Any, message: str, fix: str) -> None:
    assert refused(UsageError, message, Everything.read, given, "file").fix.startswith(fix)


def test_the_error_and_the_way_out_are_the_readers() -> None:
    with pytest.raises(StorageError) as caught:
        Everything.read({"low": "x"}, "file", StorageError, "recreate it")
    assert caught.value.fix == "recreate it"
    refused(RecipeError, "unknown key", Everything.read, {"x": 1}, "recipe", RecipeError)
