"""Compare: two or more evaluations of one test set, with intervals and corrected p-values.

What is resampled and swapped are images, each with its captions and in both directions at once; the
galleries and the training seeds stay as they are. So a p-value says whether the difference would be
there with other images of the same kind, not whether it would with another seed: give several seeds
of each recipe, whose values per query are then averaged, and look at their spread as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

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
from diptych.metrics.measuring import GainMeasure, Measure, resolve
from diptych.metrics.paired import (
    LEVEL,
    Shares,
    check_flips,
    corrected,
    correction_named,
    shares_of,
    sign_flip_tests,
    t_test,
)


class PairedRuns:
    """The runs' values per query, cut into folds and clusters of queries."""

    def __init__(
        self,
        groups: dict[str, list[Result]],
        baseline: str,
        results: list[Result],
        called: list[str],
        measures: list[str],
        how: Bootstrap,
    ) -> None:
        self.groups, self.baseline, self.how = groups, baseline, how
        self.plain, self.sums = resolve(measures)
        self.asked = measures
        protocol = results[0].protocol
        home = text_image_of(results[0], called[0])
        cells: list[tuple[Direction, Measure | GainMeasure]] = [
            (way, one) for way in DIRECTIONS for one in self.plain
        ]
        masks = {}
        for way in DIRECTIONS:
            first = next(iter(results[0].per_query[way].values()))
            masks[way] = ~np.isnan(first) if way in protocol.asked else np.ones(len(first), dtype=bool)
        for result, name in zip(results, called, strict=True):
            for way, one in cells:
                _check(result.per_query[way], one.name, masks[way], f"{name}, {way}")
        pairs: tuple[list[int], list[int]] = ([], [])
        truth = GroundTruth.from_directions(
            pairs,
            pairs,
            protocol.n_images,
            protocol.n_texts,
            text_image=home,
            asked={way: np.flatnonzero(masks[way]) for way in DIRECTIONS if not masks[way].all()},
        )
        self.folds: list[Fold] = list(partition(protocol.name).folds(truth))
        self.aggregates: dict[str, Aggregate] = {one.name: one.aggregate for one in self.plain}

    def cells(self) -> list[tuple[str, str]]:
        """What is printed, in the order asked for."""
        sums = {one.name for one in self.sums}
        return [(way, name) for name in self.asked for way in ((BOTH,) if name in sums else DIRECTIONS)]

    def values(self) -> dict[tuple[str, str], dict[str, Spread]]:
        """Per cell and run, the values over its seeds."""
        return {
            (way, name): {
                run: Spread(tuple(one.value(name, way) for one in group))
                for run, group in self.groups.items()
            }
            for way, name in self.cells()
        }

    def _mean_per_query(self, run: str, way: Direction, name: str, fold: Fold) -> np.ndarray:
        """Values of the fold's queries, the mean over the run's seeds."""
        rows = fold.images if way == "i2t" else fold.texts
        mean: np.ndarray = np.mean([one.per_query[way][name][rows] for one in self.groups[run]], axis=0)
        return mean

    def _samples(self) -> dict[tuple[str, str, str], np.ndarray]:
        """Per run, direction and measure, its value in every resample; the same draws for all runs."""
        found: dict[tuple[str, str, str], list[np.ndarray]] = {}
        for number, fold in enumerate(self.folds):
            values: dict[tuple[Direction, str], np.ndarray] = {}
            aggregates: dict[tuple[Direction, str], Aggregate] = {}
            origin: dict[tuple[Direction, str], tuple[str, str, str]] = {}
            for run, group in self.groups.items():
                for way in DIRECTIONS:
                    for name, aggregate in self.aggregates.items():
                        rows = fold.images if way == "i2t" else fold.texts
                        if aggregate is MEAN:
                            each = [self._mean_per_query(run, way, name, fold)]
                        else:
                            each = [one.per_query[way][name][rows] for one in group]
                        for seed, one in enumerate(each):
                            key = (way, f"{run}\0{name}\0{seed}")
                            values[key], aggregates[key], origin[key] = one, aggregate, (run, way, name)
            drawn = resample(self.how, number, fold.ground_truth, values, aggregates)
            mean: dict[tuple[str, str, str], list[np.ndarray]] = {}
            for key, given in drawn.items():
                mean.setdefault(origin[key], []).append(given)
            for cell, seeds in mean.items():
                found.setdefault(cell, []).append(np.mean(seeds, axis=0))
        return {cell: np.mean(folds, axis=0) for cell, folds in found.items()}

    def _shares(self, run: str, way: Direction, name: str) -> list[Shares]:
        """Per fold, what each image adds to the difference from the baseline."""
        shares = []
        for fold in self.folds:
            of, size = clusters(fold.ground_truth)
            rows = fold.ground_truth.queries(way)
            mine, theirs = (self._mean_per_query(one, way, name, fold)[rows] for one in (run, self.baseline))
            shares.append(shares_of(mine - theirs, of[way][rows], size))
        return shares

    def _cell_shares(self, run: str, cell: tuple[str, str]) -> list[Shares] | None:
        """The same for a cell that may be a sum over directions; None where it is no mean."""
        way, name = cell
        member = next((one for one in self.sums if one.name == name), None)
        parts = [(way, name)] if member is None else [(d, part) for d in DIRECTIONS for part in member.parts]
        if any(self.aggregates[part] is not MEAN for _, part in parts):
            return None
        scale = 1.0 if member is None else 100.0
        several = [self._shares(run, "i2t" if d == "i2t" else "t2i", part) for d, part in parts]
        return [
            Shares(
                scale * np.sum([one.parts for one in folds], axis=0),
                scale * np.sum([one.residuals for one in folds], axis=0),
                np.any([one.used for one in folds], axis=0),
            )
            for folds in zip(*several, strict=True)
        ]

    def differences(self, flips: int) -> list[Difference]:
        """All differences, their p-values not yet corrected."""
        cells = self.cells()
        samples = self._samples() if self.how.samples else {}
        values = self.values()
        others = [run for run in self.groups if run != self.baseline]
        shares = {(run, cell): self._cell_shares(run, cell) for run in others for cell in cells}
        tested = [(key, given) for key, given in shares.items() if given is not None]
        randomised: dict[tuple[str, tuple[str, str]], float] = {}
        if tested:
            columns = [np.concatenate([one.parts for one in given]) / len(given) for _, given in tested]
            p = sign_flip_tests(np.stack(columns, axis=1), flips, self.how.seed)
            randomised = {key: float(value) for (key, _), value in zip(tested, p, strict=True)}
        found = []
        for run in others:
            for cell in cells:
                of_run, of_base = (values[cell][one].mean for one in (run, self.baseline))
                given = shares[run, cell]
                ends = self._interval(samples, run, cell)
                less = next((one.kind == "rank" for one in self.plain if one.name == cell[1]), False)
                gap = of_run - of_base
                found.append(
                    Difference(
                        run=run,
                        direction=cell[0],
                        measure=cell[1],
                        difference=gap,
                        low=ends[0],
                        high=ends[1],
                        p_randomisation=randomised.get((run, cell)),
                        p_t=None if given is None else t_test(given),
                        p=None,
                        better=None if gap == 0 else (gap < 0) == less,
                    )
                )
        return found

    def _interval(
        self, samples: dict[tuple[str, str, str], np.ndarray], run: str, cell: tuple[str, str]
    ) -> tuple[float | None, float | None]:
        if not samples:
            return None, None
        way, name = cell
        member = next((one for one in self.sums if one.name == name), None)
        parts = [(way, name)] if member is None else [(d, part) for d in DIRECTIONS for part in member.parts]
        scale = 1.0 if member is None else 100.0
        gaps = sum(samples[run, *part] - samples[self.baseline, *part] for part in parts)
        return interval(scale * np.asarray(gaps), self.how.confidence) or (None, None)


