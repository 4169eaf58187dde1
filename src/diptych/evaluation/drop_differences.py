"""Differences of drops: whether the same change of the same queries costs one model less than another.

A drop is what a change of the queries costs a model (:mod:`diptych.evaluation.drops`); here two models were
asked the same queries, clean and changed, and the drop of the first is taken from that of the second:
``(changed - clean of the second) - (changed - clean of the first)``. So what one model has ahead of the other on
clean queries plays no part. Queries are paired; clusters of them, a picture with its captions, are resampled and
the two models swapped cluster by cluster, by the same draws in all conditions and measures.

Of two models the one that starts higher has more to lose, so the drops as shares of each model's own clean mean
are set beside each other as well, with an interval of their difference. The two may point to different models:
p-values and verdicts are of the absolute difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.evaluation.drops import Asked, Paired, asked_of
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval
from diptych.metrics.paired import LEVEL, corrected, correction_named, shares_of, sign_flip_tests

_ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Of the greatest of a query's values: what lies below is rounding of four values added and subtracted."""


@dataclass(frozen=True)
class OwnDrop:
    """What one model loses; means, in the unit of the values that were given.

    Attributes:
        clean: mean of the clean queries.
        difference: changed less clean, over seeds too.
        relative: ``difference / clean``; None where the clean mean is not above 0.
    """

    clean: float
    difference: float
    relative: float | None


@dataclass(frozen=True)
class DropDifference:
    """Two models under one condition by one measure.

    Attributes:
        condition: what changed the queries.
        measure: what was measured.
        first: what the model loses that the other is held against.
        second: what the other loses.
        difference: the drop of the second less that of the first; of shares above 0 where the second loses
            less.
        low: lower end of its interval; None without resamples.
        high: upper end.
        relative: the same of drops as shares of each model's own clean mean; None where one has none.
        relative_low: lower end of its interval, of resamples in which both clean means are above 0.
        relative_high: upper end.
        p: of swapping the two models picture by picture, two-sided; 1 where no query differs.
        corrected: the same corrected for all that was tested together.
        verdict: ``"more robust"`` or ``"less robust"``, of the second, where the corrected p-value is at
            most 0.05, else nothing.
    """

    condition: str
    measure: str
    first: OwnDrop
    second: OwnDrop
    difference: float
    low: float | None
    high: float | None
    relative: float | None
    relative_low: float | None
    relative_high: float | None
    p: float
    corrected: float
    verdict: str


@dataclass(frozen=True, eq=False)
class _Both:
    """Two models' queries that are asked, and how their drops differ query by query."""

    first: Asked
    second: Asked
    differences: np.ndarray

    @property
    def alike(self) -> bool:
        """Whether the two have the same clean values and the same drops."""
        return not self.differences.any() and np.array_equal(self.first.clean, self.second.clean)


def drop_differences(
    pairs: Sequence[tuple[Paired, Paired]],
    *,
    samples: int = 1000,
    flips: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    correction: str = "holm",
) -> list[DropDifference]:
    """How the drop of each pair's second model differs from that of its first, corrected over all of them.

    Args:
        pairs: per condition and measure the first model's queries and the second's: the same queries in the
            same order, with the same clusters. Each model's seeds are averaged query by query.
    """
    how, correct = Bootstrap(samples, confidence, seed), correction_named(correction)
    if flips < 1:
        raise UsageError(f"flips are {flips}, at least 1 is needed")
    if not pairs:
        return []
    both = [_both(first, second) for first, second in pairs]
    known = np.unique(np.concatenate([one.first.cluster for one in both]))
    homes = [np.searchsorted(known, one.first.cluster) for one in both]
    parts = np.stack(
        [shares_of(one.differences, home, len(known)).parts for one, home in zip(both, homes, strict=True)],
        axis=1,
    )
    p = [float(value) for value in sign_flip_tests(parts, flips, seed)]
    absolute, relative = _resampled(how, both, homes, len(known))
    found = []
    for place, (one, p_corrected) in enumerate(zip(both, corrected(p, correct), strict=True)):
        first, second = _own(one.first), _own(one.second)
        difference = float(np.mean(one.differences))
        low, high = interval(absolute[place], confidence) or (None, None)
        share, ends = None, None
        if first.relative is not None and second.relative is not None:
            share = 0.0 if one.alike else second.relative - first.relative
            ends = interval(relative[place], confidence)
        relative_low, relative_high = ends or (None, None)
        final = 1.0 if p_corrected is None else p_corrected
        found.append(
            DropDifference(
                condition=one.first.pair.condition,
                measure=one.first.pair.measure,
                first=first,
                second=second,
                difference=difference,
                low=low,
                high=high,
                relative=share,
                relative_low=relative_low,
                relative_high=relative_high,
                p=p[place],
                corrected=final,
                verdict=_verdict(difference, final, one.first.pair.less_is_better),
            )
        )
    return found


