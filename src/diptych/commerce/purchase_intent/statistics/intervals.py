"""Intervals of shares and means.

They take sessions as independent of each other. Those of one visitor are not quite, so that with many sessions per
visitor the truth lies outside more often than the confidence says.
"""

from __future__ import annotations

import math
from statistics import NormalDist

Interval = tuple[float | None, float | None]
"""Low and high; None where nothing can be said."""


def share(part: int, of: int) -> float | None:
    """A part of a whole; None of nothing."""
    return part / of if of else None


def wilson(part: int, of: int, confidence: float) -> Interval:
    """The score interval of a share, which holds near 0 and 1, too (Wilson, JASA 1927)."""
    if not of:
        return None, None
    z = _normal(confidence)
    centre = part + z * z / 2
    half = z * math.sqrt(part * (of - part) / of + z * z / 4)
    whole = of + z * z
    # Of none and of all the formula is 0 and 1 but for rounding.
    return (
        0.0 if part == 0 else (centre - half) / whole,
        1.0 if part == of else (centre + half) / whole,
    )


def mean_interval(total: int, squares: int, of: int, confidence: float) -> Interval:
    """The normal interval of a mean of counts, from their sum and that of their squares; cut at 0."""
    if of < 2:
        return None, None
    # In whole numbers up to here: a difference of large floats would be all rounding.
    variance = (squares * of - total * total) / (of * (of - 1))
    half = _normal(confidence) * math.sqrt(variance / of)
    return max(0.0, total / of - half), total / of + half


def _normal(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
