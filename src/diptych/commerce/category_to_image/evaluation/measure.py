"""Measure a ranker: categories ask for products, products ask for their category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from diptych.commerce.catalogue.catalogue import Judged
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.rankers import Ranker
from diptych.core.errors import DataError
from diptych.evaluation.evaluate import evaluate
from diptych.evaluation.result import Reranking, Result
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.ground_truth import Direction, GroundTruth
from diptych.metrics.ranks import Ranks, ranks_of
from diptych.metrics.sources import RowProducts
from diptych.metrics.topk import top_k

CATEGORY_MEASURES = ("P@1", "P@5", "P@10", "mAP@5", "mAP@10", "R-precision", "mAP-hits@5", "mAP-hits@10")
"""For a category that asks for products. mAP@k divides by min(k, relevant products); mAP-hits@k by the relevant ones
among the first k, which the published numbers agree with better."""

PRODUCT_MEASURES = ("R@1", "R@5", "MRR")
"""For a product that asks for its category: R@1 is the share of products that would be put in the right place."""


if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Rows: TypeAlias = np.ndarray | csr_array


@dataclass(frozen=True, eq=False)
class Scored:
    """What is compared."""

    products: Rows  # (n, d) rows of judged.products
    categories: Rows  # (q, d) rows of judged.nodes
    product_ids: Sequence[str]  # for messages
    texts: Sequence[str]  # for messages
    unranked: bool  # a score of exactly 0 says that a product is not retrieved

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse."""
        return not isinstance(self.products, np.ndarray)

    @property
    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of products and of categories, where they are dense."""
        assert isinstance(self.products, np.ndarray)
        assert isinstance(self.categories, np.ndarray)
        return self.products, self.categories


def score_rows(
    ranker: Ranker, products: ProductFeatures, categories: CategoryFeatures, judged: Judged
) -> Scored:
    """The ranker's rows of candidates and of asking categories."""
    if len(categories) != len(judged.nodes):
        raise DataError(
            f"{len(categories)} category rows for {len(judged.nodes)} categories that ask",
            "give the rows of judged.nodes, in that order",
        )
    if len(judged.products) and int(judged.products.max()) >= len(products):
        raise DataError(
            f"product {int(judged.products.max())} was judged, {len(products)} products have features",
            "give the features of the whole catalogue that was judged",
        )
    rows = ranker.product_rows(products)
    return Scored(
        rows if len(judged.products) == len(products) else rows[judged.products],
        ranker.category_rows(categories),
        [products.ids[row] for row in judged.products.tolist()],
        categories.texts,
        ranker.unmatched == "unranked",
    )


def first_of(scored: Scored, k: int, *, side: Direction = "t2i") -> tuple[np.ndarray, np.ndarray]:
    """The first k of every query, ties to the lower row.

    Returns:
        (queries, min(k, gallery)) int64 rows of the gallery, -1 where less is retrieved, and float64 scores.
    """
    turned = side == "i2t"
    if scored.sparse:
        from diptych.metrics.sparse_products import sparse_top_k

        pair = (scored.categories, scored.products)
        return sparse_top_k(*(pair[::-1] if turned else pair), k)
    products, categories = scored.dense
    queries, gallery = (products, categories) if turned else (categories, products)
    if not scored.unranked:
        return top_k(queries, gallery, k)
    k = min(k, len(gallery))
    rows, scores = np.full((len(queries), k), -1), np.zeros((len(queries), k))
    asks, there = (np.flatnonzero(np.any(side, axis=1)) for side in (queries, gallery))
    if len(asks) and len(there):
        best, values = top_k(np.ascontiguousarray(queries[asks]), np.ascontiguousarray(gallery[there]), k)
        found = values != 0
        rows[asks, : best.shape[1]] = np.where(found, there[best], -1)
        scores[asks, : best.shape[1]] = values
    return rows, scores


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

        sparse = SparseProducts(scored.products, scored.categories, scored.product_ids, scored.texts)
        found = ranks_of(sparse, truth, every=every)
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
        return evaluate(
            Retrieved(rows, judged.truth),
            None,
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