def _both(first: Paired, second: Paired) -> _Both:
    """Two models' queries, checked to be the same."""
    names = [(one.condition, one.measure, one.less_is_better) for one in (first, second)]
    if names[0] != names[1]:
        raise DataError(f"{names[0]} and {names[1]} are compared", "a condition and a measure in common")
    one, other = asked_of(first), asked_of(second)
    asked = [~np.isnan(np.asarray(pair.clean, dtype=np.float64)) for pair in (first, second)]
    if not np.array_equal(asked[0], asked[1]) or not np.array_equal(one.cluster, other.cluster):
        raise DataError(
            f"{first.condition}, {first.measure}: {len(one.clean):,} queries of {len(asked[0]):,} and "
            f"{len(other.clean):,} of {len(asked[1]):,} are not the same ones",
            "both models are asked the same queries in one order",
        )
    differences = other.differences - one.differences
    # Equal drops from unequal heights: 0.3 - 0.2 is not 0.2 - 0.1 in binary, and must be no difference.
    values = np.abs(
        np.concatenate([part for each in (one, other) for part in (each.clean[None], each.seeds)])
    )
    differences[np.abs(differences) <= _ROUNDING * values.max(axis=0)] = 0.0
    return _Both(one, other, differences)


def _own(asked: Asked) -> OwnDrop:
    clean, difference = float(np.mean(asked.clean)), float(np.mean(asked.differences))
    return OwnDrop(clean, difference, difference / clean if clean > 0 else None)


def _resampled(
    how: Bootstrap, both: Sequence[_Both], homes: Sequence[np.ndarray], clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """(pairs, samples) differences of drops, and of drops as shares; NaN where there is none."""
    columns = [
        np.bincount(home, weights=weights, minlength=clusters)
        for one, home in zip(both, homes, strict=True)
        for weights in (
            one.differences,
            *(part for each in (one.first, one.second) for part in (each.differences, each.clean)),
            None,
        )
    ]
    sums = np.stack(columns, axis=1).astype(np.float64)
    drawn = [weights @ sums for weights in drawn_clusters(how, 0, clusters, clusters)]
    if not drawn:
        return np.empty((len(both), 0)), np.empty((len(both), 0))
    difference, lost, clean, also_lost, also_clean, count = (
        np.concatenate(drawn).reshape(how.samples, len(both), 6).T
    )

    def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0)
        return found

    relative = share(also_lost, also_clean) - share(lost, clean)
    # Columns of one matrix product may be added up in different orders; of equals nothing may stay.
    alike = np.array([one.alike for one in both])[:, None]
    return share(difference, count), np.where(alike & ~np.isnan(relative), 0.0, relative)


def _verdict(difference: float, p: float, less_is_better: bool) -> str:
    if p > LEVEL or difference == 0:
        return ""
    return "more robust" if (difference > 0) != less_is_better else "less robust"
