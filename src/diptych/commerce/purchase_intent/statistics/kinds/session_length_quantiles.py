"""Mean, median and tail of session length: what thesis section 6.4.1 reads off Figure 6.2."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.commerce.purchase_intent.statistics.declaration import (
    STATISTICS,
    DescribeOptions,
    Row,
    Statistic,
)
from diptych.commerce.purchase_intent.statistics.lengths import by_device_and_class, counted_lengths

__all__ = ["SESSION_LENGTH_QUANTILES"]

_PERCENT = (50, 90, 99)


def _finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    return [
        {
            "device": device,
            "purchase": purchase,
            "sessions": (whole := sum(n for _, n in lengths)),
            "mean": sum(length * n for length, n in lengths) / whole,
            **{f"p{percent}": _quantile(lengths, percent, whole) for percent in _PERCENT},
            "max": lengths[-1][0],
        }
        for device, purchase, lengths in by_device_and_class(rows)
    ]


def _quantile(lengths: Sequence[tuple[int, int]], percent: int, whole: int) -> int:
    up_to = 0
    for length, n in lengths:
        up_to += n
        if 100 * up_to >= percent * whole:
            return length
    raise AssertionError("shares end at 1")


SESSION_LENGTH_QUANTILES = STATISTICS.add(
    Statistic(
        name="session-length-quantiles",
        description="mean and quantiles of session length, by device and class",
        source="thesis section 6.4.1",
        columns={
            "device": "of the first event; all together, too",
            "purchase": "class of sessions",
            "sessions": "of the device and class",
            "mean": "actions per session",
            **{
                f"p{percent}": f"the smallest length with at least {percent} % of the sessions at or below"
                for percent in _PERCENT
            },
            "max": "the longest",
        },
        expression=counted_lengths,
        finish=_finish,
    )
)
