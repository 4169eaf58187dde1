"""From lists of the first places to what they are worth, and to the best and the mean of the gallery.

One pass over the scores gives lists, ideal lists and chance levels where the evaluated model also says how
relevant an item is; a relevance model of its own takes one more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.context import track
from diptych.metrics.gain_measure import Gain, Gained
from diptych.metrics.grade_table import GradeTable
from diptych.metrics.positives import Direction, Positives
from diptych.metrics.ranks import DEFAULT_BLOCK
from diptych.metrics.relevance import Grades
from diptych.metrics.sided import SidedScores
from diptych.metrics.sources import ScoreSource
from diptych.metrics.ties import check_rule

# The first places of every query's ranking, with all that ties with the last of them; exact, in blocks.
#
# A float32 product proposes a few more than are wanted; they are scored exactly (see
# :mod:`diptych.metrics.products`). Where its rounding bound cannot exclude that something as good was
# left out (long ties, a collapsed model), the whole gallery is scored again for those queries in float64,
# and exactly what lies within that type's bound. Memory is bounded by the block.

Visit = Callable[[slice, np.ndarray], None]
"""Is shown some queries and a tile of their scores, fast ones where there are any."""

_SPARE = 16  # candidates beyond the places wanted
_QUERIES = 500
_CAREFUL_SCORES = 250_000  # scores computed carefully at once
_FIRST = 16  # so many times as many columns as candidates are looked at before all others
_FEW_SHARE = 1 / 8  # up to this share of a tile, picking single scores is quicker than partitioning it


@dataclass(frozen=True, eq=False)
class Firsts:
    """The beginning of some queries' rankings.

    Attributes:
        queries: (q,) which queries.
        start: (q + 1,) each query's slice of the arrays below.
        rows: gallery rows, best first, of equal scores the lower row first; none that ties with the last
            is left out.
        scores: their exact scores, float64.
    """

    queries: np.ndarray
    start: np.ndarray
    rows: np.ndarray
    scores: np.ndarray

    @property
    def local(self) -> np.ndarray:
        """Which of ``queries`` each entry belongs to."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.start))

    @property
    def place(self) -> np.ndarray:
        """Where each entry stands in its list, from 0."""
        place: np.ndarray = np.arange(len(self.rows)) - self.start[:-1][self.local]
        return place


