"""Drops: what a change of the queries costs, condition by condition, with intervals and corrected p-values.

The same queries are asked twice, clean and changed, so differences are paired by query. What is independent is
a picture with its captions: clusters of queries are resampled (:mod:`diptych.metrics.bootstrap`) and their
two values swapped (:mod:`diptych.metrics.paired`), by the same draws in all conditions and measures. Where a
condition was drawn with several seeds, a query's value is the mean over them, so intervals and p-values are of
other pictures and say nothing of other seeds; the spread does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval
from diptych.metrics.paired import (
    LEVEL,
    corrected,
    correction_named,
    correction_text,
    shares_of,
    sign_flip_tests,
)


@dataclass(frozen=True, eq=False)
class Paired:
    """One measure of the same queries, clean and changed.

    Attributes:
        condition: what changed them.
        measure: what was measured.
        clean: (n,) one value per query; NaN for a query that is not asked.
        perturbed: (seeds, n) the same queries changed; or (n,) of one seed.
        cluster: (n,) a number for each query's picture, the same in all pairs that are compared together.
        less_is_better: of ranks.
    """

    condition: str
    measure: str
    clean: np.ndarray
    perturbed: np.ndarray
    cluster: np.ndarray
    less_is_better: bool = False


@dataclass(frozen=True)
class Drop:
    """What one condition does to one measure; means, in the unit of the values that were given.

    Attributes:
        condition: what changed the queries.
        measure: what was measured.
        clean: mean of the clean queries.
        perturbed: mean of the changed ones, over seeds too.
        spread: sample standard deviation of the changed mean over seeds; None of one seed.
        difference: changed less clean, so below 0 where a share drops.
        low: lower end of its interval; None without resamples.
        high: upper end.
        relative: ``difference / clean``; None where the clean mean is not above 0.
        relative_low: lower end of its interval, of the ratio in every resample whose clean mean is above 0.
        relative_high: upper end.
        p: of sign flips of pictures, two-sided; 1 where no query differs.
        corrected: the same corrected for all that was tested together.
        verdict: ``"worse"`` or ``"better"`` where the corrected p-value is at most 0.05, else nothing.
    """

    condition: str
    measure: str
    clean: float
    perturbed: float
    spread: float | None
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
class Asked:
    """A pair without the queries that are not asked.

    Attributes:
        pair: what was given.
        clean: (n,) of the queries that are asked.
        seeds: (seeds, n) the same changed.
        differences: (n,) changed less clean, the mean over seeds.
        cluster: (n,) theirs.
    """

    pair: Paired
    clean: np.ndarray
    seeds: np.ndarray
    differences: np.ndarray
    cluster: np.ndarray


def drops(
    pairs: Sequence[Paired],
    *,
    samples: int = 1000,
    flips: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    correction: str = "holm",
) -> list[Drop]:
    """The drop of every pair, corrected over all of them."""
    how, correct = Bootstrap(samples, confidence, seed), correction_named(correction)
    if flips < 1:
        raise UsageError(f"flips are {flips}, at least 1 is needed")
    if not pairs:
        return []
    asked = [asked_of(pair) for pair in pairs]
    known = np.unique(np.concatenate([one.cluster for one in asked]))
    homes = [np.searchsorted(known, one.cluster) for one in asked]
    parts = np.stack(
        [shares_of(one.differences, home, len(known)).parts for one, home in zip(asked, homes, strict=True)],
        axis=1,
    )
    p = [float(value) for value in sign_flip_tests(parts, flips, seed)]
    absolute, relative = _resampled(how, asked, homes, len(known))
    found = []
    for place, (one, p_corrected) in enumerate(zip(asked, corrected(p, correct), strict=True)):
        clean, difference = float(np.mean(one.clean)), float(np.mean(one.differences))
        means = np.mean(one.seeds, axis=1)
        differs = bool(np.any(one.differences))
        low, high = interval(absolute[place], confidence) or (None, None)
        above = clean > 0
        ends = (interval(relative[place], confidence) if above else None) or (None, None)
        final = 1.0 if p_corrected is None else p_corrected
        found.append(
            Drop(
                condition=one.pair.condition,
                measure=one.pair.measure,
                clean=clean,
                perturbed=float(np.mean(means)) if differs else clean,
                spread=float(np.std(means, ddof=1)) if len(means) > 1 else None,
                difference=difference,
                low=low,
                high=high,
                relative=difference / clean if above else None,
                relative_low=ends[0],
                relative_high=ends[1],
                p=p[place],
                corrected=final,
                verdict=_verdict(difference, final, one.pair.less_is_better),
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
    """One line: what is resampled, what is tested, what was corrected for."""
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


def asked_of(pair: Paired) -> Asked:
    """A pair's queries that are asked, checked."""
    what = f"{pair.condition}, {pair.measure}"
    clean = np.asarray(pair.clean, dtype=np.float64)
    perturbed = np.atleast_2d(np.asarray(pair.perturbed, dtype=np.float64))
    cluster = np.asarray(pair.cluster, dtype=np.int64)
    if clean.ndim != 1 or perturbed.ndim != 2 or perturbed.shape[1:] != clean.shape:
        raise DataError(
            f"{what}: values of shape {clean.shape} clean and {perturbed.shape} changed",
            "(n,) and (seeds, n) belong together",
        )
    if cluster.shape != clean.shape or not len(perturbed):
        raise DataError(f"{what}: {len(clean):,} queries, {cluster.shape} clusters, {len(perturbed)} seeds")
    there = ~np.isnan(clean)
    if not there.any():
        raise DataError(f"{what}: none of {len(clean):,} queries is asked")
    clean, perturbed, cluster = clean[there], perturbed[:, there], cluster[there]
    wrong = np.flatnonzero(~(np.isfinite(clean) & np.isfinite(perturbed).all(axis=0)))
    if len(wrong):
        query = int(np.flatnonzero(there)[wrong[0]])
        raise NumericalError(
            f"{what}: query {query} is {clean[wrong[0]]:g} clean and {perturbed[:, wrong[0]].tolist()} changed, "
            f"{len(wrong):,} queries are like that",
            "measure it again",
        )
    # The mean of differences, not the difference of means: equal values must differ by exactly 0.
    return Asked(pair, clean, perturbed, np.mean(perturbed - clean, axis=0), cluster)


def _resampled(
    how: Bootstrap, asked: Sequence[Asked], homes: Sequence[np.ndarray], clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """(pairs, samples) differences, and the same as shares of the clean mean; NaN where there is none."""
    columns = [
        np.bincount(home, weights=weights, minlength=clusters)
        for one, home in zip(asked, homes, strict=True)
        for weights in (one.differences, one.clean, None)
    ]
    sums = np.stack(columns, axis=1).astype(np.float64)
    drawn = [weights @ sums for weights in drawn_clusters(how, 0, clusters, clusters)]
    if not drawn:
        return np.empty((len(asked), 0)), np.empty((len(asked), 0))
    difference, clean, count = np.concatenate(drawn).reshape(how.samples, len(asked), 3).T
    absolute = np.divide(difference, count, out=np.full_like(count, np.nan), where=count > 0)
    relative = np.divide(difference, clean, out=np.full_like(count, np.nan), where=clean > 0)
    return absolute, relative


def _verdict(difference: float, p: float, less_is_better: bool) -> str:
    if p > LEVEL or difference == 0:
        return ""
    return "better" if (difference < 0) == less_is_better else "worse"
