"""Differences between runs, query by query: what a comparison computes before it corrects."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from diptych.core.errors import NumericalError, UsageError
from diptych.evaluation.aggregates import MEAN, Aggregate
from diptych.evaluation.bootstrap import Bootstrap, clusters, interval, resample
from diptych.evaluation.comparable import text_image_of
from diptych.evaluation.comparison import Cell, Difference
from diptych.evaluation.ground_truth import DIRECTIONS, Direction, GroundTruth
from diptych.evaluation.measuring import GainMeasure, Measure, resolve
from diptych.evaluation.paired import Shares, randomisation_tests, shares_of, t_test
from diptych.evaluation.partitioning import Fold, partition
from diptych.evaluation.result import BOTH, Result
from diptych.evaluation.seeds import Spread

__all__ = ["PairedRuns"]


class PairedRuns:
    """The runs' values per query, cut into folds and clusters of queries.

    Args:
        groups: each run's evaluations, one per seed; all of the same test set.
        baseline: the run the others are compared with.
        results: all evaluations.
        called: their names, for messages.
        measures: names of what is compared.
        how: the bootstrap.

    Raises:
        NumericalError: a value is NaN.
        UsageError: a measure has no values per query.
    """

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

    def cells(self) -> list[Cell]:
        """What is printed, in the order asked for."""
        sums = {one.name for one in self.sums}
        return [(way, name) for name in self.asked for way in ((BOTH,) if name in sums else DIRECTIONS)]

    def values(self) -> dict[Cell, dict[str, Spread]]:
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

    def _cell_shares(self, run: str, cell: Cell) -> list[Shares] | None:
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
        randomised: dict[tuple[str, Cell], float] = {}
        if tested:
            columns = [np.concatenate([one.parts for one in given]) / len(given) for _, given in tested]
            p = randomisation_tests(np.stack(columns, axis=1), flips, self.how.seed)
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
        self, samples: dict[tuple[str, str, str], np.ndarray], run: str, cell: Cell
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
    """Every query that is asked has a finite value, and no other has one.

    Raises:
        NumericalError: one has not.
        UsageError: the measure has no values per query.
    """
    if name not in given:
        raise UsageError(f"{where}: no values per query of {name}", f"evaluate again with --measure {name}")
    wrong = np.flatnonzero(np.isfinite(given[name]) != asked)
    if len(wrong):
        row = int(wrong[0])
        raise NumericalError(
            f"{where}: {name} of query {row} is {given[name][row]}, {len(wrong):,} queries are not as expected",
            "evaluate it again",
        )
