"""Exploration: all variants that were tried against what was printed, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from diptych.core.table import Table, Tabular
from diptych.evaluation.printed.digits import DigitReport, read_digits
from diptych.evaluation.printed.target import Target
from diptych.evaluation.variants.axes import Choice
from diptych.evaluation.variants.tables import explain, variants_table
from diptych.metrics.ground_truth import Direction

TOLERANCE = 0.05  # relative distance within which the thesis (ch. 2) counts a number as reproduced


class Change(NamedTuple):
    axis: str
    choice: str

    def __str__(self) -> str:
        return f"{self.axis} = {self.choice}"


@dataclass(frozen=True, eq=False)
class Variant:
    changes: tuple[Change, ...]  # departures from the default protocol; empty for the default itself
    values: Mapping[str, float]  # the target's cells, shares in per cent, with all their digits
    errors: Mapping[str, float]  # relative distance per cell
    within: tuple[str, ...]  # names of the cells within tolerance
    near: tuple[str, ...]  # names of the cells within :data:`~diptych.evaluation.variants.tables.NEAR` of it
    exact: tuple[str, ...]  # names of the cells that are printed alike

    @property
    def mean_error(self) -> float:
        return sum(self.errors.values()) / len(self.errors)

    @property
    def worst_error(self) -> float:
        return max(self.errors.values())

    @property
    def explains(self) -> bool:
        """Return whether every cell is within tolerance."""
        return len(self.within) == len(self.errors)

    @property
    def is_near(self) -> bool:
        return len(self.near) == len(self.errors)

    @property
    def is_exact(self) -> bool:
        return len(self.exact) == len(self.errors)

    @property
    def distance(self) -> tuple[float, int, tuple[Change, ...]]:
        """Return what orders variants by nearness: of equal distances fewer changes come first."""
        return round(self.mean_error, 12), len(self.changes), self.changes

    def line(self) -> str:
        """Return the changes in words: ``k_test = 2, captions = first``."""
        return ", ".join(map(str, self.changes)) or "the default protocol"

    def to_dict(self) -> dict[str, Any]:
        values = {name: round(value, 4) for name, value in self.values.items()}
        counts = {"within": len(self.within), "near": len(self.near), "exact": len(self.exact)}
        return {"changes": self.line(), "values": values, "mean_error": self.mean_error, **counts}


@dataclass(frozen=True, eq=False)
class Exploration(Tabular):
    """Protocols that would explain printed numbers, and what their digits say; without variants the digits only."""

    target: Target  # what was printed
    tolerance: float = TOLERANCE  # relative distance within which a cell counts as explained
    choices: Mapping[str, Sequence[Choice]] = field(default_factory=dict)  # per axis, the default first
    # all that were tried, the best first: those that bring all cells within tolerance, by how few changes
    # they need, then to the printed digit, then by distance; then the others by distance. Those that are near
    # come before simpler ones where that is ``telling``
    variants: Sequence[Variant] = ()
    # by reason, the changes of the variants that could not be tried
    refused: Mapping[str, Sequence[tuple[Change, ...]]] = field(default_factory=dict)
    exhaustive: int = 2  # up to how many changes everything was tried
    # shares of made-up targets between two tried variants that some variant of as few changes brings within
    # tolerance too, is as near to, and prints alike; None where the target does not allow it
    luck: float | None = None
    near_luck: float | None = None
    exact_luck: float | None = None
    telling: bool = False  # being near says more than being simple: made-up targets are hardly ever met so
    warnings: Sequence[str] = ()  # what has to be known before anything is believed
    # per direction: size of a gallery, mean positives of a query, queries, as given
    galleries: Mapping[Direction, tuple[int, float, int]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)  # what the numbers depend on
    of: Sequence[str] = ()  # what was printed, and what it is computed again from

    @property
    def default(self) -> dict[str, str]:
        """Return the default choice of every axis."""
        return {axis: choices[0].name for axis, choices in self.choices.items()}

    @cached_property
    def as_given(self) -> Variant:
        """Return the default protocol's variant."""
        return next(one for one in self.variants if not one.changes)

    @property
    def nearest(self) -> Variant:
        return min(self.variants, key=lambda one: one.distance)

    @cached_property
    def explanations(self) -> tuple[Variant, ...]:
        """Return minimal ones: all cells within tolerance, and not so with any of their changes left out.

        Before them those that are near although something simpler explains too, where that is ``telling``.
        """
        simple = _minimal([one for one in self.variants if one.explains])
        near = _minimal([one for one in self.variants if one.is_near]) if self.telling else []
        return (*near, *(one for one in simple if one not in near))

    @cached_property
    def exact_explanations(self) -> tuple[Variant, ...]:
        """Return minimal ones that print every cell alike."""
        return tuple(_minimal([one for one in self.variants if one.is_exact]))

    @cached_property
    def single_changes(self) -> list[Variant]:
        """Return per axis the best single change, the one that comes nearest first."""
        best: dict[str, Variant] = {}
        for one in sorted(self.variants, key=lambda one: (one.mean_error, one.changes)):
            if len(one.changes) == 1:
                best.setdefault(one.changes[0].axis, one)
        return list(best.values())

    @cached_property
    def out_of_reach(self) -> list[str]:
        """Return the cells that no variant brings within tolerance."""
        reached = {name for one in self.variants for name in one.within}
        return [name for name in self.target.cells if name not in reached]

    @cached_property
    def digits(self) -> DigitReport:
        return read_digits(self.target, self.galleries)

    def meaning(self, variant: Variant) -> str:
        """Return what a variant changes, in words."""
        words = {(axis, one.name): one.words for axis, choices in self.choices.items() for one in choices}
        return "; ".join(words[change] for change in variant.changes)

    def sentences(self) -> list[str]:
        """Return the verdict and what it leaves open, then what the digits say."""
        return [*explain(self), *self.digits.sentences()]

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def tables(self) -> list[Table]:
        """Return the printed cells, with the nearest variants where there are any."""
        return [variants_table(self)]

    def lines(self) -> list[str]:
        """Return the verdict without its warnings, what the digits say, and what it was computed from."""
        signs = self.digits.sentences()
        head = "the digits:" if signs else "the digits: nothing that other digits would not say as well"
        verdict = explain(self)[len(self.warnings) :]
        return [*verdict, head, *(f"  {sign}" for sign in signs), *self.of]

    def to_dict(self) -> dict[str, Any]:
        """Return it JSON-able, with what follows from it."""
        content = {"format": 2, "target": self.target.to_dict(), "of": list(self.of), "says": explain(self)}
        content |= {"digits say": self.digits.sentences(), "digits": self.digits.to_dict()}
        if not self.variants:
            return content
        plain = ("tolerance", "default", "exhaustive", "luck", "near_luck", "exact_luck", "telling", "about")
        content |= {name: getattr(self, name) for name in (*plain, "out_of_reach", "galleries")}
        for name in ("explanations", "exact_explanations", "single_changes", "variants"):
            content[name] = [one.to_dict() for one in getattr(self, name)]
        content["warnings"] = list(self.warnings)
        content["refused"] = {
            reason: [", ".join(map(str, one)) for one in some] for reason, some in self.refused.items()
        }
        content["choices"] = [
            [axis, one.name, one.words] for axis, choices in self.choices.items() for one in choices
        ]
        return content


def _minimal(some: Sequence[Variant]) -> list[Variant]:
    """Return those of which no other has only a part of the changes."""
    sets = [frozenset(one.changes) for one in some]
    return [one for one, own in zip(some, sets, strict=True) if not any(other < own for other in sets)]
