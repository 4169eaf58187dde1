"""Ranks of the positives, streamed: one blocked matrix product for both directions, counting, no sort.

Memory above the inputs is bounded by the block: about 6 bytes per score of a tile and worker, and a
few numbers per query. The counts are exact (see :mod:`diptych.metrics.products`), so they depend
neither on the block nor on the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from diptych.core.context import task
from diptych.core.errors import DataError, UsageError
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.positives import DIRECTIONS, Direction
from diptych.metrics.similarities import similarity as similarity_of
from diptych.metrics.sources import GivenScores, ScoreSource
from diptych.metrics.tallies import Tally
from diptych.metrics.tiles import TileCounter

DEFAULT_BLOCK = 2_500_000
# 500 by 5,000: large enough for the product to run at full speed, and wide enough for NumPy's broadcast
# comparisons, which are 2.5 times slower when the inner loop is at most half their 8,192-item buffer.
_TILE_ROWS = 500


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where the positives of one direction stand, ties kept apart from what is certain.

    Either every positive is there, best first within its query, or only the best of each query
    (``complete`` False), which is all that any-of-k measures need.

    Attributes:
        gallery: size of the gallery.
        positives: (n_queries,) how many positives each query has; 0 where it has none.
        start: (n_queries + 1,) each query's slice of the arrays below.
        above: negatives that score more than this positive.
        tied: negatives that score exactly the same.
        later: those of the tied that come later in the gallery.
        group: positives of the query that score exactly the same, this one included.
        scores: this positive's exact score.
        complete: whether every positive is there.
    """

    gallery: int
    positives: np.ndarray
    start: np.ndarray
    above: np.ndarray
    tied: np.ndarray
    later: np.ndarray
    group: np.ndarray
    scores: np.ndarray
    complete: bool

    @property
    def n_queries(self) -> int:
        """How many queries, those without a positive included."""
        return len(self.positives)

    @property
    def queries(self) -> np.ndarray:
        """The query of every entry."""
        return np.repeat(np.arange(self.n_queries), np.diff(self.start))


