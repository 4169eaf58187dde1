"""Measure a ranker: categories ask for products, products ask for their category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from diptych.commerce.catalogue.relevance import Judged
from diptych.commerce.category_to_image.evaluation.names import CATEGORY_MEASURES, PRODUCT_MEASURES
from diptych.commerce.category_to_image.evaluation.scored import Scored, score_rows
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.evaluation.evaluate import evaluate, evaluate_sparse
from diptych.evaluation.galleries import measure_galleries
from diptych.evaluation.partitioning import Fold, partition
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.positives import Direction
from diptych.metrics.ranks import Ranks, available_threads, ranks_from_rows, ranks_from_source

# Rankers that find only what has something in common with the query: the rest is not ranked at all.
#
# Without that, all products that share no word with a category would tie, and a measure's expectation over the orders
# of a tie would count a part of them as found; but an engine does not return them.


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
        from diptych.metrics.sparse_products import SparseProducts

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


_NOT_FOUND = "pairs of score 0 are not retrieved"


def measure_ranker(
    ranker: Ranker,
    products: ProductFeatures,
    categories: CategoryFeatures,
    judged: Judged,
    *,
    measures: Sequence[str] = (*CATEGORY_MEASURES, *PRODUCT_MEASURES),
    bootstrap: Bootstrap | None = None,
    about: Mapping[str, Any] | None = None,
    scored: Scored | None = None,
) -> Result:
    """Measure a ranker on judged products.

    ``t2i`` of the result is a category that asks for products, ``i2t`` a product that asks for its category. Where
    the ranker says that a score of 0 is no ranking, such pairs give no hit at any cut-off.
    """
    rows = scored or score_rows(ranker, products, categories, judged)
    said = {
        "model": ranker.name,
        "setting": judged.setting,
        "relevance": judged.relevance,
        "data": f"judged {judged.setting} by {judged.relevance}, seed {judged.seed}",
        **(about or {}),
    }
    if rows.unranked:

        def rank(fold: Fold, every: bool) -> dict[Direction, Ranks]:
            return ranks_of_retrieved(rows, fold.ground_truth, every)

        return measure_galleries(
            rank,
            judged.truth,
            measures,
            partition("full"),
            "expected",
            bootstrap,
            {**said, "retrieved": _NOT_FOUND},
        )
    way = evaluate_sparse if rows.sparse else evaluate
    return way(
        rows.products,
        rows.categories,
        judged.truth,
        measures,
        bootstrap=bootstrap,
        image_ids=rows.product_ids,
        text_ids=rows.texts,
        about=said,
    )
