"""Ranks of the positives, streamed: one blocked matrix product for both directions, counting, no sort.

About 6 bytes of memory per score of a tile and worker, and a few numbers per query. The counts are exact (see
:mod:`diptych.metrics.products`). Ties are resolved by a named rule (docs/explanation/evaluation.md): by
default a measure is its exact expectation over all orders of the tied (McSherry and Najork, ECIR 2008).
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from diptych.core.context import task
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.processes import available_cores
from diptych.metrics.ground_truth import DIRECTIONS, Direction, GroundTruth
from diptych.metrics.runs import begins, blocks, places, starts
from diptych.metrics.sources import ScoreSource
from diptych.metrics.tiles import Counter, Counts, TileCounter
from diptych.metrics.topk import BLOCK

# 500 by 5,000: large enough for the product to run at full speed, and wide enough for NumPy's broadcast
# comparisons, which are 2.5 times slower when the inner loop is at most half their 8,192-item buffer.
_TILE_ROWS = 500


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of one direction's positives: all of each query, best first, or its best only."""

    gallery: int  # size of the gallery
    positives: np.ndarray  # (n_queries,) how many positives each query has; 0 where it has none
    start: np.ndarray  # (n_queries + 1,) each query's slice of the arrays below
    above: np.ndarray  # negatives that score more than this positive
    tied: np.ndarray  # negatives that score exactly the same
    later: np.ndarray  # those of the tied that come later in the gallery
    group: np.ndarray  # positives of the query that score exactly the same, this one included
    scores: np.ndarray  # this positive's exact score
    complete: bool  # whether every positive is there

    @property
    def n_queries(self) -> int:
        return len(self.positives)

    @property
    def queries(self) -> np.ndarray:
        return np.repeat(np.arange(self.n_queries), np.diff(self.start))


def available_threads() -> int:
    """Count the cores of this process, or fewer if ``OMP_NUM_THREADS`` or ``OPENBLAS_NUM_THREADS`` say so."""
    cores = available_cores()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return min(cores, int(value))
    return cores


def check_sizes(source: ScoreSource, truth: GroundTruth) -> None:
    for side, n, size in zip(("image", "text"), source.shape, (truth.n_images, truth.n_texts), strict=True):
        if n != size:
            text = f"{n:,} {side} rows for a ground truth of {size:,} {side}s"
            raise DataError(text, "evaluate the split that was embedded")


