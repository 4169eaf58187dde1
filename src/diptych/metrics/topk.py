"""The first places of every query's ranking: exact, in blocks, ties broken by the lower row.

A float32 product proposes a few more candidates than are requested; they are scored exactly (see
:mod:`diptych.metrics.products`). Where its rounding bound cannot exclude that something as good was left out
(long ties, a collapsed model), the gallery is scored again for those queries in float64, and exactly what lies
within that bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.metrics.ground_truth import Direction
from diptych.metrics.runs import blocks, places, starts
from diptych.metrics.sources import DirectedScores, RowProducts, ScoreSource

# is shown some queries and a tile of their scores, fast ones where there are any
Visit = Callable[[slice, np.ndarray], None]

_SPARE = 16  # candidates beyond the requested places
_QUERIES = 500
_CAREFUL_SCORES = 250_000  # scores computed carefully at once
_FIRST = 16  # so many times as many columns as candidates are looked at before all others
_FEW_SHARE = 1 / 8  # up to this share of a tile, picking single scores is quicker than partitioning it
BLOCK = 2_500_000  # scores held at once


@dataclass(frozen=True, eq=False)
class Firsts:
    queries: np.ndarray  # (q,) which queries
    start: np.ndarray  # (q + 1,) each query's slice of the arrays below
    # gallery rows, best first, of equal scores the lower row first; none that ties with the last is left out
    rows: np.ndarray
    scores: np.ndarray  # their exact scores, float64

    @property
    def local(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.queries)), np.diff(self.start))

    @property
    def place(self) -> np.ndarray:
        return places(np.diff(self.start))

    def taken(self, inside: np.ndarray) -> Firsts:
        entries, start = inside[self.local], starts(np.diff(self.start)[inside])
        return Firsts(self.queries[inside], start, self.rows[entries], self.scores[entries])


def top_k(
    queries: np.ndarray, gallery: np.ndarray, k: int, *, block: int = BLOCK
) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``min(k, m)`` gallery rows of the greatest inner product with every query, best first.

    Args:
        queries: (n, d) float32 rows, possibly memory-mapped.
        gallery: (m, d) float32 rows.
        block: scores held at once.

    Returns:
        (n, min(k, m)) int64 gallery rows, of equal scores the lower first, and their exact scores, float64.
    """
    return best_of(RowProducts(queries, gallery, sides=("query", "gallery")), "i2t", k, block=block)


def best_of(
    source: ScoreSource, direction: Direction, k: int, *, block: int = BLOCK
) -> tuple[np.ndarray, np.ndarray]:
    """Return (n_queries, min(k, gallery)) gallery rows of the best scores, best first, and the scores."""
    for what, value in (("k", k), ("block", block)):
        if value < 1:
            raise UsageError(f"{what} is {value}, it must be at least 1")
    scored = DirectedScores(source, direction)
    if not scored.gallery:
        raise DataError(f"{scored.n_queries} queries cannot search a gallery of 0 rows")
    k = min(k, scored.gallery)
    rows = np.empty((scored.n_queries, k), dtype=np.int64)
    scores = np.empty((scored.n_queries, k), dtype=np.float64)
    for firsts in first_places(scored, k, block=block, note="top k"):
        inside = firsts.place < k
        rows[firsts.queries] = firsts.rows[inside].reshape(-1, k)
        scores[firsts.queries] = firsts.scores[inside].reshape(-1, k)
    return rows, scores


