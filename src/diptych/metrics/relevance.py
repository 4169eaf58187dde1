"""Graded relevance beyond labels: by a named model, or by people's grades; and the gains that follow from it.

A relevance model of its own takes one pass over the scores more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.metrics.ground_truth import Direction, Positives, places_of, renumbered
from diptych.metrics.measuring import Gain, Gained
from diptych.metrics.runs import begins, places
from diptych.metrics.sources import CosineRows, DirectedScores, Rows, ScoreSource
from diptych.metrics.topk import BLOCK, Firsts, first_places


@dataclass(frozen=True, eq=False)
class Relevance:
    """A named model's rows of the same images and texts; their cosine says how relevant an item is."""

    images: np.ndarray  # (n, d) float32 rows; d need not be the evaluated model's
    texts: np.ndarray  # (m, d) float32 rows. Where queries are perturbed, of the perturbed queries
    # of the model, for the protocol, its fingerprint included where it has one
    name: str = "a given relevance model"

    def source(self, n_images: int, n_texts: int) -> CosineRows:
        for side, rows, size in (("image", self.images, n_images), ("text", self.texts, n_texts)):
            if len(rows) != size:
                text = f"{self.name}: {len(rows):,} {side} rows where {size:,} are evaluated"
                raise DataError(text, "embed the same collection and split with the relevance model")
        return CosineRows(self.images, self.texts)


@dataclass(frozen=True, eq=False)
class Grades:
    """Grades of pairs by people; 0 of a pair that is not there, the highest of a match without one."""

    images: np.ndarray  # (p,) image rows
    texts: np.ndarray  # (p,) text rows; no pair twice
    values: np.ndarray  # (p,) float64, 0 or more
    what: str = "given grades"  # where they come from, for the protocol
    top: float = 0.0  # the highest grade of the scale; that of ``values`` where it is 0

    def __post_init__(self) -> None:
        sizes = len(self.images), len(self.texts), len(self.values)
        if len(set(sizes)) > 1:
            text = "grades: {} images, {} texts and {} values are not the same pairs"
            raise DataError(text.format(*sizes))
        for bad in np.flatnonzero(~np.isfinite(self.values))[:1]:
            raise NumericalError(f"the grade of {self._pair(bad)} is {self.values[bad]}")
        for low in np.flatnonzero(self.values < 0)[:1]:
            text = f"the grade of {self._pair(low)} is {self.values[low]:g}, below 0"
            raise UsageError(text, "shift the scale so that the least relevant has 0")
        order = np.lexsort((self.texts, self.images))
        for twice in order[~begins(self.images[order], self.texts[order])][:1]:
            raise DataError(f"two grades of {self._pair(twice)}", "give each pair once")

    def _pair(self, entry: int) -> str:
        return f"image row {int(self.images[entry])} and text row {int(self.texts[entry])}"

    @property
    def highest(self) -> float:
        return self.top or float(self.values.max(initial=0.0)) or 1.0

    def part(self, images: Rows, texts: Rows, n_images: int, n_texts: int) -> Grades:
        rows = renumbered(np.arange(n_images)[images], n_images)[self.images]
        columns = renumbered(np.arange(n_texts)[texts], n_texts)[self.texts]
        keep = (rows >= 0) & (columns >= 0)
        return Grades(rows[keep], columns[keep], self.values[keep], self.what, self.highest)

    def pairs(self, direction: Direction) -> tuple[np.ndarray, np.ndarray]:
        return (self.images, self.texts) if direction == "i2t" else (self.texts, self.images)

    def ungraded(self, positives: Positives, direction: Direction) -> np.ndarray:
        return ~np.isin(positives.keys, positives.keys_of(*self.pairs(direction)))


