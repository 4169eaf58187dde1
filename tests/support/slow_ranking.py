"""Rankings and measures the slow way: full sorts, every order of the tied written out, one at a time.

Shares no code with the package; it is what the package is checked against.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np


def exact_scores(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """All inner products in float64."""
    wide_images, wide_texts = images.astype(np.float64), texts.astype(np.float64)
    return np.array([[(image * text).sum() for text in wide_texts] for image in wide_images])


def orders(scores: Sequence[float], positives: set[int], rule: str) -> Iterator[list[int]]:
    """Every order of the gallery that ``rule`` allows, best first."""
    rows = range(len(scores))
    if rule == "compat":
        yield sorted(rows, key=lambda row: (scores[row], row), reverse=True)
    elif rule == "optimistic":
        yield sorted(rows, key=lambda row: (-scores[row], row not in positives))
    elif rule == "pessimistic":
        yield sorted(rows, key=lambda row: (-scores[row], row in positives))
    else:
        values = sorted(set(scores), reverse=True)
        groups = [[row for row in rows if scores[row] == value] for value in values]
        for choice in itertools.product(*(itertools.permutations(group) for group in groups)):
            yield [row for group in choice for row in group]


def value(order: list[int], positives: set[int], name: str, cutoff: int | None) -> Fraction:
    """One measure of one query in one order, from its definition."""
    hits = [row in positives for row in order]
    if not positives:
        return Fraction(len(order) + 1 if name == "rank" else 0)
    first = hits.index(True) + 1
    top = hits[: cutoff or len(hits)]
    if name == "rank":
        return Fraction(first)
    if name == "R":
        return Fraction(any(top))
    if name == "MRR":
        return Fraction(1, first) if any(top) else Fraction(0)
    if name == "P":
        assert cutoff is not None
        return Fraction(sum(top), cutoff)
    if name == "R-precision":
        return Fraction(sum(hits[: len(positives)]), len(positives))
    if name == "R-cap":
        return Fraction(sum(top), min(len(positives), cutoff or len(hits)))
    if name == "mAP@R":
        top = hits[: len(positives)]
    precisions = [Fraction(sum(hits[: i + 1]), i + 1) for i, hit in enumerate(top) if hit]
    below = {
        "mAP": min(len(positives), cutoff or len(hits)),
        "mAP@R": len(positives),
        "mAP-positives": len(positives),
        "mAP-cutoff": cutoff or 0,
        "mAP-hits": max(1, len(precisions)),
    }
    return sum(precisions, Fraction(0)) / below[name]


def slow_values(
    scores: np.ndarray, positives: Sequence[set[int]], name: str, cutoff: int | None, rule: str
) -> list[float]:
    """One value per query (rows of ``scores``), the mean over every order that is allowed."""
    return [
        float(statistics.mean(value(order, mine, name, cutoff) for order in orders(row, mine, rule)))
        for row, mine in zip(scores.tolist(), positives, strict=True)
    ]
