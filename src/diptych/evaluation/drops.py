"""Drops: what a change of the queries costs, condition by condition, and whether it costs one model less.

Differences are paired by query; images with their captions are resampled and swapped, by the same draws in all
conditions and measures (:func:`diptych.metrics.paired.paired`). Of several seeds a query's value is the mean, so
intervals and p-values are of other images and say nothing of other seeds; the spread does.

The model that starts higher has more to lose, so drops as shares of each model's clean mean are compared as well:
they may point to the other model; p-values and verdicts are of the absolute difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from diptych.core.errors import DataError
from diptych.evaluation.result import interval_line
from diptych.metrics.bootstrap import Bootstrap, interval
from diptych.metrics.paired import LEVEL, PairedTest, correction_named, correction_text, paired

# of four values added and subtracted, by the greatest of them
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class PairedSettings(Bootstrap):
    """Settings of paired tests: resamples for intervals, random swaps for p-values, and their correction."""

    flips: int = 10_000
    correction: str = "holm"  # or ``"bonferroni"``, ``"none"``


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
class _Tested:
    """A difference of means, in the unit of the values that were given; ends are None without resamples."""

    condition: str  # what changed the queries
    measure: str  # what was measured
    difference: float
    low: float | None
    high: float | None
    relative: float | None  # as a share of the clean mean; None where that is not above 0
    relative_low: float | None  # of the resamples whose clean means are above 0
    relative_high: float | None
    p: float  # of random swaps image by image, two-sided; 1 where no query differs
    corrected: float  # ``p`` corrected for all that was tested together
    verdict: str  # where the corrected p-value is at most 0.05, else nothing


@dataclass(frozen=True)
class Drop(_Tested):
    """Effect of one condition on one measure: changed less clean, so below 0 where a share drops.

    Its verdict is ``"worse"`` or ``"better"``.
    """

    clean: float  # mean of the clean queries
    perturbed: float  # mean of the changed ones, over seeds too
    spread: float | None  # sample standard deviation of the changed mean over seeds; None of one seed


@dataclass(frozen=True)
class OwnDrop:
    """Loss of one model; means, in the unit of the given values."""

    clean: float  # mean of the clean queries
    difference: float  # changed less clean, over seeds too
    relative: float | None  # ``difference / clean``; None where the clean mean is not above 0


@dataclass(frozen=True)
class DropDifference(_Tested):
    """Two models under one condition: the drop of the second less that of the first, above 0 where it loses less.

    The verdict is ``"more robust"`` or ``"less robust"``, of the second.
    """

    first: OwnDrop  # what the baseline loses
    second: OwnDrop  # what the other model loses


def drops(pairs: Sequence[Paired], **settings: Any) -> list[Drop]:
    """Return the drop of every pair, corrected over all of them; settings of :class:`PairedSettings`."""
    how, evaluated = PairedSettings(**settings), [_Evaluated.of(pair) for pair in pairs]
    tests = _tests(how, evaluated, [(one.differences, one.clean) for one in evaluated])
    found = []
    for one, test in zip(evaluated, tests, strict=True):
        own, means = one.own(), np.mean(one.seeds, axis=1)
        difference, clean, _ = test.sums
        found.append(
            Drop(
                condition=one.pair.condition,
                measure=one.pair.measure,
                clean=own.clean,
                perturbed=float(np.mean(means)) if np.any(one.differences) else own.clean,
                spread=float(np.std(means, ddof=1)) if len(means) > 1 else None,
                **_tested(test, "better", "worse"),
                **_relative(own.relative, _ratio(difference, clean), how),
            )
        )
    return found


def drop_differences(pairs: Sequence[tuple[Paired, Paired]], **settings: Any) -> list[DropDifference]:
    """Return how drops of second models differ from those of first ones on the same queries, corrected over all."""
    how = PairedSettings(**settings)
    both = [(_Evaluated.of(first), _Evaluated.of(second)) for first, second in pairs]
    gaps = [_gaps(one, two) for one, two in both]
    columns = [
        (gap, one.differences, one.clean, two.differences, two.clean)
        for gap, (one, two) in zip(gaps, both, strict=True)
    ]
    found = []
    for (one, two), gap, test in zip(both, gaps, _tests(how, [one for one, _ in both], columns), strict=True):
        first, second = one.own(), two.own()
        _, lost, clean, also_lost, also_clean, _ = test.sums
        share, ratios = None, _ratio(also_lost, also_clean) - _ratio(lost, clean)
        if first.relative is not None and second.relative is not None:
            share = second.relative - first.relative
        if share is not None and not np.any(gap) and np.array_equal(one.clean, two.clean):
            # Columns of one matrix product may be added up in different orders; of equals nothing may stay.
            share, ratios = 0.0, np.where(np.isnan(ratios), ratios, 0.0)
        found.append(
            DropDifference(
                condition=one.pair.condition,
                measure=one.pair.measure,
                first=first,
                second=second,
                **_tested(test, "more robust", "less robust"),
                **_relative(share, ratios, how),
            )
        )
    return found


def drops_line(tested: int, *, what: str = "differences to the clean queries", **settings: Any) -> str:
    """Return one line: what is resampled, what is tested, what was corrected for."""
    how = PairedSettings(**settings)
    name = correction_named(how.correction)
    parts = [f"{what}, paired by query"]
    if how.samples:
        parts.append(interval_line(how, " (not corrected)", "images with their captions"))
    tests = [f"p of {how.flips:,} random swaps per image", correction_text(name, tested), "two-sided"]
    parts.append(", ".join(text for text in tests if text))
    if name != "none" and tested / (how.flips + 1) > LEVEL:
        parts.append(f"{how.flips:,} swaps cannot reach {LEVEL:g} after the correction: raise flips")
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
    def of(cls, pair: Paired) -> Self:
        evaluated = ~np.isnan(pair.clean)
        if not evaluated.any():
            raise DataError(
                f"{pair.condition}, {pair.measure}: none of {len(evaluated):,} queries is evaluated"
            )
        clean, perturbed = pair.clean[evaluated], np.atleast_2d(pair.perturbed)[:, evaluated]
        # The mean of differences, not the difference of means: equal values must differ by exactly 0.
        return cls(pair, clean, perturbed, np.mean(perturbed - clean, axis=0), pair.cluster[evaluated])

    def own(self) -> OwnDrop:
        clean, difference = float(np.mean(self.clean)), float(np.mean(self.differences))
        return OwnDrop(clean, difference, difference / clean if clean > 0 else None)


def _tests(
    how: PairedSettings, evaluated: Sequence[_Evaluated], columns: Sequence[Sequence[np.ndarray]]
) -> list[PairedTest]:
    clusters = [one.cluster for one in evaluated]
    return paired(columns, clusters, how=how, flips=how.flips, correction=how.correction)


def _gaps(one: _Evaluated, two: _Evaluated) -> np.ndarray:
    """Return the differences of two models' drops, query by query."""
    gaps: np.ndarray = two.differences - one.differences
    # Equal drops from unequal heights: 0.3 - 0.2 is not 0.2 - 0.1 in binary, and must be no difference.
    values = np.abs(np.concatenate([one.clean[None], one.seeds, two.clean[None], two.seeds]))
    gaps[np.abs(gaps) <= _ROUNDING * values.max(axis=0)] = 0.0
    return gaps


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.asarray(np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0))


def _relative(share: float | None, resampled: np.ndarray, how: PairedSettings) -> dict[str, Any]:
    low, high = (None if share is None else interval(resampled, how.confidence)) or (None, None)
    return {"relative": share, "relative_low": low, "relative_high": high}


def _tested(test: PairedTest, more: str, less: str) -> dict[str, Any]:
    """Return what both kinds of drops say of a test; ``more`` and ``less`` name its verdicts."""
    sure = test.corrected <= LEVEL and test.difference != 0
    return {
        **{name: getattr(test, name) for name in ("difference", "low", "high", "p", "corrected")},
        "verdict": "" if not sure else more if test.difference > 0 else less,
    }
