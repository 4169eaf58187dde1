"""Faithfulness: whether the sparse rows answer the same queries, with the same items, as the dense ones.

Source: Nguyen et al., ECIR 2024 (thesis ch. 3, Table 3.5: Pearson's correlation of values per query;
Figure 3.2b: how many of the ten best items both lists have); Kendall's τ on what both lists have is in the
published code and not in the thesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import DataError, MismatchError
from diptych.evaluation import Result


@dataclass(frozen=True)
class Faithfulness:
    """How much a sparse ranking is that of the dense rows.

    Attributes:
        direction: whose queries, ``t2i`` or ``i2t``.
        pearson: measure → correlation of the values per query; NaN where one side has one value for all.
        k: how long the lists are of which overlap and agreement are.
        overlap: mean over queries of the share of the k that both lists have.
        kendall: mean over queries of Kendall's τ-b of the two orders of what both lists have; NaN where no
            query has one.
        without_order: queries that have none: fewer than two items in common, or all of them tied.
        queries: how many queries there are.
    """

    direction: str
    pearson: dict[str, float]
    k: int
    overlap: float
    kendall: float
    without_order: int
    queries: int


def pearson(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation of two lists of values; NaN where one of them is constant or empty."""
    if first.shape != second.shape:
        raise MismatchError(f"{len(first)} values and {len(second)} values are not pairs")
    if not len(first) or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    mine, theirs = first - first.mean(), second - second.mean()
    return float(np.clip(mine @ theirs / np.sqrt((mine @ mine) * (theirs @ theirs)), -1.0, 1.0))


def overlap_at(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Per query, the share of k places that hold an item which both lists have.

    Args:
        first: (n, k) int64 items of a list, each once; -1 for an empty place.
        second: (n, k) likewise.

    Returns:
        (n,) float64 in [0, 1]; the denominator is k, however many places are empty.
    """
    _check_lists(first, second)
    share: np.ndarray = np.any(_same(first, second), axis=2).mean(axis=1)
    return share


def rank_agreement(
    first: np.ndarray, first_scores: np.ndarray, second: np.ndarray, second_scores: np.ndarray
) -> np.ndarray:
    """Per query, Kendall's τ-b between two lists' scores of the items that both have.

    Args:
        first: (n, k) int64 items of a list, each once; -1 for an empty place.
        first_scores: (n, k) their scores; equal ones are tied.
        second, second_scores: the other list.

    Returns:
        (n,) float64; NaN where fewer than two items are common, or one list ties all of them.

    Source: Kendall, The treatment of ties in ranking problems, Biometrika 1945.
    """
    _check_lists(first, second)
    same = _same(first, second)
    common = np.any(same, axis=2)
    there = np.where(common, np.take_along_axis(second_scores, np.argmax(same, axis=2), axis=1), 0.0)
    pairs = common[:, :, None] & common[:, None, :]
    pairs &= np.tri(first.shape[1], k=-1, dtype=bool)[None]  # each pair once
    mine = np.sign(first_scores[:, :, None] - first_scores[:, None, :]) * pairs
    theirs = np.sign(there[:, :, None] - there[:, None, :]) * pairs
    agreeing = np.sum(mine * theirs, axis=(1, 2))
    untied = np.sqrt(np.sum(mine != 0, axis=(1, 2)) * np.sum(theirs != 0, axis=(1, 2)))
    tau: np.ndarray = np.divide(agreeing, untied, out=np.full(len(first), np.nan), where=untied > 0)
    return tau


def faithfulness(
    dense: Result,
    sparse: Result,
    dense_lists: tuple[np.ndarray, np.ndarray],
    sparse_lists: tuple[np.ndarray, np.ndarray],
    *,
    direction: str = "t2i",
    measures: Sequence[str] = ("R@1", "R@5", "MRR@10"),
) -> Faithfulness:
    """Compare two evaluations of one test set, query by query.

    Args:
        dense_lists: (n_queries, k) best items by dense rows, and their scores.
    """
    asked, correlations = 0, {}
    for name in measures:
        for which, result in (("dense", dense), ("sparse", sparse)):
            if name not in result.per_query.get(direction, {}):
                raise DataError(
                    f"the {which} result has no {direction} {name} per query", f"evaluate it by {name}"
                )
        mine, theirs = (result.per_query[direction][name] for result in (dense, sparse))
        if len(mine) != len(theirs):
            raise MismatchError(
                f"{len(mine)} {direction} queries by dense rows, {len(theirs)} by sparse ones"
            )
        both = np.isfinite(mine) & np.isfinite(theirs)
        asked = int(both.sum())
        correlations[name] = pearson(mine[both], theirs[both])
    if not len(dense_lists[0]):
        raise DataError("faithfulness of no query", "give at least one")
    agreement = rank_agreement(*dense_lists, *sparse_lists)
    ordered = np.isfinite(agreement)
    return Faithfulness(
        direction=direction,
        pearson=correlations,
        k=dense_lists[0].shape[1],
        overlap=float(overlap_at(dense_lists[0], sparse_lists[0]).mean()),
        kendall=float(agreement[ordered].mean()) if ordered.any() else float("nan"),
        without_order=int(np.sum(~ordered)),
        queries=asked if measures else len(agreement),
    )


def _same(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(n, k, k) booleans: which place of one list holds the item of which place of the other."""
    same: np.ndarray = (first[:, :, None] == second[:, None, :]) & (first >= 0)[:, :, None]
    return same


def _check_lists(first: np.ndarray, second: np.ndarray) -> None:
    if first.ndim != 2 or first.shape != second.shape:
        raise MismatchError(
            f"lists of shape {first.shape} and {second.shape} cannot be compared", "take the same k of both"
        )
