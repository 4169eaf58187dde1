"""Measure a ranker: categories are queries for products, products are queries for their category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.catalogue.catalogue import Judged
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.rankers import Ranker
from diptych.evaluation.evaluate import evaluate, rows_source
from diptych.evaluation.result import Reranking, Result
from diptych.metrics.ground_truth import Direction, GroundTruth
from diptych.metrics.measures import discounts
from diptych.metrics.measuring import AnyMeasure, Measure
from diptych.metrics.ranks import Ranks, TieGroups, ranks_of
from diptych.metrics.runs import starts
from diptych.metrics.sparse_products import sparse_top_k
from diptych.metrics.topk import top_k

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CATEGORY_MEASURES = ("P@1", "P@5", "P@10", "mAP@5", "mAP@10", "R-precision", "mAP-hits@5", "mAP-hits@10")
"""The thesis's measures of category queries. mAP@k divides by min(k, relevant products); mAP-hits@k by the relevant
ones among the first k, with which the published numbers agree better."""

LEADERBOARD = ("mAP", "P@10", "MRR", "nDCG@10")
"""Measures of category queries that Marqo's e-commerce leaderboards print."""

PRODUCT_MEASURES = ("R@1", "R@5", "MRR")
"""Measures of product queries: R@1 is the share of products that would be put in the right place."""

_APART = -2.0  # what a row of zeros scores, below every cosine


def _binary_ndcg(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    """Return (n_queries,) nDCG@k with gain 1 for a relevant item, expected over the orders of ties."""
    assert cutoff is not None
    gains = np.concatenate([[0.0], np.cumsum(discounts(cutoff))])
    begin, end = np.minimum(groups.before, cutoff), np.minimum(groups.before + groups.size, cutoff)
    found = (gains[end] - gains[begin]) * groups.positives / groups.size
    total = np.bincount(groups.query, weights=found, minlength=groups.n_queries)
    values: np.ndarray = total / gains[np.minimum(np.maximum(groups.relevant, 1), cutoff)]
    return values


NDCG = Measure(
    name="nDCG@10",
    description="nDCG@10 with a gain of 1 for each relevant product; products that are not retrieved have none",
    citation="Järvelin and Kekäläinen, ACM TOIS 2002",
    positives="all",
    per_query=_binary_ndcg,
    cutoff=10,
)


@dataclass(frozen=True, eq=False)
class Scored:
    """The embeddings whose inner products are scores; in place of a score source, what is retrieved by them."""

    products: np.ndarray | csr_array  # (n, d) of judged.products
    categories: np.ndarray | csr_array  # (q, d) of judged.nodes
    unranked: bool  # products that score 0, or whose row or query is zeros, are not retrieved
    truth: GroundTruth
    similarity = "dot"
    usual_ties = "expected"
    protocol: Reranking | None = None

    def ranks(self, every: bool, block: int, threads: int | None) -> dict[Direction, Ranks]:
        """Return ranks among what is retrieved, of both directions; no cut-off finds other positives."""
        ranks = ranks_of(rows_source(self.products, self.categories, "dot"), self.truth, every=every)
        return {way: _retrieved(one) for way, one in ranks.items()}

    def first(self, k: int, side: Direction = "t2i") -> tuple[np.ndarray, np.ndarray]:
        """Return rows of the first k, -1 where less is retrieved, and scores; of equal ones the lower row is first."""
        sides = (self.categories, self.products)
        queries, gallery = sides if side == "t2i" else sides[::-1]
        if not isinstance(gallery, np.ndarray):
            return sparse_top_k(queries, gallery, k)
        rows, scores = top_k(queries, gallery, k)
        lost = self.unranked & ~_is_found(scores)
        return np.where(lost, -1, rows), np.where(lost, 0.0, scores)


def _is_found(scores: np.ndarray) -> np.ndarray:
    found: np.ndarray = (scores != 0) & (scores > _APART)
    return found


def _retrieved(ranks: Ranks) -> Ranks:
    """Return the ranks without positives that are not retrieved."""
    keep = _is_found(ranks.scores)
    start = starts(np.bincount(ranks.queries[keep], minlength=ranks.n_queries)).astype(np.int64)
    names = ("above", "tied", "later", "group", "scores")
    return replace(ranks, start=start, **{name: getattr(ranks, name)[keep] for name in names})


def score_rows(
    ranker: Ranker, products: ProductFeatures, categories: CategoryFeatures, judged: Judged
) -> Scored:
    """Return the ranker's embeddings of candidates and of query categories."""
    rows, queries = ranker.product_rows(products)[judged.products], ranker.category_rows(categories)
    unranked = ranker.unmatched == "unranked"
    if unranked and isinstance(rows, np.ndarray) and isinstance(queries, np.ndarray):
        empty, none = (_APART * ~side.any(axis=1) for side in (rows, queries))
        rows = np.column_stack([rows, empty, np.ones(len(rows))]).astype(np.float32)
        queries = np.column_stack([queries, np.ones(len(queries)), none]).astype(np.float32)
    return Scored(rows, queries, unranked, judged.truth)


def measure_ranker(
    ranker: Ranker,
    products: ProductFeatures,
    categories: CategoryFeatures,
    judged: Judged,
    *,
    measures: Sequence[str | AnyMeasure] = (*CATEGORY_MEASURES, *PRODUCT_MEASURES, "mAP", NDCG),
    about: Mapping[str, Any] | None = None,
    scored: Scored | None = None,
) -> Result:
    """Measure a ranker on judged products.

    ``t2i`` of the result is a category that is a query for products, ``i2t`` a product for its category. Where the
    ranker's score of 0 is no ranking, such pairs give no hit at any cut-off.
    """
    rows = scored or score_rows(ranker, products, categories, judged)
    data = f"judged {judged.setting} by {judged.relevance}, seed {judged.seed}"
    metadata = {"model": ranker.name, "setting": judged.setting, "relevance": judged.relevance, "data": data}
    metadata |= about or {}
    if rows.unranked:
        metadata["retrieved"] = "pairs of score 0 are not retrieved"
        return evaluate(rows, None, judged.truth, measures, about=metadata)
    return evaluate(rows.products, rows.categories, judged.truth, measures, similarity="dot", about=metadata)
