"""What sets purchase sessions apart: thesis section 6.4."""

from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.statistics.describe import (
    JOURNEYS,
    ORDER,
    STATISTICS,
    Description,
    Statistic,
    choose_statistics,
    describe,
)

__all__ = [
    "JOURNEYS",
    "ORDER",
    "STATISTICS",
    "DescribeOptions",
    "Description",
    "Statistic",
    "choose_statistics",
    "describe",
]
