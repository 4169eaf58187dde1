"""From lists of the first places to what they are worth, and to the best and the mean of the gallery.

One pass over the scores gives lists, ideal lists and chance levels where the evaluated model also says how
relevant an item is; a relevance model of its own takes one more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.evaluation.first_places import Firsts, first_places
from diptych.evaluation.gain_measure import Gain, Gained
from diptych.evaluation.grade_table import GradeTable
from diptych.evaluation.ground_truth import Direction, Positives
from diptych.evaluation.placing import Places
from diptych.evaluation.ranks import DEFAULT_BLOCK
from diptych.evaluation.relevance import Grades
from diptych.evaluation.sided import SidedScores
from diptych.evaluation.sources import ScoreSource
from diptych.evaluation.ties import check_rule

__all__ = ["gained"]


def gained(
    source: ScoreSource,
    similar: ScoreSource | None,
    positives: Positives,
    direction: Direction,
    gains: Sequence[Gain],
    depth: int,
    *,
    ties: str = "expected",
    grades: Grades | None = None,
    best: bool = True,
    mean: bool = True,
    block: int = DEFAULT_BLOCK,
) -> dict[Gain, Gained]:
    """Gains of all queries of one direction.

    Args:
        source: what ranks.
        similar: whose scores say how relevant an item without a label is; it may be ``source``. None where
            only grades are asked for.
        positives: which gallery rows are labelled matches of which queries.
        direction: who asks.
        gains: what items are worth; equal ones count once.
        depth: how many places are looked at.
        ties: the tie rule.
        grades: grades of pairs; without them a match has grade 1.
        best: whether the best gains are wanted.
        mean: whether mean gains are wanted, for chance levels; similarities are then summed in the
            precision of the fast product.
        block: scores held at once.

    Returns:
        Per kind of gain, the gains.
    """
    check_rule(ties)
    work = _Work(positives, direction, list(dict.fromkeys(gains)), depth, ties, grades, best, mean, block)
    return work.gains_of(source, similar)


class _Work:
    def __init__(
        self,
        positives: Positives,
        direction: Direction,
        gains: list[Gain],
        depth: int,
        ties: str,
        grades: Grades | None,
        best: bool,
        mean: bool,
        block: int,
    ) -> None:
        self.positives, self.direction, self.ties, self.block = positives, direction, ties, block
        self.similar = [gain for gain in gains if gain.of == "similarity"]
        self.graded = [gain for gain in gains if gain.of == "grade"]
        self.depth = min(depth, positives.gallery)
        self.most = int(positives.counts.max(initial=0))
        self.wants_best, self.wants_mean = best, mean
        self.grades = GradeTable(positives, direction, grades) if self.graded else None
        shape = (positives.n_queries, self.depth)
        self.first = {gain: np.empty(shape) for gain in gains}
        self.best = {gain: np.empty(shape) for gain in self.similar} if best else {}
        self.sums = {gain: np.zeros(shape[0]) for gain in self.similar} if mean else {}

    def gains_of(self, source: ScoreSource, similar: ScoreSource | None) -> dict[Gain, Gained]:
        sided = self._sided(source)
        shared = similar is source and bool(self.similar)
        other = None if similar is None or shared else self._sided(similar)
        deep = self.depth + (self.most if shared and self.wants_best else 0)
        visit = self._add_up if shared and self.wants_mean else None
        for firsts in first_places(sided, deep, block=self.block, visit=visit):
            self._place(firsts, other)
            if shared and self.wants_best:
                self._find_best(firsts)
        if other is not None and self.similar and (self.wants_best or self.wants_mean):
            deep = self.depth + self.most if self.wants_best else 1
            visit = self._add_up if self.wants_mean else None
            for firsts in first_places(other, deep, block=self.block, visit=visit):
                if self.wants_best:
                    self._find_best(firsts)
        return {gain: self._gained(gain, other or sided) for gain in (*self.similar, *self.graded)}

    def _sided(self, source: ScoreSource) -> SidedScores:
        return SidedScores(source, self.direction, self.positives.n_queries, self.positives.gallery)

    def _add_up(self, queries: slice, tile: np.ndarray) -> None:
        for gain in self.similar:
            self.sums[gain][queries] += gain.transform(tile).sum(axis=1, dtype=np.float64)

    def _place(self, firsts: Firsts, other: SidedScores | None) -> None:
        """The gains at the first places of some queries."""
        queries, places = firsts.queries[firsts.local], Places(firsts, self.depth, self.ties)
        if self.similar:
            scores = firsts.scores if other is None else other.exact(queries, firsts.rows)
            label = self.positives.holds(queries, firsts.rows)
            for gain in self.similar:
                values = np.where(label, 1.0, gain.transform(scores))
                self.first[gain][firsts.queries] = places.gains(values)
        for gain in self.graded:
            assert self.grades is not None
            values = gain.transform(self.grades.of(queries, firsts.rows))
            self.first[gain][firsts.queries] = places.gains(values)

    def _find_best(self, firsts: Firsts) -> None:
        """Of some queries: all matches, then the most similar others; lists are by similarity here."""
        deep = min(self.depth + self.most, self.positives.gallery)
        inside = firsts.place < deep
        rows, scores = (values[inside].reshape(-1, deep) for values in (firsts.rows, firsts.scores))
        label = self.positives.holds(np.repeat(firsts.queries, deep), rows.reshape(-1)).reshape(rows.shape)
        matches = np.arange(min(self.most, self.depth)) < self.positives.counts[firsts.queries][:, None]
        for gain in self.similar:
            others = np.where(label, -np.inf, gain.transform(scores))
            both = np.concatenate([np.where(matches, 1.0, -np.inf), others], axis=1)
            self.best[gain][firsts.queries] = -np.sort(-both, axis=1)[:, : self.depth]

    def _gained(self, gain: Gain, sided: SidedScores) -> Gained:
        best, mean = self.best.get(gain), None
        if gain.of == "grade":
            assert self.grades is not None
            best = self.grades.best(gain, self.depth) if self.wants_best else None
            mean = self.grades.mean(gain) if self.wants_mean else None
        elif self.wants_mean:
            queries, rows = self.positives.queries, self.positives.rows
            labelled = 1.0 - gain.transform(sided.exact(queries, rows))
            more = np.bincount(queries, weights=labelled, minlength=self.positives.n_queries)
            mean = (self.sums[gain] + more) / self.positives.gallery
        return Gained(self.first[gain], best, mean)
