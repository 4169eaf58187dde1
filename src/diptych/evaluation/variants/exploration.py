"""Exploration: all variants that were tried against what was printed, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from diptych.evaluation.printed.digits import DigitReport, read_digits
from diptych.evaluation.printed.target import Target
from diptych.metrics.ground_truth import Direction

NEAR = 0.1
"""Share of the tolerance within which a cell is near: what rounding and the order of ties leave."""

_FORMAT = 1
_LUCKY = 0.05  # what more made-up targets than these meet as nearly is not put before what is simpler


@dataclass(frozen=True, order=True)
class Change:
    """One departure from the default protocol."""

    axis: str  # its name
    choice: str  # the name of the choice

    def __str__(self) -> str:
        return f"{self.axis} = {self.choice}"


@dataclass(frozen=True, eq=False)
class Variant:
    """One variant with its cells."""

    changes: tuple[Change, ...]  # departures from the default protocol; empty for the default itself
    values: Mapping[str, float]  # the target's cells, shares in per cent, with all their digits
    errors: Mapping[str, float]  # relative distance per cell
    within: tuple[str, ...]  # names of the cells within tolerance
    near: tuple[str, ...]  # names of the cells within :data:`NEAR` of it
    exact: tuple[str, ...]  # names of the cells that are printed alike

    @property
    def mean_error(self) -> float:
        """Mean relative distance over the cells."""
        return sum(self.errors.values()) / len(self.errors)

    @property
    def worst_error(self) -> float:
        """The largest relative distance."""
        return max(self.errors.values())

    @property
    def explains(self) -> bool:
        """Whether every cell is within tolerance."""
        return len(self.within) == len(self.errors)

    @property
    def is_near(self) -> bool:
        """Whether every cell is near."""
        return len(self.near) == len(self.errors)

    @property
    def is_exact(self) -> bool:
        """Whether every cell is printed alike."""
        return len(self.exact) == len(self.errors)

    def line(self) -> str:
        """The changes in words: ``k_test = 2, captions = first``."""
        return ", ".join(map(str, self.changes)) or "the default protocol"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "changes": [{"axis": one.axis, "choice": one.choice} for one in self.changes],
            "values": dict(self.values),
            "relative error": dict(self.errors),
            "mean relative error": self.mean_error,
            "worst relative error": self.worst_error,
            "within tolerance": list(self.within),
            "to the printed digit": list(self.exact),
        }


@dataclass(frozen=True, eq=False)
class SingleChange:
    """How far the best choice on one axis alone goes."""

    axis: str  # its name
    best: Variant  # the variant of that one change that comes nearest
    tried: int  # how many choices the axis had besides its default


@dataclass(frozen=True)
class Refusal:
    """Variants that these inputs cannot give."""

    reason: str  # why
    count: int  # how many
    first: tuple[Change, ...]  # the changes of one of them


@dataclass(frozen=True, eq=False)
class Exploration:
    """What was tried and what came of it."""

    target: Target  # what was printed
    tolerance: float  # relative distance within which a cell counts as explained
    default: Mapping[str, str]  # axis to the name of its default choice
    words: Mapping[tuple[str, str], str]  # what each choice means: by axis and name
    # all that were tried, the best first: those that bring all cells within tolerance, by how few changes
    # they need, then to the printed digit, then by distance; then the others by distance. Those that are near
    # come before simpler ones where that is :attr:`telling`
    variants: tuple[Variant, ...]
    refused: tuple[Refusal, ...] = ()  # what could not be tried, by reason
    exhaustive: int = 2  # up to how many changes everything was tried
    # share of made-up targets between two tried variants that some variant of as few changes as the simplest
    # explanation brings within tolerance too; None without an explanation
    luck: float | None = None
    # share of them that some variant of as few changes as the simplest near one is as near to; None where no
    # variant is near
    near_luck: float | None = None
    # share of them of which some variant prints every cell alike; None where none prints the target alike
    exact_luck: float | None = None
    # what has to be known before anything is believed, e.g. that the data are others
    warnings: tuple[str, ...] = ()
    # per direction: size of a gallery, mean positives of a query, queries, as given
    galleries: Mapping[Direction, tuple[int, float, int]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)  # what the numbers depend on

    @cached_property
    def as_given(self) -> Variant:
        """The default protocol."""
        return next(one for one in self.variants if not one.changes)

    @property
    def nearest(self) -> Variant:
        """The variant of the least mean distance, of equal ones that of the fewest changes."""
        return min(self.variants, key=lambda one: (round(one.mean_error, 12), len(one.changes), one.changes))

    @cached_property
    def explanations(self) -> tuple[Variant, ...]:
        """Minimal ones: all cells within tolerance, and not so with any of their changes left out.

        Before them those that are near although something simpler explains too, where that is
        :attr:`telling`.
        """
        simple = _minimal([one for one in self.variants if one.explains])
        near = _minimal([one for one in self.variants if one.is_near]) if self.telling else ()
        return (*near, *(one for one in simple if one not in near))

    @property
    def telling(self) -> bool:
        """Whether being near says more than being simple: made-up targets are hardly ever met so."""
        return is_telling(self.variants, self.near_luck, self.exhaustive)

    @cached_property
    def digits(self) -> DigitReport:
        """What the printed digits say by themselves."""
        return read_digits(self.target, self.galleries)

    def sentences(self) -> list[str]:
        """The verdict, what speaks for it and what it leaves open, then what the digits say."""
        from diptych.evaluation.variants.wording import explain

        return [*explain(self), *self.digits.sentences()]

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    @cached_property
    def exact_explanations(self) -> tuple[Variant, ...]:
        """Minimal ones that print every cell alike."""
        return _minimal([one for one in self.variants if one.is_exact])

    @cached_property
    def single_changes(self) -> tuple[SingleChange, ...]:
        """Per axis the best single change, the one that comes nearest first."""
        by_axis: dict[str, list[Variant]] = {}
        for one in self.variants:
            if len(one.changes) == 1:
                by_axis.setdefault(one.changes[0].axis, []).append(one)
        best = [
            SingleChange(axis, min(some, key=lambda one: (one.mean_error, one.changes)), len(some))
            for axis, some in by_axis.items()
        ]
        return tuple(sorted(best, key=lambda one: (one.best.mean_error, one.axis)))

    @cached_property
    def out_of_reach(self) -> tuple[str, ...]:
        """Cells that no variant brings within tolerance."""
        reached = {name for one in self.variants for name in one.within}
        return tuple(name for name in self.target.cells if name not in reached)

    def without(self, variant: Variant, change: Change) -> Variant | None:
        """The tried variant that lacks one change of another."""
        rest = tuple(one for one in variant.changes if one != change)
        return next((one for one in self.variants if one.changes == rest), None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; of every variant its cells, of what explains everything."""
        return {
            "format": _FORMAT,
            "target": {"label": self.target.label, "cells": self.target.to_dict()},
            "tolerance": self.tolerance,
            "default protocol": dict(self.default),
            "choices": [
                {"axis": axis, "choice": choice, "words": words}
                for (axis, choice), words in self.words.items()
            ],
            "tried": len(self.variants),
            "exhaustive up to changes": self.exhaustive,
            "warnings": list(self.warnings),
            "luck": self.luck,
            "luck as near": self.near_luck,
            "luck to the printed digit": self.exact_luck,
            "explanations": [one.to_dict() for one in self.explanations],
            "explanations to the printed digit": [one.to_dict() for one in self.exact_explanations],
            "single changes": [
                {"axis": one.axis, "choices": one.tried, "best": one.best.to_dict()}
                for one in self.single_changes
            ],
            "out of reach": list(self.out_of_reach),
            "refused": [
                {"reason": one.reason, "count": one.count, "first": [str(change) for change in one.first]}
                for one in self.refused
            ],
            "galleries": {
                name: {"items": items, "positives per query": positives, "queries": queries}
                for name, (items, positives, queries) in self.galleries.items()
            },
            "about": dict(self.about),
            "variants": [
                {
                    "changes": one.line(),
                    "values": {name: round(value, 4) for name, value in one.values.items()},
                    "mean relative error": one.mean_error,
                    "within tolerance": len(one.within),
                    "to the printed digit": len(one.exact),
                }
                for one in self.variants
            ],
        }


def is_telling(variants: Sequence[Variant], near_luck: float | None, exhaustive: int) -> bool:
    """Whether near variants of few changes come before what explains with fewer; see :class:`Exploration`."""
    near = min((len(one.changes) for one in variants if one.is_near), default=None)
    fewest = min((len(one.changes) for one in variants if one.explains), default=None)
    return (
        near is not None
        and fewest is not None
        and fewest < near <= exhaustive
        and near_luck is not None
        and near_luck <= _LUCKY
    )


def _minimal(some: list[Variant]) -> tuple[Variant, ...]:
    """Those of which no other has a part of the changes alone."""
    sets = [frozenset(one.changes) for one in some]
    return tuple(
        one for one, changes in zip(some, sets, strict=True) if not any(other < changes for other in sets)
    )
