"""Gains written out: loops over queries, and every order of the tied where there are any."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np


def slow_orders(scores: Sequence[float], gains: Sequence[float], rule: str) -> list[list[int]]:
    """The orders of one query's gallery that a tie rule allows."""
    groups: list[list[int]] = []
    for row in sorted(range(len(scores)), key=lambda row: (-scores[row], row)):
        if groups and scores[groups[-1][0]] == scores[row]:
            groups[-1].append(row)
        else:
            groups.append([row])
    if rule == "expected":
        ways = [list(itertools.permutations(group)) for group in groups]
    elif rule == "compat":
        ways = [[tuple(sorted(group, reverse=True))] for group in groups]
    else:
        sign = 1 if rule == "pessimistic" else -1
        ways = [[tuple(sorted(group, key=lambda row: sign * gains[row]))] for group in groups]
    return [list(itertools.chain(*way)) for way in itertools.product(*ways)]


def slow_discounted(
    scores: np.ndarray, gain: Callable[[int, int], float], k: int, rule: str = "expected"
) -> list[float]:
    """Mean over the orders of the sum of the first k gains over log2(place + 1), per query."""
    found = []
    for query, row_scores in enumerate(scores.tolist()):
        gains = [gain(query, row) for row in range(len(row_scores))]
        sums = []
        for order in slow_orders(row_scores, gains, rule):
            total = 0.0
            for place, row in enumerate(order[:k], start=1):
                total += gains[row] / math.log2(place + 1)
            sums.append(total)
        found.append(sum(sums) / len(sums))
    return found


def slow_best(shape: tuple[int, int], gain: Callable[[int, int], float], k: int) -> list[float]:
    """The greatest sum that any order reaches, per query."""
    found = []
    for query in range(shape[0]):
        gains = sorted((gain(query, row) for row in range(shape[1])), reverse=True)
        found.append(sum(value / math.log2(place + 2) for place, value in enumerate(gains[:k])))
    return found
