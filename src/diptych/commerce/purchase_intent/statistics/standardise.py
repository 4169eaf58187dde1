"""Standardised conversion rates: how far a group's rate lies from the mean of all groups, in standard deviations.

Thesis section 6.2 takes the mean over groups, each counting once whatever its size. Its worked example and Table 6.4
divide by n under the deviation (``ddof`` 0); three of the four numbers of Table 6.2 fit n − 1 (``ddof`` 1) instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["standardise"]


def standardise(rates: Sequence[float | None], ddof: int = 0) -> list[float | None]:
    """(rate − mean) / standard deviation.

    Args:
        rates: one per group; None of a group that has none, which then plays no part.
        ddof: what is taken off the number of groups under the deviation.

    Returns:
        One per group; None where there is no rate, and everywhere where groups do not differ or are too few.
    """
    known = [rate for rate in rates if rate is not None]
    nothing: list[float | None] = [None] * len(rates)
    if len(known) <= ddof or all(rate == known[0] for rate in known):
        return nothing
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((rate - mean) ** 2 for rate in known) / (len(known) - ddof))
    return [None if rate is None else (rate - mean) / deviation for rate in rates]