def available_threads() -> int:
    """Cores this process may use, or fewer if ``OMP_NUM_THREADS`` or ``OPENBLAS_NUM_THREADS`` say so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return min(cores, int(value))
    return cores


def check_sizes(images: np.ndarray, texts: np.ndarray, ground_truth: GroundTruth) -> None:
    """Refuse rows that are not those of the ground truth."""
    sizes = {"image": ground_truth.n_images, "text": ground_truth.n_texts}
    for (side, size), rows in zip(sizes.items(), (images, texts), strict=True):
        n = np.shape(rows)[0]  # sparse rows have no length
        if n != size:
            raise DataError(
                f"{n:,} {side} rows for a ground truth of {size:,} {side}s",
                "evaluate the split that was embedded",
            )


def ranks_from_rows(
    images: np.ndarray,
    texts: np.ndarray,
    ground_truth: GroundTruth,
    *,
    every: bool = False,
    similarity: str = "cosine",
    image_ids: Sequence[str] | None = None,
    text_ids: Sequence[str] | None = None,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
) -> dict[Direction, Ranks]:
    """Rank every text for every image and every image for every text.

    Args:
        images: (n, d) float32 rows, possibly memory-mapped.
        texts: (m, d) float32 rows.
    """
    check_sizes(images, texts, ground_truth)
    source = similarity_of(similarity).source(images, texts, image_ids, text_ids)
    return ranks_from_source(source, ground_truth, every=every, block=block, threads=threads)


def ranks_from_scores(
    scores: np.ndarray,
    ground_truth: GroundTruth,
    *,
    every: bool = False,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
) -> dict[Direction, Ranks]:
    """Ranks by a given score matrix (n_images, n_texts), compared exactly as its numbers are."""
    source = GivenScores(scores, ground_truth)
    return ranks_from_source(source, ground_truth, every=every, block=block, threads=threads)


def _tiles(n_images: int, n_texts: int, block: int) -> tuple[int, int, list[tuple[slice, slice]]]:
    rows = min(n_images, _TILE_ROWS, block)
    columns = min(n_texts, max(1, block // rows))
    # Texts outside: their block stays in cache while the images pass by.
    tiles = [
        (slice(i, min(i + rows, n_images)), slice(t, min(t + columns, n_texts)))
        for t in range(0, n_texts, columns)
        for i in range(0, n_images, rows)
    ]
    return rows, columns, tiles


def ranks_from_source(
    source: ScoreSource,
    truth: GroundTruth,
    *,
    every: bool = False,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
    directions: Sequence[Direction] = DIRECTIONS,
) -> dict[Direction, Ranks]:
    """Ranks by whatever gives tiles of scores, of both ``directions`` or of one alone, which is quicker;
    other arguments and errors as of :func:`ranks_from_rows`."""
    if truth.n_images == 0 or truth.n_texts == 0:
        raise DataError(f"{truth.n_images} images and {truth.n_texts} texts: there is nothing to rank")
    for what, value in (("block", block), ("threads", threads)):
        if value is not None and value < 1:
            raise UsageError(f"{what} is {value}, it must be at least 1")
    if not truth.symmetric:  # a tile's positives are taken out for both directions at once: two passes
        again = partial(ranks_from_source, source, every=every, block=block, threads=threads)
        return {name: again(truth.mirrored(name), directions=[name])[name] for name in directions}
    scores = source.positives(truth.i2t.queries, truth.i2t.rows)
    by_text = np.lexsort((truth.i2t.queries, truth.i2t.rows))
    tallies: dict[Direction, Tally] = {
        "i2t": Tally(truth.i2t, scores, every, "i2t" in directions),
        "t2i": Tally(truth.t2i, scores[by_text], every, "t2i" in directions),
    }
    rows, columns, tiles = _tiles(truth.n_images, truth.n_texts, block)
    workers = min(threads or 1 + available_threads() // 4, len(tiles))
    lock, stop = threading.Lock(), threading.Event()
    with task("ranks", truth.n_images * truth.n_texts, "scores") as bar:

        def work(share: Sequence[tuple[slice, slice]]) -> None:
            counter = TileCounter(source, tallies, rows, columns)
            for images, texts in share:
                if stop.is_set():
                    return
                counts = counter.count(images, texts)
                with lock:
                    for part in counts:
                        tallies[part.direction].add(part.entries, part.above, part.tied, part.later)
                    bar.advance((images.stop - images.start) * (texts.stop - texts.start))

        if workers == 1:
            work(tiles)
        else:
            with ThreadPoolExecutor(workers) as pool:
                try:
                    list(pool.map(work, [tiles[first::workers] for first in range(workers)]))
                except BaseException:  # an error or Ctrl-C: the others finish their tile, not their share
                    stop.set()
                    raise
    return {name: _finish(tallies[name]) for name in directions}


def _finish(tally: Tally) -> Ranks:
    queries = tally.positives.queries
    first = np.ones(len(queries), dtype=bool)
    first[1:] = (queries[1:] != queries[:-1]) | (tally.scores[1:] != tally.scores[:-1])
    of_group = np.cumsum(first) - 1
    group = np.bincount(of_group, minlength=0)[of_group] if len(queries) else of_group
    counts = tally.positives.counts
    keep = np.arange(len(queries)) if tally.every else tally.start[:-1][counts > 0]
    start = tally.start if tally.every else np.concatenate([[0], np.cumsum(counts > 0)])
    return Ranks(
        gallery=tally.positives.gallery,
        positives=counts,
        start=start,
        above=tally.above[keep],
        tied=tally.tied[keep],
        later=tally.later[keep],
        group=group[keep],
        scores=tally.scores[keep],
        complete=tally.every,
    )