class GradeTable:
    """Grades of pairs, seen from one direction, as a sorted table."""

    def __init__(self, positives: Positives, direction: Direction, grades: Grades | None) -> None:
        self._positives = positives
        queries, rows, values = positives.queries, positives.rows, np.ones(len(positives.rows))
        if grades is not None:
            missing = grades.ungraded(positives, direction)
            rated = grades.pairs(direction)
            queries = np.concatenate([queries[missing], rated[0]])
            rows = np.concatenate([rows[missing], rated[1]])
            values = np.concatenate([np.full(int(missing.sum()), grades.highest), grades.values])
        outside = (queries < 0) | (queries >= positives.n_queries) | (rows < 0) | (rows >= positives.gallery)
        for bad in np.flatnonzero(outside)[:1]:
            raise DataError(
                f"a grade is of query row {queries[bad]} and gallery row {rows[bad]}, there are "
                f"{positives.n_queries:,} and {positives.gallery:,}",
                "give the grades of the same images and texts that are evaluated",
            )
        keys = positives.keys_of(queries, rows)
        order = np.argsort(keys)
        self._keys, self._queries = keys[order], queries[order]
        self._values = values[order].astype(np.float64)

    def of(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        place, graded = places_of(self._keys, self._positives.keys_of(queries, rows))
        grades = np.zeros(len(rows))
        grades[graded] = self._values[place[graded]]
        return grades

    def best(self, gain: Gain, depth: int) -> np.ndarray:
        query, values, n = self._queries, gain.transform(self._values), self._positives.n_queries
        order, place = np.lexsort((-values, query)), places(np.bincount(query, minlength=n))
        found = np.zeros((n, depth))
        inside = place < depth
        found[query[order][inside], place[inside]] = values[order][inside]
        return found

    def mean(self, gain: Gain) -> np.ndarray:
        values = gain.transform(self._values)
        total = np.bincount(self._queries, weights=values, minlength=self._positives.n_queries)
        return np.asarray(total / self._positives.gallery)


def gains_at_places(firsts: Firsts, values: np.ndarray, depth: int, ties: str) -> np.ndarray:
    """Return (q, depth) the gain at each of the first places under a tie rule, from the gains of the entries.

    ``"expected"``: every place of a tie group holds the group's mean gain, which makes discounted sums exact
    expectations over all orders; ``"pessimistic"``: the tied with the least gain come first; ``"optimistic"``:
    those with the greatest; ``"compat"``: later gallery rows.
    """
    local, place = firsts.local, firsts.place
    group = np.cumsum(begins(local, firsts.scores)) - 1
    if ties == "expected":
        placed = (np.bincount(group, weights=values) / np.bincount(group))[group]
    else:
        key = {"compat": -firsts.rows, "optimistic": -values}.get(ties, values)
        placed = values[np.lexsort((key, group))]
    inside = place < depth
    found = np.empty((len(firsts.queries), depth))
    found[local[inside], place[inside]] = placed[inside]
    return found


def graded_gains(
    source: ScoreSource,
    positives: Positives,
    direction: Direction,
    gains: Sequence[Gain],
    depth: int,
    *,
    grades: Grades | None = None,
    ties: str = "expected",
    chance: bool = True,
    block: int = BLOCK,
) -> dict[Gain, Gained]:
    table, depth = GradeTable(positives, direction, grades), min(depth, positives.gallery)
    first = {gain: np.empty((positives.n_queries, depth)) for gain in gains}
    for firsts in first_places(DirectedScores(source, direction), depth, block=block):
        given = table.of(firsts.queries[firsts.local], firsts.rows)
        for gain in gains:
            first[gain][firsts.queries] = gains_at_places(firsts, gain.transform(given), depth, ties)
    expected = {gain: _everywhere(table.mean(gain), depth) if chance else None for gain in gains}
    return {gain: Gained(first[gain], table.best(gain, depth), expected[gain]) for gain in gains}


def similar_gains(
    source: ScoreSource,
    positives: Positives,
    direction: Direction,
    gains: Sequence[Gain],
    depth: int,
    *,
    by: ScoreSource | None = None,
    ties: str = "expected",
    best: bool = True,
    chance: bool = True,
    block: int = BLOCK,
) -> dict[Gain, Gained]:
    """Return the gains of all queries of one direction by similarity.

    ``by`` are the cosines of a relevance model; chance is then that of a random order. Without it they are those
    of the evaluated model, which orders items by their own gains: chance keeps that order and puts matches
    anywhere in it.
    """
    similar = source.cosines() if by is None else by
    assert similar is not None  # an evaluation without cosines and relevance model is refused before
    depth, most = min(depth, positives.gallery), int(positives.counts.max(initial=0))
    shape = (positives.n_queries, depth)
    share = (positives.counts / max(positives.gallery, 1))[:, None]
    deep = depth + (most if best else 0)
    scored, other = DirectedScores(source, direction), DirectedScores(similar, direction)
    first, blind, ideal = ({gain: np.empty(shape) for gain in gains} for _ in range(3))
    sums = {gain: np.zeros(shape[0]) for gain in gains}

    def add_up(queries: slice, tile: np.ndarray) -> None:
        for gain in gains:
            sums[gain][queries] += gain.transform(tile).sum(axis=1, dtype=np.float64)

    for firsts in first_places(scored, deep if similar is source else depth, block=block):
        queries = firsts.queries[firsts.local]
        scores = firsts.scores if similar is source else other.exact(queries, firsts.rows)
        label = positives.holds(queries, firsts.rows)
        for gain in gains:
            values = gain.transform(scores)
            first[gain][firsts.queries] = gains_at_places(firsts, np.where(label, 1.0, values), depth, ties)
            if chance and by is None:
                blind[gain][firsts.queries] = gains_at_places(firsts, values, depth, ties)
        if best and similar is source:
            _find_best(firsts, positives, gains, depth, ideal)
    if similar is not source and (best or (chance and by is not None)):
        visit = add_up if chance and by is not None else None
        for firsts in first_places(other, deep if best else 1, block=block, visit=visit):
            if best:
                _find_best(firsts, positives, gains, depth, ideal)
    found = {}
    for gain in gains:
        expected = None
        if chance and by is None:
            expected = share + (1.0 - share) * blind[gain]
        elif chance:
            labelled = 1.0 - gain.transform(other.exact(positives.queries, positives.rows))
            more = np.bincount(positives.queries, weights=labelled, minlength=shape[0])
            expected = _everywhere((sums[gain] + more) / positives.gallery, depth)
        found[gain] = Gained(first[gain], ideal[gain] if best else None, expected)
    return found


def _everywhere(mean: np.ndarray, depth: int) -> np.ndarray:
    return np.broadcast_to(mean[:, None], (len(mean), depth))


def _find_best(
    firsts: Firsts, positives: Positives, gains: Sequence[Gain], depth: int, ideal: dict[Gain, np.ndarray]
) -> None:
    """Fill in the best gains of some queries: all matches, then the most similar others."""
    most = int(positives.counts.max(initial=0))
    deep = min(depth + most, positives.gallery)
    inside = firsts.place < deep
    rows, scores = (values[inside].reshape(-1, deep) for values in (firsts.rows, firsts.scores))
    label = positives.holds(firsts.queries[:, None], rows)
    matches = np.arange(min(most, depth)) < positives.counts[firsts.queries][:, None]
    for gain in gains:
        others = np.where(label, -np.inf, gain.transform(scores))
        both = np.concatenate([np.where(matches, 1.0, -np.inf), others], axis=1)
        ideal[gain][firsts.queries] = -np.sort(-both, axis=1)[:, :depth]
