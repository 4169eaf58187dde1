"""Statistics in the order of the thesis, and options that can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from diptych.commerce.purchase_intent.statistics.declaration import STATISTICS, DescribeOptions, Statistic
from diptych.core.errors import UnknownNameError, UsageError

ORDER = (
    "overview",
    "session-length",
    "session-length-quantiles",
    "week-days",
    "hours",
    "channels",
    "devices-per-visitor",
    "devices",
    "device-transitions",
    "queries",
    "unique-queries",
)
"""As thesis sections 6.3 and 6.4 have them; any other comes after these."""

JOURNEYS: Mapping[str, str] = {
    "pair": "from the session before a purchase session to it",
    "journey": "all from the purchase session before, or the visitor's first session, to a purchase session",
}
"""Which transitions between devices count."""


def choose_statistics(names: Iterable[str] | None = None) -> list[Statistic]:
    """The statistics of these names, each once, in the order of :data:`ORDER`; all when none are named."""
    wanted = STATISTICS.names() if names is None else [STATISTICS.get(name).name for name in names]
    if not wanted:
        raise UsageError("no statistic was asked for", f"for example {', '.join(ORDER[:2])}")
    place = {name: number for number, name in enumerate(ORDER)}
    return [
        STATISTICS.get(name)
        for name in sorted(set(wanted), key=lambda name: (place.get(name, len(place)), name))
    ]


def check_options(options: DescribeOptions) -> None:
    """See that they can be."""
    if options.journey not in JOURNEYS:
        raise UnknownNameError("journey", options.journey, JOURNEYS)
    if options.ddof not in (0, 1):
        raise UsageError(
            f"ddof is {options.ddof}", "0: as in the thesis's worked example; 1: as in its Table 6.2"
        )
    if not 0 < options.confidence < 1:
        raise UsageError(f"confidence is {options.confidence:g}", "between 0 and 1")
    if not 0 < options.near_zero <= options.likely <= 1:
        raise UsageError(
            f"likely is {options.likely:g}, near zero {options.near_zero:g}", "0 < near zero ≤ likely ≤ 1"
        )
