"""Compare: two or more evaluations of one test set, with intervals and corrected p-values.

What is resampled and swapped are images, each with its captions and in both directions at once; the
galleries and the training seeds stay as they are. So a p-value says whether the difference would be
there with other images of the same kind, not whether it would with another seed: give several seeds
of each recipe, whose values per query are then averaged, and look at their spread as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import Any

import numpy as np

from diptych.core.errors import NumericalError, UnknownNameError, UsageError
from diptych.evaluation.comparison import (
    TESTS,
    Comparison,
    Difference,
    Spread,
    baseline_of,
    check_comparable,
    check_same_gains,
    common_measures,
    text_image_of,
)
from diptych.evaluation.result import BOTH, Fold, Result, partition
from diptych.metrics.bootstrap import MEAN, Aggregate, Bootstrap, clusters, interval, resample
from diptych.metrics.ground_truth import DIRECTIONS, Direction, GroundTruth
from diptych.metrics.measuring import resolve
from diptych.metrics.paired import (
    LEVEL,
    ClusterShares,
    check_flips,
    corrected,
    correction_named,
    shares_of,
    sign_flip_tests,
    t_test,
)

DirectedMeasure = tuple[Direction, str]  # a direction and a measure


class _PairedRuns:
    """The runs' values per query, cut into folds and clusters of queries; ``named`` is every seed by name."""

    def __init__(
        self,
        groups: dict[str, list[Result]],
        baseline: str,
        named: dict[str, Result],
        measures: list[str],
        how: Bootstrap,
    ) -> None:
        self.groups, self.baseline, self.how = groups, baseline, how
        self.plain, sums = resolve(measures)
        self.aggregates: dict[str, Aggregate] = {one.name: one.aggregate for one in self.plain}
        # What is printed, in the requested order: its scale, and what it adds up.
        self.cells: dict[tuple[str, str], tuple[float, list[DirectedMeasure]]] = {}
        of_sums = {one.name: one for one in sums}
        for name in measures:
            if name in of_sums:
                parts: list[DirectedMeasure] = [
                    (way, part) for way in DIRECTIONS for part in of_sums[name].parts
                ]
                self.cells[BOTH, name] = 100.0, parts
            else:
                self.cells |= {(way, name): (1.0, [(way, name)]) for way in DIRECTIONS}
        first_name, first = next(iter(named.items()))
        protocol, evaluated = first.protocol, {}
        for way in DIRECTIONS:
            some = next(iter(first.per_query[way].values()))
            mask = ~np.isnan(some) if way in protocol.evaluated else np.ones(len(some), dtype=bool)
            for (name, result), one in product(named.items(), self.plain):
                _check(result.per_query[way], one.name, mask, f"{name}, {way}")
            if not mask.all():
                evaluated[way] = np.flatnonzero(mask)
        truth = GroundTruth.from_directions(
            ([], []),
            ([], []),
            protocol.n_images,
            protocol.n_texts,
            text_image=text_image_of(first, first_name),
            evaluated=evaluated,
        )
        self.folds: list[Fold] = list(partition(protocol.name).folds(truth))

    def values(self) -> dict[tuple[str, str], dict[str, Spread]]:
        return {
            (way, name): {
                run: Spread(tuple(one.value(name, way) for one in group))
                for run, group in self.groups.items()
            }
            for way, name in self.cells
        }

    def _per_query(self, run: str, part: DirectedMeasure, fold: Fold) -> list[np.ndarray]:
        """Return values of a fold's queries: their mean over the run's seeds, of what is no mean each seed's."""
        way, name = part
        rows = fold.images if way == "i2t" else fold.texts
        each = [one.per_query[way][name][rows] for one in self.groups[run]]
        return [np.mean(each, axis=0)] if self.aggregates[name] is MEAN else each

    def _samples(self) -> dict[tuple[str, DirectedMeasure], np.ndarray]:
        """Return per run and part its value in every resample; the same draws for all runs."""
        found: dict[tuple[str, DirectedMeasure], list[np.ndarray]] = {}
        for number, fold in enumerate(self.folds):
            values: dict[Any, np.ndarray] = {
                (way, name, run, seed): one
                for run, way, name in product(self.groups, DIRECTIONS, self.aggregates)
                for seed, one in enumerate(self._per_query(run, (way, name), fold))
            }
            aggregates: dict[Any, Aggregate] = {key: self.aggregates[key[1]] for key in values}
            drawn: dict[Any, np.ndarray] = resample(self.how, number, fold.ground_truth, values, aggregates)
            for (way, name, run), keys in groupby(drawn, key=lambda key: key[:3]):
                seeds = np.mean([drawn[key] for key in keys], axis=0)
                found.setdefault((run, (way, name)), []).append(seeds)
        return {home: np.mean(folds, axis=0) for home, folds in found.items()}

    def _shares(self, run: str, cell: tuple[str, str]) -> list[ClusterShares] | None:
        """Return per fold what each image adds to the difference from the baseline; None where it is no mean."""
        scale, parts = self.cells[cell]
        if any(self.aggregates[name] is not MEAN for _, name in parts):
            return None
        found = []
        for fold in self.folds:
            of, size = clusters(fold.ground_truth)
            each = []
            for way, name in parts:
                rows = fold.ground_truth.queries(way)
                mine, theirs = (
                    self._per_query(one, (way, name), fold)[0][rows] for one in (run, self.baseline)
                )
                each.append(shares_of(mine - theirs, of[way][rows], size))
            found.append(ClusterShares.added(each, scale))
        return found

    def differences(self, flips: int) -> list[Difference]:
        samples = self._samples() if self.how.samples else None
        values, ranks = self.values(), {one.name for one in self.plain if one.kind == "rank"}
        pairs = [(run, cell) for run in self.groups if run != self.baseline for cell in self.cells]
        shares = {pair: self._shares(*pair) for pair in pairs}
        tested = {pair: given for pair, given in shares.items() if given is not None}
        p: dict[tuple[str, tuple[str, str]], float] = {}
        if tested:
            columns = [np.concatenate([one.parts for one in given]) / len(given) for given in tested.values()]
            swapped = sign_flip_tests(np.stack(columns, axis=1), flips, self.how.seed)
            p = dict(zip(tested, map(float, swapped), strict=True))
        differences = []
        for run, cell in pairs:
            scale, parts = self.cells[cell]
            ends = None
            if samples is not None:
                gaps = sum(samples[run, part] - samples[self.baseline, part] for part in parts)
                ends = interval(scale * np.asarray(gaps), self.how.confidence)
            gap = values[cell][run].mean - values[cell][self.baseline].mean
            low, high = ends or (None, None)
            given = shares[run, cell]
            differences.append(
                Difference(
                    run=run,
                    direction=cell[0],
                    measure=cell[1],
                    difference=gap,
                    low=low,
                    high=high,
                    p_randomisation=p.get((run, cell)),
                    p_t=None if given is None else t_test(given),
                    p=None,
                    better=None if gap == 0 else (gap < 0) == (cell[1] in ranks),
                )
            )
        return differences


