"""Luck: how easily something fits, when so many variants are tried.

Targets are made up halfway between two tried variants that differ by more than the tolerance: numbers of the
same height as the real ones, and nobody's. The share of them that some variant meets all the same is how much
a fit says: little where it is large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from diptych.evaluation.printed.target import Target
from diptych.evaluation.variants.variant import NEAR, Variant

__all__ = ["distinct", "luck_near", "luck_to_the_digit", "luck_within"]

_PAIRS = 4_000  # made-up targets at most


def distinct(variants: Sequence[Variant]) -> list[Variant]:
    """The first of those with the same values."""
    found: dict[tuple[float, ...], Variant] = {}
    for one in variants:
        found.setdefault(tuple(round(value, 9) for value in one.values.values()), one)
    return list(found.values())


def luck_within(variants: Sequence[Variant], target: Target, tolerance: float) -> float | None:
    """Share of made-up targets that come within tolerance with as few changes as the simplest explanation.

    None without an explanation, or where no two variants are far enough apart.
    """
    meeting = [one for one in variants if one.explains]
    return _met_as_simply(variants, meeting, target, tolerance, tolerance)


def luck_near(variants: Sequence[Variant], target: Target, tolerance: float) -> float | None:
    """Share of made-up targets that some variant of as few changes as the simplest near one is near to.

    None where no variant is near, or no two are far enough apart.
    """
    meeting = [one for one in variants if one.is_near]
    return _met_as_simply(variants, meeting, target, tolerance, NEAR * tolerance)


def luck_to_the_digit(variants: Sequence[Variant], target: Target, tolerance: float) -> float | None:
    """Share of made-up targets of which some variant prints every cell alike.

    None where none prints the real one alike, or where no two variants are far enough apart.
    """
    if not any(one.is_exact for one in variants):
        return None
    half = _half_units(target)
    return _met(variants, tolerance, lambda _: half)


def _half_units(target: Target) -> np.ndarray:
    return np.array([cell.unit / 2 for cell in target.cells.values()])


def _met_as_simply(
    variants: Sequence[Variant], meeting: Sequence[Variant], target: Target, tolerance: float, allowed: float
) -> float | None:
    if not meeting:
        return None
    fewest = max(1, min(len(one.changes) for one in meeting))
    simple = [one for one in variants if len(one.changes) <= fewest]
    half = _half_units(target)
    return _met(simple, tolerance, lambda made_up: np.maximum(allowed * made_up, half))


def _met(
    variants: Sequence[Variant], tolerance: float, allowed: Callable[[np.ndarray], np.ndarray]
) -> float | None:
    """Halfway is the geometric mean, cell by cell."""
    values = np.array([list(one.values.values()) for one in distinct(variants)])
    one, other = np.triu_indices(len(values), 1)
    apart = np.abs(values[one] - values[other]) > tolerance * np.maximum(values[one], values[other])
    pairs = np.flatnonzero(np.any(apart, axis=1))
    if not len(pairs):
        return None
    pairs = pairs[:: -(-len(pairs) // _PAIRS)]
    made_up = np.sqrt(values[one[pairs]] * values[other[pairs]])
    met = [
        bool(np.any(np.all(np.abs(values - target) <= allowed(target) + 1e-9, axis=1))) for target in made_up
    ]
    return float(np.mean(met))