def ranks_of(
    source: ScoreSource,
    truth: GroundTruth,
    *,
    every: bool = False,
    directions: Sequence[Direction] = DIRECTIONS,
    block: int = BLOCK,
    threads: int | None = None,
) -> dict[Direction, Ranks]:
    """Rank every text for every image and every image for every text.

    Args:
        every: rank all positives of a query instead of its best only.
        directions: both, or only one, which is quicker.
        block: scores held at once by one of the ``threads`` workers.
    """
    check_sizes(source, truth)
    if truth.n_images == 0 or truth.n_texts == 0:
        text = f"{truth.n_images} images and {truth.n_texts} texts: there is nothing to rank"
        raise DataError(text, "give a dataset with images and captions")
    for what, value in (("block", block), ("threads", threads)):
        if value is not None and value < 1:
            raise UsageError(f"{what} is {value}, it must be at least 1")
    if not truth.symmetric:  # a tile's positives are taken out for both directions at once: two passes
        again = partial(ranks_of, source, every=every, block=block, threads=threads)
        return {name: again(truth.mirrored(name), directions=[name])[name] for name in directions}
    scores = source.pairs(truth.i2t.queries, truth.i2t.rows)
    by_text = np.lexsort((truth.i2t.queries, truth.i2t.rows))
    counters: dict[Direction, Counter] = {
        "i2t": Counter(truth.i2t, scores, every, "i2t" in directions),
        "t2i": Counter(truth.t2i, scores[by_text], every, "t2i" in directions),
    }
    rows = min(truth.n_images, _TILE_ROWS, block)
    columns = min(truth.n_texts, max(1, block // rows))
    # Texts outside: their block stays in cache while the images pass by.
    tiles = [
        (images, texts) for texts in blocks(truth.n_texts, columns) for images in blocks(truth.n_images, rows)
    ]
    usual = available_threads() if source.one_core else 1 + available_threads() // 4
    workers = min(threads or usual, len(tiles))
    idle = [TileCounter(source, counters, rows, columns) for _ in range(workers)]

    def work(tile: tuple[slice, slice]) -> list[Counts]:
        counter = idle.pop()
        counts = counter.count(*tile)
        idle.append(counter)
        return counts

    with task("ranks", truth.n_images * truth.n_texts, "scores") as bar, ThreadPoolExecutor(workers) as pool:
        # After an error or Ctrl-C tiles that are begun are finished, and no others.
        for (images, texts), counts in zip(tiles, pool.map(work, tiles), strict=True):
            for name, entries, found in counts:
                counters[name].counts[:, entries] += found
            bar.advance((images.stop - images.start) * (texts.stop - texts.start))
    return {name: _finish(counters[name]) for name in directions}


def _finish(counter: Counter) -> Ranks:
    positives = counter.positives
    of_group = np.cumsum(begins(positives.queries, counter.scores)) - 1
    counts, start, keep = positives.counts, positives.start, np.arange(len(of_group))
    if not counter.every:
        keep, start = start[:-1][counts > 0], starts(counts > 0)
    group = np.bincount(of_group)[of_group][keep]
    above, tied, later = counter.counts[:, keep]
    scores, complete = counter.scores[keep], counter.every
    return Ranks(positives.gallery, counts, start, above, tied, later, group, scores, complete)


TieRule = Literal["expected", "pessimistic", "optimistic", "compat"]
TIE_RULES: tuple[TieRule, ...] = get_args(TieRule)


@dataclass(frozen=True, eq=False)
class TieGroups:
    """Neighbours in a ranking whose order is open, a positive among them; only the positive where a rule decides."""

    query: np.ndarray  # (g,) the query of each group; ascending, best group first within a query
    before: np.ndarray  # items of the gallery that certainly come before the group
    found: np.ndarray  # how many of those are positives
    negatives: np.ndarray  # negatives in the group
    positives: np.ndarray  # positives in the group, at least 1
    relevant: np.ndarray  # (n_queries,) all positives of each query
    gallery: int  # size of the gallery
    complete: bool  # every positive is in a group; otherwise only the best group of each query is there

    @property
    def size(self) -> np.ndarray:
        return np.asarray(self.negatives + self.positives)

    @property
    def n_queries(self) -> int:
        return len(self.relevant)

    @property
    def best(self) -> np.ndarray:
        return np.flatnonzero(begins(self.query))

    def hits(self, cutoff: np.ndarray) -> np.ndarray:
        """(n_queries,) positives expected among the first ``cutoff[query]`` of each query."""
        inside = np.clip(cutoff[self.query] - self.before, 0, self.size)
        hits = self.positives * inside / self.size
        return np.asarray(np.bincount(self.query, weights=hits, minlength=self.n_queries))


def check_rule(rule: str) -> None:
    if rule not in TIE_RULES:
        raise UnknownNameError("tie rule", rule, TIE_RULES)


def tie_groups(ranks: Ranks, rule: str) -> TieGroups:
    check_rule(rule)
    query = ranks.queries
    place = places(np.diff(ranks.start))  # positives of the query listed before this
    above = ranks.above
    negatives, positives = np.zeros_like(above), np.ones_like(above)
    keep = np.arange(len(query))
    if rule == "expected":
        keep = np.flatnonzero(begins(query, ranks.scores))
        negatives, positives = ranks.tied, ranks.group
    elif rule == "pessimistic":
        above = above + ranks.tied
    elif rule == "compat":
        above = above + ranks.later
    query, before, place, negatives, positives = (
        each[keep] for each in (query, above + place, place, negatives, positives)
    )
    whole = ranks.positives, ranks.gallery, ranks.complete
    return TieGroups(query, before, place, negatives, positives, *whole)


def tied_throughout(relevant: np.ndarray, gallery: int) -> TieGroups:
    """Return the ranking of a model that cannot tell anything apart, from (n_queries,) positives of each."""
    query = np.flatnonzero(relevant > 0)
    nothing = np.zeros(len(query), dtype=np.int64)
    positives = relevant[query]
    return TieGroups(query, nothing, nothing, gallery - positives, positives, relevant, gallery, True)


# What happens to the first positive of a tie group when every order is equally likely. A group of
# ``negatives`` and ``positives`` items starts after ``before`` others; the place of its first positive
# follows the negative hypergeometric distribution.


def found_within(
    before: np.ndarray, negatives: np.ndarray, positives: np.ndarray, cutoff: int | np.ndarray
) -> np.ndarray:
    """Return the probability that each group's first positive is among the first ``cutoff`` of the gallery.

    1 - C(negatives, x) / C(negatives + positives, x) for the x = cutoff - before places that are open.
    """
    total = negatives + positives
    places = np.clip(np.asarray(cutoff) - before, 0, total)
    missed = np.ones(len(places))
    # The same product has `places` factors or, read the other way, `positives` factors.
    other, steps = np.maximum(places, positives), np.minimum(places, positives)
    for step in range(int(steps.max(initial=0))):
        factor = (total - other - step) / np.maximum(total - step, 1)
        missed = np.where(step < steps, missed * np.maximum(factor, 0.0), missed)
    return 1.0 - missed


def expected_reciprocal(
    before: np.ndarray, negatives: np.ndarray, positives: np.ndarray, cutoff: int | None = None
) -> np.ndarray:
    """Return the expected 1/rank of each group's first positive, 0 beyond ``cutoff``."""
    groups, which = np.unique(np.stack([before, negatives, positives]), axis=1, return_inverse=True)
    before, negatives, positives = groups
    total = np.zeros(groups.shape[1])
    chance = positives / (negatives + positives)  # that the first positive takes the step-th open place
    most = int(negatives.max(initial=0))
    for step in range(most + 1 if cutoff is None else min(most + 1, cutoff)):
        rank = before + 1 + step
        total += np.where((cutoff is None) | (rank <= (cutoff or 0)), chance / rank, 0.0)
        chance = chance * (negatives - step) / np.maximum(negatives + positives - step - 1, 1)
    return np.asarray(total[which.reshape(-1)])
