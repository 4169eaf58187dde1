"""Drops: what a change of the queries costs, condition by condition, and whether it costs one model less.

The same queries are asked twice, clean and changed, so differences are paired by query. What is independent is
an image with its captions: clusters of queries are resampled and their two values swapped, by the same draws in
all conditions and measures (:func:`diptych.metrics.paired.paired`). Where a condition was drawn with several
seeds, a query's value is the mean over them, so intervals and p-values are of other images and say nothing of
other seeds; the spread does.

Two models' drops are compared by ``(changed - clean of the second) - (changed - clean of the first)``, so that
what one model has ahead of the other on clean queries plays no part. Of two models the one that starts higher
has more to lose, so the drops as shares of each model's own clean mean are compared as well. The two may point
to different models: p-values and verdicts are of the absolute difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.core.errors import DataError
from diptych.metrics.bootstrap import Bootstrap, interval
from diptych.metrics.paired import LEVEL, PairedTest, correction_named, correction_text, paired

_ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Of the greatest of a query's values: what lies below is rounding of four values added and subtracted."""


@dataclass(frozen=True, eq=False)
class Paired:
    """One measure of the same queries, clean and changed."""

    condition: str  # what changed them
    measure: str  # what was measured
    clean: np.ndarray  # (n,) one value per query; NaN for a query that is not evaluated
    perturbed: np.ndarray  # (seeds, n) the same queries changed; or (n,) of one seed
    # (n,) a number for each query's image, the same in all pairs that are compared together
    cluster: np.ndarray


@dataclass(frozen=True)
class Drop:
    """What one condition does to one measure; means, in the unit of the values that were given."""

    condition: str  # what changed the queries
    measure: str  # what was measured
    clean: float  # mean of the clean queries
    perturbed: float  # mean of the changed ones, over seeds too
    spread: float | None  # sample standard deviation of the changed mean over seeds; None of one seed
    difference: float  # changed less clean, so below 0 where a share drops
    low: float | None  # lower end of its interval; None without resamples
    high: float | None  # upper end
    relative: float | None  # ``difference / clean``; None where the clean mean is not above 0
    # lower end of its interval, of the ratio in every resample whose clean mean is above 0
    relative_low: float | None
    relative_high: float | None  # upper end
    p: float  # of sign flips of images, two-sided; 1 where no query differs
    corrected: float  # the same corrected for all that was tested together
    verdict: str  # ``"worse"`` or ``"better"`` where the corrected p-value is at most 0.05, else nothing


@dataclass(frozen=True)
class OwnDrop:
    """What one model loses; means, in the unit of the values that were given."""

    clean: float  # mean of the clean queries
    difference: float  # changed less clean, over seeds too
    relative: float | None  # ``difference / clean``; None where the clean mean is not above 0


@dataclass(frozen=True)
class DropDifference:
    """Two models under one condition by one measure."""

    condition: str  # what changed the queries
    measure: str  # what was measured
    first: OwnDrop  # what the baseline loses
    second: OwnDrop  # what the other model loses
    # the drop of the second less that of the first; of shares above 0 where the second loses less
    difference: float
    low: float | None  # lower end of its interval; None without resamples
    high: float | None  # upper end
    # the same of drops as shares of each model's own clean mean; None where one has none
    relative: float | None
    # lower end of its interval, of resamples in which both clean means are above 0
    relative_low: float | None
    relative_high: float | None  # upper end
    p: float  # of swapping the two models image by image, two-sided; 1 where no query differs
    corrected: float  # the same corrected for all that was tested together
    # ``"more robust"`` or ``"less robust"``, of the second, where the corrected p-value is at most 0.05, else
    # nothing
    verdict: str


def drops(
    pairs: Sequence[Paired],
    *,
    samples: int = 1000,
    flips: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    correction: str = "holm",
) -> list[Drop]:
    """Return the drop of every pair, corrected over all of them."""
    asked = [_Evaluated.of(pair) for pair in pairs]
    tests = paired(
        [(one.differences, one.clean) for one in asked],
        [one.cluster for one in asked],
        how=Bootstrap(samples, confidence, seed),
        flips=flips,
        correction=correction,
    )
    found = []
    for one, test in zip(asked, tests, strict=True):
        own, means = one.own(), np.mean(one.seeds, axis=1)
        difference, clean, _ = test.sums
        ends = None if own.relative is None else interval(_ratio(difference, clean), confidence)
        relative_low, relative_high = ends or (None, None)
        found.append(
            Drop(
                condition=one.pair.condition,
                measure=one.pair.measure,
                clean=own.clean,
                perturbed=float(np.mean(means)) if np.any(one.differences) else own.clean,
                spread=float(np.std(means, ddof=1)) if len(means) > 1 else None,
                relative=own.relative,
                relative_low=relative_low,
                relative_high=relative_high,
                **_tested(test, "better", "worse"),
            )
        )
    return found


