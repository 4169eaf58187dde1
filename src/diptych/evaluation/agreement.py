"""Agreement of a ranking with a reference: whether both answer the same queries, with the same items, in one order.

It says how faithful sparse rows are to the dense ones (thesis, Table 3.5, Figure 3.2b). Kendall's τ on what both lists
have is in the published code and not in the thesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import DataError, MismatchError
from diptych.evaluation.result import Result


@dataclass(frozen=True)
class Faithfulness:
    """Agreement of a sparse ranking with that of the dense embeddings."""

    direction: str  # whose queries, ``t2i`` or ``i2t``
    pearson: dict[str, float]  # measure → correlation of the values per query; NaN where a side has one value
    k: int  # how long the lists are of which overlap and agreement are
    overlap: float  # mean over queries of the share of the k that both lists have
    kendall: float  # mean over queries of Kendall's τ-b of the two orders of what both have; NaN where none has one
    without_order: int  # queries that have none: fewer than two items in common, or all of them tied
    queries: int


def faithfulness(
    dense: Result,
    sparse: Result,
    dense_lists: tuple[np.ndarray, np.ndarray],
    sparse_lists: tuple[np.ndarray, np.ndarray],
    *,
    direction: str = "t2i",
    measures: Sequence[str] = ("R@1", "R@5", "MRR@10"),
) -> Faithfulness:
    """Compare two evaluations of one test set, query by query; lists: (n_queries, k) best items, and their scores."""
    queries, correlations = len(dense_lists[0]), {}
    for name in measures:
        for which, result in (("dense", dense), ("sparse", sparse)):
            if name not in result.per_query.get(direction, {}):
                raise DataError(
                    f"the {which} result has no {direction} {name} per query", f"evaluate it by {name}"
                )
        mine, theirs = (result.per_query[direction][name] for result in (dense, sparse))
        both = np.isfinite(mine) & np.isfinite(theirs)
        queries, correlations[name] = int(both.sum()), _pearson(mine[both], theirs[both])
    agreement = rank_agreement(*dense_lists, *sparse_lists)
    ordered = np.isfinite(agreement)
    return Faithfulness(
        direction=direction,
        pearson=correlations,
        k=dense_lists[0].shape[1],
        overlap=float(overlap_at(dense_lists[0], sparse_lists[0]).mean()),
        kendall=float(agreement[ordered].mean()) if ordered.any() else float("nan"),
        without_order=int(np.sum(~ordered)),
        queries=queries,
    )


def _pearson(first: np.ndarray, second: np.ndarray) -> float:
    """Return Pearson's correlation of two lists of values; NaN where one of them is constant or empty."""
    if not len(first) or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    mine, theirs = first - first.mean(), second - second.mean()
    return float(np.clip(mine @ theirs / np.sqrt((mine @ mine) * (theirs @ theirs)), -1.0, 1.0))


def overlap_at(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return (n,) shares of the k places of two (n, k) lists that hold an item which both have; -1: an empty place."""
    return np.asarray(np.any(_same(first, second), axis=2).mean(axis=1))


def rank_agreement(
    first: np.ndarray, first_scores: np.ndarray, second: np.ndarray, second_scores: np.ndarray
) -> np.ndarray:
    """Return (n,) Kendall's τ-b between the scores of two (n, k) lists for the items that both have.

    It is NaN where fewer than two items are common, or one list ties all of them.

    Source: Kendall, The treatment of ties in ranking problems, Biometrika 1945.
    """
    same = _same(first, second)
    common = np.any(same, axis=2)
    there = np.where(common, np.take_along_axis(second_scores, np.argmax(same, axis=2), axis=1), 0.0)
    pairs = common[:, :, None] & common[:, None, :]
    pairs &= np.tri(first.shape[1], k=-1, dtype=bool)[None]  # each pair once
    mine, theirs = (np.sign(one[:, :, None] - one[:, None, :]) * pairs for one in (first_scores, there))
    agreeing = np.sum(mine * theirs, axis=(1, 2))
    untied = np.sqrt(np.sum(mine != 0, axis=(1, 2)) * np.sum(theirs != 0, axis=(1, 2)))
    return np.asarray(np.divide(agreeing, untied, out=np.full(len(first), np.nan), where=untied > 0))


def _same(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    if first.ndim != 2 or first.shape != second.shape:
        raise MismatchError(
            f"lists of shape {first.shape} and {second.shape} cannot be compared", "take the same k of both"
        )
    return np.asarray((first[:, :, None] == second[:, None, :]) & (first >= 0)[:, :, None])
