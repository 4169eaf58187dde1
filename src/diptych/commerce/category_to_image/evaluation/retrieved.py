"""Rankers that find only what has something in common with the query: the rest is not ranked at all.

Without that, all products that share no word with a category would tie, and a measure's expectation over the orders
of a tie would count a part of them as found; but an engine does not return them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from diptych.commerce.category_to_image.evaluation.scored import Scored
from diptych.evaluation.ground_truth import Direction, GroundTruth
from diptych.evaluation.ranks import Ranks, available_threads, ranks_from_rows, ranks_from_source

__all__ = ["ranks_of_retrieved", "retrieved"]


def retrieved(ranks: Ranks) -> Ranks:
    """The ranks without positives of score 0: no cut-off finds them."""
    keep = ranks.scores != 0
    counts = np.bincount(ranks.queries[keep], minlength=ranks.n_queries)
    return replace(
        ranks,
        start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        **{name: getattr(ranks, name)[keep] for name in ("above", "tied", "later", "group", "scores")},
    )


def ranks_of_retrieved(scored: Scored, truth: GroundTruth, every: bool) -> dict[Direction, Ranks]:
    """Ranks among what is retrieved; a query's positives and gallery count whole.

    Sparse rows have no weights below 0, so that pairs of score 0 come last and nothing is above them that should not
    be. Dense rows have scores below 0: rows of zeros, which are of products or texts that an encoder has nothing of,
    are taken out before.
    """
    if scored.sparse:
        from diptych.evaluation.sparse_products import SparseProducts

        source = SparseProducts(scored.products, scored.categories, scored.product_ids, scored.texts)
        found = ranks_from_source(source, truth, every=every, threads=available_threads())
        return {way: retrieved(ranks) for way, ranks in found.items()}
    products, categories = scored.dense
    images, texts = (np.flatnonzero(np.any(rows, axis=1)) for rows in (products, categories))
    if not len(images) or not len(texts):
        return {way: _nothing(truth, way) for way in ("i2t", "t2i")}
    part = replace(truth, asked={}).subset(images, texts)
    ranks = ranks_from_rows(
        np.ascontiguousarray(products[images]),
        np.ascontiguousarray(categories[texts]),
        part,
        every=every,
        image_ids=[scored.product_ids[row] for row in images.tolist()],
        text_ids=[scored.texts[row] for row in texts.tolist()],
    )
    return {
        "i2t": _whole(retrieved(ranks["i2t"]), images, truth, "i2t"),
        "t2i": _whole(retrieved(ranks["t2i"]), texts, truth, "t2i"),
    }


def _whole(ranks: Ranks, queries: np.ndarray, truth: GroundTruth, way: Direction) -> Ranks:
    """The same among all queries, of which only ``queries`` found anything."""
    positives = truth.positives(way)
    counts = np.zeros(positives.n_queries, dtype=np.int64)
    counts[queries] = np.diff(ranks.start)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return replace(ranks, gallery=positives.gallery, positives=positives.counts, start=start)


def _nothing(truth: GroundTruth, way: Direction) -> Ranks:
    positives, none = truth.positives(way), np.zeros(0, dtype=np.int64)
    start = np.zeros(positives.n_queries + 1, dtype=np.int64)
    return Ranks(
        positives.gallery, positives.counts, start, none, none, none, none, np.zeros(0), complete=True
    )