def _check(given: Mapping[str, np.ndarray], name: str, evaluated: np.ndarray, where: str) -> None:
    """Refuse values that are not finite for all queries that are evaluated, and only for these."""
    if name not in given:
        raise UsageError(f"{where}: no values per query of {name}", f"evaluate again with --measure {name}")
    wrong = np.flatnonzero(np.isfinite(given[name]) != evaluated)
    if len(wrong):
        row = int(wrong[0])
        text = f"{where}: {name} of query {row} is {given[name][row]}, {len(wrong):,} queries are not as expected"
        raise NumericalError(text, "evaluate it again")


def compare(
    runs: Mapping[str, Result | Sequence[Result]],  # by name, one evaluation, or several seeds of one recipe
    measures: Sequence[str] | None = None,  # those that all have in common by default
    *,
    baseline: int | str = 0,  # the number or name of the run the others are compared with
    test: str = "randomisation",  # or ``"t"``: which p-value is corrected and judged by; both are given
    correction: str = "bonferroni",  # or ``"holm"``, ``"none"``
    samples: int = 1000,  # bootstrap resamples for the intervals; 0 for none
    flips: int = 10_000,  # random swaps; a p-value is at least 1 / (flips + 1)
    confidence: float = 0.95,
    seed: int = 0,  # of resamples and swaps
) -> Comparison:
    """Compare runs with a baseline, measure by measure, from their values per query.
    Raises:
        MismatchError: the runs were not measured on the same test set in the same way.
        NumericalError: a value is NaN; run, measure and query are named.
        StorageError: a run without values per query.
    """
    groups = {name: [given] if isinstance(given, Result) else list(given) for name, given in runs.items()}
    names = list(groups)
    if len(names) < 2 or not all(groups.values()):
        raise UsageError(f"{len(names)} runs: at least two are needed", "give two evaluations or more")
    base = baseline_of(baseline, names)
    if test not in TESTS:
        raise UnknownNameError("test", test, TESTS)
    correct = correction_named(correction)
    check_flips(flips)
    seeds = {
        name if len(group) == 1 else f"{name} (seed {number})": one
        for name, group in groups.items()
        for number, one in enumerate(group)
    }
    results = list(seeds.values())
    notes = check_comparable(seeds)
    how = Bootstrap(samples, confidence, seed)
    held = {
        name: list({measure: None for given in one.scores.values() for measure in given})
        for name, one in seeds.items()
    }
    compared = common_measures(held, measures)
    notes += check_same_gains(seeds, compared)
    work = _PairedRuns(groups, base, seeds, compared, how)
    found = work.differences(flips)
    p_chosen = [one.p_randomisation if test == "randomisation" else one.p_t for one in found]
    tested = sum(p is not None for p in p_chosen)
    judged = [replace(one, p=p) for one, p in zip(found, corrected(p_chosen, correct), strict=True)]
    most = 1 if correct == "none" else tested  # what the smallest p is multiplied by
    if test == "randomisation" and most / (flips + 1) > LEVEL:
        notes.append(f"{flips:,} swaps cannot reach 0.05 after the correction: raise flips, or take test t")
    if any(one.p_randomisation is None for one in found):
        notes.append("medians have an interval and no p")
    similarities = sorted({one.protocol.similarity for one in results})
    if len(similarities) > 1:
        notes.append(f"runs are scored by different similarities: {', '.join(similarities)}")
    if any(len(group) > 1 for group in groups.values()):
        notes.append("values per query averaged over seeds; p and intervals say nothing of other seeds")
    return Comparison(
        runs=tuple(names),
        baseline=base,
        values=work.values(),
        differences=tuple(judged),
        test="t" if test == "t" else "randomisation",
        correction=correct,
        tested=tested,
        how=how,
        flips=flips,
        protocol=_common_line(results, {one.name for one in work.plain}),
        notes=tuple(notes),
    )


def _common_line(results: list[Result], measures: set[str]) -> str:
    """Return the protocol without what differs from run to run, and only of the compared measures."""
    protocols = [one.protocol for one in results]
    first = protocols[0]
    shared = [item for item in first.about.items() if all(item in other.about.items() for other in protocols)]
    kept: dict[str, Any] = {
        name: tuple(one for one in getattr(first, name) if one in measures or one == "ties")
        for name in ("any_of_k", "all_positives", "compat")
    }
    gains = {name: text for name, text in first.gains.items() if name in measures}
    return replace(first, about=dict(shared), gains=gains, samples=0, **kept).line()