def first_places(
    scored: DirectedScores,
    depth: int,
    *,
    block: int = BLOCK,
    visit: Visit | None = None,
    note: str = "first places",
) -> Iterator[Firsts]:
    """Yield the first ``min(depth, gallery)`` places of all queries, some queries at a time, in any order."""
    depth = min(depth, scored.gallery)
    band = scored.band
    step = min(_QUERIES, block)
    for here in track(list(blocks(scored.n_queries, step)), note, unit="blocks"):
        if band is None:
            yield from _careful(scored, here, depth, block, visit)
            continue
        candidates, worst = _propose(scored, here, min(depth + _SPARE, scored.gallery), block // step, visit)
        found, last = _ordered(scored, here, candidates, depth)
        unsure = np.zeros(len(last), dtype=bool)
        if candidates.shape[1] < scored.gallery:
            # What was left out scores at most `worst` + band; only if that is less is nothing as good.
            unsure = ~(worst < last - band[here])
        yield found.taken(~unsure) if unsure.any() else found
        again = np.flatnonzero(unsure) + here.start
        for run in np.split(again, np.flatnonzero(np.diff(again) > 1) + 1):
            if len(run):
                yield from _careful(scored, slice(int(run[0]), int(run[-1]) + 1), depth, block, None)


def _propose(
    scored: DirectedScores, here: slice, count: int, columns: int, visit: Visit | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return (q, count) rows whose fast scores are the largest, and (q,) the least of these scores."""
    size = here.stop - here.start
    columns = max(1, min(columns, scored.gallery))
    buffer = np.empty(size * columns, dtype=np.float32)
    scores = np.full((size, count), -np.inf, dtype=np.float32)
    rows = np.zeros((size, count), dtype=np.int64)
    for some in blocks(scored.gallery, columns):
        begin = some.start
        tile = buffer[: size * (some.stop - begin)].reshape(size, -1)
        scored.fast(here, some, tile)
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
    """Return scores above ``least`` and their columns, padded with -inf; the whole tile where they are many."""
    above = tile > least[:, None]
    if np.count_nonzero(above) > _FEW_SHARE * tile.size:
        return tile, np.broadcast_to(np.arange(tile.shape[1]), tile.shape)
    query, column = np.divmod(np.flatnonzero(above), max(1, tile.shape[1]))
    counts = np.bincount(query, minlength=len(tile))
    place = places(counts)
    scores = np.full((len(tile), int(counts.max(initial=0))), -np.inf, dtype=tile.dtype)
    columns = np.zeros(scores.shape, dtype=np.int64)
    scores[query, place], columns[query, place] = tile[query, column], column
    return scores, columns


def _ordered(
    scored: DirectedScores, here: slice, candidates: np.ndarray, depth: int
) -> tuple[Firsts, np.ndarray]:
    """Return candidates in exact order, as far as they tie with the last place, and the last place's score."""
    size, count = candidates.shape
    queries = np.arange(here.start, here.stop)
    scores = scored.exact(np.repeat(queries, count), candidates.reshape(-1)).reshape(size, count)
    order = np.lexsort((candidates, -scores))
    rows, scores = np.take_along_axis(candidates, order, axis=1), np.take_along_axis(scores, order, axis=1)
    last = scores[:, depth - 1]
    keep = scores >= last[:, None]
    return Firsts(queries, starts(keep.sum(axis=1)), rows[keep], scores[keep]), last


def _careful(
    scored: DirectedScores, here: slice, depth: int, block: int, visit: Visit | None
) -> Iterator[Firsts]:
    """Score some neighbouring queries against the whole gallery, exactly where it could count."""
    for part in blocks(here.stop, block // scored.gallery, here.start):
        scores = np.empty((part.stop - part.start, scored.gallery))
        bands: list[np.ndarray] = []  # how far each query's scores may be from exact; none: they are exact

        def nothing(tile: np.ndarray, band: np.ndarray, bands: list[np.ndarray] = bands) -> np.ndarray:
            bands.append(band)
            return np.zeros(tile.shape, dtype=bool)

        tiles = list(blocks(scored.gallery, _CAREFUL_SCORES // len(scores)))
        for some in tiles:
            scores[:, some] = scored.careful(part, some, nothing)
        if visit is not None:
            visit(part, scores)
        least = np.partition(scores, scored.gallery - depth, axis=1)[:, scored.gallery - depth, None]
        near = scores >= (least - 2 * bands[0][:, None] if bands else least)
        for some in tiles if bands else ():
            if (mask := near[:, some]).any():
                tile = scored.careful(part, some, lambda tile, band, mask=mask: mask)  # type: ignore[misc]
                scores[:, some][mask] = tile[mask]
        query, row = np.nonzero(near)  # rows ascend, so that a stable sort leaves the lower one first
        values = scores[query, row]
        order = np.argsort(-values, kind="stable")
        order = order[np.argsort(query[order], kind="stable")]
        query, row, values = query[order], row[order], values[order]
        first = starts(np.bincount(query, minlength=len(scores)))[:-1]
        keep = values >= values[first + depth - 1][query]
        start = starts(np.bincount(query[keep], minlength=len(scores)))
        yield Firsts(np.arange(part.start, part.stop), start, row[keep], values[keep])