def drop_differences(
    pairs: Sequence[tuple[Paired, Paired]],
    *,
    samples: int = 1000,  # resamples for the intervals; 0 for none
    flips: int = 10_000,  # random swaps
    seed: int = 0,  # of resamples and swaps
    confidence: float = 0.95,  # coverage of the intervals
    correction: str = "holm",  # ``"bonferroni"``, ``"holm"`` or ``"none"``
) -> list[DropDifference]:
    """Return how the drop of each pair's second model differs from that of its first, corrected over all.

    Args:
        pairs: per condition and measure the first model's queries and the second's: the same queries in the
            same order, with the same clusters. Each model's seeds are averaged query by query.
    """
    asked = [(_Evaluated.of(first), _Evaluated.of(second)) for first, second in pairs]
    both = [(one, two, _gaps(one, two)) for one, two in asked]
    tests = paired(
        [(gaps, one.differences, one.clean, two.differences, two.clean) for one, two, gaps in both],
        [one.cluster for one, _, _ in both],
        how=Bootstrap(samples, confidence, seed),
        flips=flips,
        correction=correction,
    )
    found = []
    for (one, two, gaps), test in zip(both, tests, strict=True):
        first, second = one.own(), two.own()
        alike = not np.any(gaps) and np.array_equal(one.clean, two.clean)
        _, lost, clean, also_lost, also_clean, _ = test.sums
        share, ends = None, None
        if first.relative is not None and second.relative is not None:
            share = 0.0 if alike else second.relative - first.relative
            relative = _ratio(also_lost, also_clean) - _ratio(lost, clean)
            # Columns of one matrix product may be added up in different orders; of equals nothing may stay.
            ends = interval(np.where(alike & ~np.isnan(relative), 0.0, relative), confidence)
        relative_low, relative_high = ends or (None, None)
        found.append(
            DropDifference(
                condition=one.pair.condition,
                measure=one.pair.measure,
                first=first,
                second=second,
                relative=share,
                relative_low=relative_low,
                relative_high=relative_high,
                **_tested(test, "more robust", "less robust"),
            )
        )
    return found


def drops_line(
    tested: int,
    *,
    samples: int = 1000,
    flips: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    correction: str = "holm",
    what: str = "differences to the clean queries",
) -> str:
    """Return one line: what is resampled, what is tested, what was corrected for."""
    name = correction_named(correction)
    parts = [f"{what}, paired by query"]
    if samples:
        resampled = f"{samples:,} resamples of pictures with their captions, seed {seed}"
        parts.append(f"{100 * confidence:g} % intervals (not corrected) from {resampled}")
    tests = [f"p of {flips:,} random swaps per picture", correction_text(name, tested)]
    parts.append(", ".join([text for text in tests if text] + ["two-sided"]))
    if name != "none" and tested / (flips + 1) > LEVEL:
        parts.append(f"{flips:,} swaps cannot reach {LEVEL:g} after the correction: raise flips")
    return "; ".join(parts)


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """A pair without the queries that are not evaluated."""

    pair: Paired
    clean: np.ndarray
    seeds: np.ndarray
    differences: np.ndarray
    cluster: np.ndarray

    @classmethod
    def of(cls, pair: Paired) -> _Evaluated:
        there = ~np.isnan(pair.clean)
        if not there.any():
            raise DataError(f"{pair.condition}, {pair.measure}: none of {len(there):,} queries is asked")
        clean, perturbed = pair.clean[there], np.atleast_2d(pair.perturbed)[:, there]
        # The mean of differences, not the difference of means: equal values must differ by exactly 0.
        return cls(pair, clean, perturbed, np.mean(perturbed - clean, axis=0), pair.cluster[there])

    def own(self) -> OwnDrop:
        clean, difference = float(np.mean(self.clean)), float(np.mean(self.differences))
        return OwnDrop(clean, difference, difference / clean if clean > 0 else None)


def _gaps(one: _Evaluated, two: _Evaluated) -> np.ndarray:
    """Return the differences of two models' drops, query by query."""
    gaps: np.ndarray = two.differences - one.differences
    # Equal drops from unequal heights: 0.3 - 0.2 is not 0.2 - 0.1 in binary, and must be no difference.
    values = np.abs(np.concatenate([one.clean[None], one.seeds, two.clean[None], two.seeds]))
    gaps[np.abs(gaps) <= _ROUNDING * values.max(axis=0)] = 0.0
    return gaps


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0)
    return found


def _tested(test: PairedTest, more: str, less: str) -> dict[str, Any]:
    """Return what both kinds of drops say of a test; ``more`` and ``less`` name its verdicts."""
    sure = test.corrected <= LEVEL and test.difference != 0
    return {
        **{name: getattr(test, name) for name in ("difference", "low", "high", "p", "corrected")},
        "verdict": "" if not sure else more if test.difference > 0 else less,
    }
