"""The cells of an evaluation in order: who was evaluated where, and who is shown first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any, NamedTuple

WHOLE = -1
"""The step of tables whose rows are whole sessions."""

Row = Mapping[str, Any]


class Place(NamedTuple):
    """A setting and a feature set: what one panel is of."""

    setting: str
    feature_set: str

    def text(self) -> str:
        """As titles have it."""
        if self.setting == self.feature_set:
            return "all sessions" if self.setting == "all" else self.setting
        return f"{self.setting}, {self.feature_set}"


def step_text(step: int) -> str:
    """A step as tables have it."""
    return "whole" if step < 0 else str(step)


def pages_text(step: int) -> str:
    """When a prediction of that step is made."""
    if step < 0:
        return "at the session's end"
    return "before any page" if step == 0 else f"after {step} {'page' if step == 1 else 'pages'}"


@dataclass(frozen=True)
class Grid:
    """All cells."""

    cells: Sequence[Row]

    @cached_property
    def settings(self) -> list[str]:
        """In the order of the cells."""
        return _once(cell["setting"] for cell in self.cells)

    @cached_property
    def sets(self) -> list[str]:
        """In the order of the cells; the last one is the fullest."""
        return _once(cell["set"] for cell in self.cells)

    @cached_property
    def steps(self) -> list[int]:
        """Rising."""
        return sorted({cell["step"] for cell in self.cells})

    @cached_property
    def models(self) -> list[str]:
        """In the order of the cells."""
        return _once(cell["model"] for cell in self.cells)

    @cached_property
    def labels(self) -> dict[str, str]:
        """Model → what figures call it."""
        return {cell["model"]: cell.get("label") or cell["model"] for cell in self.cells}

    @cached_property
    def places(self) -> list[Place]:
        """Settings and sets that have cells: a panel each."""
        found = {Place(cell["setting"], cell["set"]) for cell in self.cells}
        return [
            place
            for setting in self.settings
            for feature_set in self.sets
            if (place := Place(setting, feature_set)) in found
        ]

    @cached_property
    def fullest(self) -> list[Place]:
        """Of every setting the place with the last set that it has."""
        return list({place.setting: place for place in self.places}.values())

    @cached_property
    def chosen(self) -> str:
        """The model that is shown first: the greatest mean average precision over its cells."""
        means = {
            model: fmean(
                [
                    cell["average_precision"]
                    for cell in self.cells
                    if cell["model"] == model and cell["average_precision"] is not None
                ]
                or [0.0]
            )
            for model in self.models
        }
        return max(means, key=lambda model: (means[model], -self.models.index(model)))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str, int, str], Row]:
        return {(cell["setting"], cell["set"], cell["step"], cell["model"]): cell for cell in self.cells}

    def cell(self, place: Place, step: int, model: str) -> Row | None:
        """One cell; None where it was not evaluated."""
        return self._by_name.get((*place, step, model))

    def line(self, place: Place, model: str) -> list[Row]:
        """A model's cells of a place, by step."""
        return [cell for step in self.steps if (cell := self.cell(place, step, model)) is not None]


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
