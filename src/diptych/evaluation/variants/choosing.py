"""Choosing candidates: the best of every row of a matrix, and those stored candidates that a gallery has."""

from __future__ import annotations

import numpy as np

from diptych.evaluation.variants.settings import NotPossible
from diptych.metrics.candidates import Candidates, Reranked
from diptych.metrics.ground_truth import Direction
from diptych.metrics.sources import Rows

_NUMBERS = 1 << 22  # scores looked at at once


def listed(rows: Rows) -> np.ndarray:
    """The numbers of some rows."""
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def best(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest of every row, best first, ties to the lower column."""
    items = np.empty((len(scores), k), dtype=np.int64)
    values = np.empty((len(scores), k), dtype=np.float64)
    exact = np.dtype(np.float32 if scores.dtype == np.float32 else np.float64)
    step = max(1, _NUMBERS // max(1, scores.shape[1]))
    for begin in range(0, len(scores), step):
        rows = np.negative(np.ascontiguousarray(scores[begin : begin + step], dtype=exact))
        here = slice(begin, begin + len(rows))
        items[here] = _smallest(rows, k)
        values[here] = np.negative(np.take_along_axis(rows, items[here], axis=1))
    return items, values


def _smallest(rows: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k smallest of every row, in order, ties to the lower column."""
    if 4 * k >= rows.shape[1]:
        return np.argsort(rows, axis=1, kind="stable")[:, :k]
    last = np.partition(rows, k - 1, axis=1)[:, k - 1]
    among = rows <= last[:, None]
    tied = np.count_nonzero(among, axis=1) > k  # equal scores at the k-th place: sort all of these rows
    found = np.empty((len(rows), k), dtype=np.int64)
    found[tied] = np.argsort(rows[tied], axis=1, kind="stable")[:, :k]
    columns = np.nonzero(among[~tied])[1].reshape(-1, k)
    order = np.argsort(np.take_along_axis(rows[~tied], columns, axis=1), axis=1, kind="stable")
    found[~tied] = np.take_along_axis(columns, order, axis=1)
    return found


def in_order(items: np.ndarray, scores: np.ndarray) -> Candidates:
    """Candidates that the contrastive score itself ranks.

    Their final score is minus how many different scores stand above: float32 cannot tell all of float64
    apart, small whole numbers it can.
    """
    steps = np.zeros(scores.shape, dtype=np.float32)
    np.cumsum(scores[:, 1:] < scores[:, :-1], axis=1, out=steps[:, 1:])
    return Candidates(items.astype(np.int64), scores.astype(np.float32), -steps)


def kept(
    reranked: Reranked | None, direction: Direction, images: Rows, texts: Rows, k: int
) -> tuple[Candidates, bool]:
    """Stored candidates of some queries, without those that are not in the part's gallery."""
    if reranked is None:
        raise NotPossible("there are no matching scores", "re-rank these embeddings too")
    one = reranked.candidates(direction)
    queries, gallery = (images, texts) if direction == "i2t" else (texts, images)
    size = reranked.n_texts if direction == "i2t" else reranked.n_images
    rows = listed(gallery)
    place = np.full(size, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    items = place[one.items[queries]]
    inside = items >= 0
    least = int(np.count_nonzero(inside, axis=1).min(initial=one.k))
    if not least:
        raise NotPossible(
            "some query has no stored candidate left in the smaller gallery", "re-rank more candidates"
        )
    order = np.argsort(~inside, axis=1, kind="stable")[:, : min(k, least)]

    def taken(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, order, axis=1)

    cut = Candidates(taken(items), taken(one.contrastive[queries]), taken(one.matching[queries]))
    return cut, reranked.adds_contrastive