def _check(given: Mapping[str, np.ndarray], name: str, asked: np.ndarray, where: str) -> None:
    """Every query that is asked has a finite value, and no other has one."""
    if name not in given:
        raise UsageError(f"{where}: no values per query of {name}", f"evaluate again with --measure {name}")
    wrong = np.flatnonzero(np.isfinite(given[name]) != asked)
    if len(wrong):
        row = int(wrong[0])
        raise NumericalError(
            f"{where}: {name} of query {row} is {given[name][row]}, {len(wrong):,} queries are not as expected",
            "evaluate it again",
        )


def compare(
    runs: Mapping[str, Result | Sequence[Result]],
    measures: Sequence[str] | None = None,
    *,
    baseline: int | str = 0,
    test: str = "randomisation",
    correction: str = "bonferroni",
    samples: int = 1000,
    flips: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare runs with a baseline, measure by measure, from their values per query.

    Args:
        runs: by name, an evaluation, or several of one recipe with different seeds.
        measures: names; those that all have in common by default.
        baseline: the number or name of the run the others are compared with.
        test: ``"randomisation"`` (sign flips) or ``"t"``: which p-value is corrected and judged by;
            both are given.
        correction: ``"bonferroni"``, ``"holm"`` or ``"none"``.
        samples: bootstrap resamples for the intervals; 0 for none.
        flips: random swaps; a p-value is at least 1 / (flips + 1).
        confidence: coverage of the intervals.
        seed: of resamples and swaps.

    Raises:
        UsageError: fewer than two runs, a baseline, test or correction that does not exist.
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
    called = [
        name if len(group) == 1 else f"{name} (seed {number})"
        for name, group in groups.items()
        for number in range(len(group))
    ]
    results = [one for group in groups.values() for one in group]
    notes = check_comparable(results, called)
    how = Bootstrap(samples, confidence, seed)
    held = {
        name: list({measure: None for given in one.scores.values() for measure in given})
        for name, one in zip(called, results, strict=True)
    }
    compared = common_measures(held, measures)
    notes += check_same_gains(results, called, compared)
    work = PairedRuns(groups, base, results, called, compared, how)
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
    """The protocol without what differs from run to run, and of the compared measures alone."""
    protocols = [one.protocol for one in results]
    first = protocols[0]
    return replace(
        first,
        about={
            key: value
            for key, value in first.about.items()
            if all(key in other.about and other.about[key] == value for other in protocols)
        },
        any_of_k=tuple(name for name in first.any_of_k if name in measures),
        all_positives=tuple(name for name in first.all_positives if name in measures),
        compat=tuple(what for what in first.compat if what in measures or what == "ties"),
        gains={name: said for name, said in first.gains.items() if name in measures},
        samples=0,
    ).line()
