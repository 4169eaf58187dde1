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
from diptych.evaluation.evaluate import evaluate, evaluate_scores
from diptych.evaluation.protocol import Reranking
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.ground_truth import Direction, GroundTruth
from diptych.metrics.ranks import Ranks, ranks_of
from diptych.metrics.sources import RowProducts

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
        found = ranks_of(source, truth, every=every)
        return {way: retrieved(ranks) for way, ranks in found.items()}
    products, categories = scored.dense
    images, texts = (np.flatnonzero(np.any(rows, axis=1)) for rows in (products, categories))
    if not len(images) or not len(texts):
        return {way: _nothing(truth, way) for way in ("i2t", "t2i")}
    part = replace(truth, asked={}).subset(images, texts)
    dense = RowProducts(
        np.ascontiguousarray(products[images]),
        np.ascontiguousarray(categories[texts]),
        [scored.product_ids[row] for row in images.tolist()],
        [scored.texts[row] for row in texts.tolist()],
    )
    ranks = ranks_of(dense, part, every=every)
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


class Retrieved:
    """What a ranker retrieves, in place of the scores of all pairs."""

    similarity = "dot"
    usual_ties = "expected"
    protocol: Reranking | None = None

    def __init__(self, scored: Scored, truth: GroundTruth) -> None:
        self._scored, self._truth = scored, truth

    def ranks(self, every: bool, block: int, threads: int | None) -> dict[Direction, Ranks]:
        """Ranks of both directions among what is retrieved."""
        return ranks_of_retrieved(self._scored, self._truth, every)


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
        return evaluate_scores(
            Retrieved(rows, judged.truth),
            judged.truth,
            measures,
            bootstrap=bootstrap,
            about={**said, "retrieved": _NOT_FOUND},
        )
    return evaluate(
        rows.products,
        rows.categories,
        judged.truth,
        measures,
        similarity="dot",
        bootstrap=bootstrap,
        image_ids=rows.product_ids,
        text_ids=rows.texts,
        about=said,
    )
