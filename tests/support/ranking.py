"""Rankings of plain arrays by the package, in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from diptych.evaluation import RerankedScores, Result, evaluate
from diptych.metrics import (
    DEFAULT_MEASURES,
    Candidates,
    Direction,
    GivenScores,
    GroundTruth,
    Ranks,
    Reranked,
    RowProducts,
    ranks_of,
    similarity,
    top_k,
)


def ranks_from_scores(scores: np.ndarray, truth: GroundTruth, **options: Any) -> dict[Direction, Ranks]:
    """Rank by a score matrix."""
    return ranks_of(GivenScores(scores), truth, **options)


def ranks_from_rows(
    images: np.ndarray,
    texts: np.ndarray,
    truth: GroundTruth,
    image_ids: list[str] | None = None,
    text_ids: list[str] | None = None,
    **options: Any,
) -> dict[Direction, Ranks]:
    """Rank by inner products."""
    return ranks_of(RowProducts(images, texts, image_ids, text_ids), truth, **options)


def evaluate_reranked(
    reranked: Reranked,
    truth: GroundTruth,
    measures: Iterable[str] = DEFAULT_MEASURES,
    *,
    k: int | None = None,
    unranked: str = "miss",
    images: np.ndarray | None = None,
    texts: np.ndarray | None = None,
    by: str = "dot",
    **options: Any,
) -> Result:
    """Measure candidates; with rows of the first stage where they are given."""
    first = None if images is None or texts is None else similarity(by).source(images, texts)
    second = RerankedScores(reranked, truth, k=k, unranked=unranked, first=first)
    return evaluate(second, None, truth, measures, **options)


def scored(
    images: np.ndarray, texts: np.ndarray, matching: np.ndarray, k: int, adds: bool = False
) -> Reranked:
    """Keep the k best of each query by rows, with their scores of the (images, texts) matrix ``matching``."""
    sides = []
    for queries, gallery, table in ((images, texts, matching), (texts, images, matching.T)):
        items, contrastive = top_k(queries, gallery, k)
        chosen = np.take_along_axis(table, items, axis=1).astype(np.float32)
        sides.append(Candidates(items, contrastive.astype(np.float32), chosen))
    return Reranked(*sides, adds)