def first_places(
    sided: SidedScores, depth: int, *, block: int = 2_500_000, visit: Visit | None = None
) -> Iterator[Firsts]:
    """The first ``min(depth, gallery)`` places of all queries, some queries at a time, in any order."""
    depth = min(depth, sided.gallery)
    band = sided.band
    step = min(_QUERIES, block)
    for begin in track(range(0, sided.n_queries, step), "first places", unit="blocks"):
        here = slice(begin, min(begin + step, sided.n_queries))
        if band is None:
            yield from _careful(sided, here, depth, block, visit)
            continue
        candidates, worst = _propose(sided, here, min(depth + _SPARE, sided.gallery), block // step, visit)
        found, last = _ordered(sided, here, candidates, depth)
        unsure = np.zeros(len(last), dtype=bool)
        if candidates.shape[1] < sided.gallery:
            # What was left out scores at most `worst` + band; only if that is less is nothing as good.
            unsure = ~(worst < last - band[here])
        yield _taken(found, np.flatnonzero(~unsure))
        again = np.flatnonzero(unsure) + begin
        for run in np.split(again, np.flatnonzero(np.diff(again) > 1) + 1):
            if len(run):
                yield from _careful(sided, slice(int(run[0]), int(run[-1]) + 1), depth, block, None)


def _propose(
    sided: SidedScores, here: slice, count: int, columns: int, visit: Visit | None
) -> tuple[np.ndarray, np.ndarray]:
    """(q, count) rows whose fast scores are the largest, and the least of these scores, -inf for all rows."""
    size = here.stop - here.start
    columns = max(1, min(columns, sided.gallery))
    buffer = np.empty(size * columns, dtype=np.float32)
    scores = np.full((size, count), -np.inf, dtype=np.float32)
    rows = np.zeros((size, count), dtype=np.int64)
    for begin in range(0, sided.gallery, columns):
        some = slice(begin, min(begin + columns, sided.gallery))
        tile = buffer[: size * (some.stop - begin)].reshape(size, -1)
        sided.fast(here, some, tile)
        if visit is not None:
            visit(here, tile)
        first = 0 if begin else min(_FIRST * count, tile.shape[1])  # so that the rest has a bar to reach
        for piece in (slice(0, first), slice(first, tile.shape[1])):
            new_scores, columns_of = _worth_a_look(tile[:, piece], scores.min(axis=1))
            if new_scores.shape[1]:
                scores = np.concatenate([scores, new_scores], axis=1)
                rows = np.concatenate([rows, begin + piece.start + columns_of], axis=1)
                keep = np.argpartition(scores, scores.shape[1] - count, axis=1)[:, -count:]
                scores = np.take_along_axis(scores, keep, axis=1)
                rows = np.take_along_axis(rows, keep, axis=1)
    return rows, scores.min(axis=1).astype(np.float64)


def _worth_a_look(tile: np.ndarray, least: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores above ``least`` and their columns, padded with -inf; the whole tile where they are many."""
    above = tile > least[:, None]
    if np.count_nonzero(above) > _FEW_SHARE * tile.size:
        return tile, np.broadcast_to(np.arange(tile.shape[1]), tile.shape)
    query, column = np.divmod(np.flatnonzero(above), max(1, tile.shape[1]))
    counts = np.bincount(query, minlength=len(tile))
    place = np.arange(len(query)) - (np.cumsum(counts) - counts)[query]
    scores = np.full((len(tile), int(counts.max(initial=0))), -np.inf, dtype=tile.dtype)
    columns = np.zeros(scores.shape, dtype=np.int64)
    scores[query, place], columns[query, place] = tile[query, column], column
    return scores, columns


def _ordered(
    sided: SidedScores, here: slice, candidates: np.ndarray, depth: int
) -> tuple[Firsts, np.ndarray]:
    """Candidates in exact order, as far as they tie with the last place, and the last place's score."""
    size, count = candidates.shape
    queries = np.arange(here.start, here.stop)
    scores = sided.exact(np.repeat(queries, count), candidates.reshape(-1)).reshape(size, count)
    order = np.lexsort((candidates, -scores))
    rows, scores = np.take_along_axis(candidates, order, axis=1), np.take_along_axis(scores, order, axis=1)
    last = scores[:, depth - 1]
    keep = scores >= last[:, None]
    start = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    return Firsts(queries, start, rows[keep], scores[keep]), last


def _taken(found: Firsts, some: np.ndarray) -> Firsts:
    """Only some of the queries."""
    if len(some) == len(found.queries):
        return found
    counts = np.diff(found.start)
    inside = np.zeros(len(counts), dtype=bool)
    inside[some] = True
    entries = np.repeat(inside, counts)
    start = np.concatenate([[0], np.cumsum(counts[some])])
    return Firsts(found.queries[some], start, found.rows[entries], found.scores[entries])


def _careful(
    sided: SidedScores, here: slice, depth: int, block: int, visit: Visit | None
) -> Iterator[Firsts]:
    """Some neighbouring queries against the whole gallery, with every score exact that could count."""
    step = max(1, block // sided.gallery)
    for begin in range(here.start, here.stop, step):
        part = slice(begin, min(begin + step, here.stop))
        scores, band = _whole_rows(sided, part)
        if visit is not None:
            visit(part, scores)
        least = np.partition(scores, sided.gallery - depth, axis=1)[:, sided.gallery - depth, None]
        near = scores >= (least if band is None else least - 2 * band[:, None])
        if band is not None:
            _make_exact(sided, part, scores, near)
        query, row = np.nonzero(near)  # rows ascend, so that a stable sort leaves the lower one first
        values = scores[query, row]
        order = np.argsort(-values, kind="stable")
        order = order[np.argsort(query[order], kind="stable")]
        query, row, values = query[order], row[order], values[order]
        counts = np.bincount(query, minlength=len(scores))
        first = np.cumsum(counts) - counts
        keep = values >= values[first + depth - 1][query]
        start = np.concatenate([[0], np.cumsum(np.bincount(query[keep], minlength=len(scores)))])
        yield Firsts(np.arange(part.start, part.stop), start, row[keep], values[keep])


def _columns(sided: SidedScores, queries: int) -> Iterator[slice]:
    step = max(1, _CAREFUL_SCORES // queries)
    for begin in range(0, sided.gallery, step):
        yield slice(begin, min(begin + step, sided.gallery))


def _whole_rows(sided: SidedScores, part: slice) -> tuple[np.ndarray, np.ndarray | None]:
    """(q, gallery) float64 scores and how far each query's may be from the exact ones; None: they are exact."""
    scores = np.empty((part.stop - part.start, sided.gallery))
    bands: list[np.ndarray] = []

    def none(tile: np.ndarray, band: np.ndarray) -> np.ndarray:
        bands.append(band)
        return np.zeros(tile.shape, dtype=bool)

    for some in _columns(sided, len(scores)):
        scores[:, some] = sided.careful(part, some, none)
    return scores, bands[0] if bands else None


def _make_exact(sided: SidedScores, part: slice, scores: np.ndarray, near: np.ndarray) -> None:
    """Replace the marked scores by exact ones."""
    for some in _columns(sided, len(scores)):
        mask = near[:, some]
        if mask.any():
            tile = sided.careful(part, some, lambda tile, band, mask=mask: mask)  # type: ignore[misc]
            scores[:, some][mask] = tile[mask]


# What stands at each of the first places of a ranking, when ties leave the order open.
#
# A discounted sum is linear in the gains at the places, so its expectation over all orders of the tied is
# the sum over expected gains: at every place of a tie group the mean gain of the group. That is exact, and
# takes one look at every member of a group, also of one that the cut-off runs through.


class Places:
    """The first places of some queries under a tie rule.

    ``"expected"``: every place of a tie group holds the group's mean gain; ``"pessimistic"``: the tied with
    the least gain come first; ``"optimistic"``: those with the greatest; ``"compat"``: later gallery rows.
    """

    def __init__(self, firsts: Firsts, depth: int, ties: str) -> None:
        check_rule(ties)
        local, place = firsts.local, firsts.place
        begins = np.ones(len(local), dtype=bool)
        begins[1:] = (local[1:] != local[:-1]) | (firsts.scores[1:] != firsts.scores[:-1])
        self._group = np.cumsum(begins) - 1
        self._rows, self._ties = firsts.rows, ties
        self._shape = (len(firsts.queries), depth)
        self._inside = np.flatnonzero(place < depth)
        self._at = (local[self._inside], place[self._inside])

    def gains(self, values: np.ndarray) -> np.ndarray:
        """(q, depth) the gain at each place."""
        group = self._group
        if self._ties == "expected":
            sizes = np.bincount(group)
            placed = values
            if len(sizes) < len(group):
                placed = (np.bincount(group, weights=values) / sizes)[group]
        else:
            key = -self._rows if self._ties == "compat" else values
            placed = values[np.lexsort((-key if self._ties == "optimistic" else key, group))]
        found = np.empty(self._shape)
        found[self._at] = placed[self._inside]
        return found


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
        similar: whose scores say how relevant an item without a label is; it may be ``source``. None where
            only grades are asked for.
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
