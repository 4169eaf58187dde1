"""Means over groups of categories: per level of the tree, seen and unseen in training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from diptych.evaluation.comparison import Spread


@dataclass(frozen=True)
class GroupValue:
    """A measure over a group of categories.

    Attributes:
        group: depth in the tree, from 1; or 1 for seen and 0 for unseen.
        categories: how many asked, the mean over seeds where the group depends on it.
        spread: the mean of the group, per seed.
    """

    group: int
    categories: float
    spread: Spread


def group_means(values: np.ndarray, group: np.ndarray) -> dict[int, tuple[int, float]]:
    """Per group its size and mean; (q,) values and (q,) whole numbers."""
    kinds, place = np.unique(np.asarray(group, dtype=np.int64), return_inverse=True)
    counts = np.bincount(place, minlength=len(kinds))
    sums = np.bincount(place, weights=values, minlength=len(kinds))
    return {
        int(kind): (int(count), float(total / count))
        for kind, count, total in zip(kinds, counts, sums, strict=True)
    }


def by_level(values: np.ndarray, depth: np.ndarray) -> dict[int, tuple[int, float]]:
    """Per depth of the asking category, how many and their mean."""
    return group_means(values, depth)


def by_seen(values: np.ndarray, seen: np.ndarray) -> dict[int, tuple[int, float]]:
    """Under 1 the categories that training saw, under 0 the others; a group without categories is not there."""
    return group_means(values, seen)


def over_seeds(each: list[Mapping[int, tuple[int, float]]]) -> list[GroupValue]:
    """Groups of several seeds together; a seed without a category of a group does not count in it."""
    groups = sorted({group for one in each for group in one})
    return [
        GroupValue(
            group,
            float(np.mean([one.get(group, (0, 0.0))[0] for one in each])),
            Spread(tuple(one[group][1] for one in each if group in one)),
        )
        for group in groups
    ]
