"""The clock on the wall and universal time, for the days of a log, summer time and its end included."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.logs.schema import SECOND

FIRST_DAY = date(2019, 10, 1)
"""As in thesis section 6.3: October 2019, on whose 27th clocks are set back in Europe."""

HOUR = 3600 * SECOND
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AFTER = 5
"""Days after the last one that a long session may run into."""


class Calendar:
    """Conversions between local and universal time in microseconds, vectorised."""

    def __init__(self, zone: str, days: int) -> None:
        try:
            self._zone = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise UsageError(f"there is no time zone {zone!r}", "e.g. Europe/Amsterdam, or UTC") from None
        self.days = days
        self.first_day = (FIRST_DAY - date(1970, 1, 1)).days
        self._changes, self._offsets = self._offsets_of_the_time()

    def _offsets_of_the_time(self) -> tuple[np.ndarray, np.ndarray]:
        """When the offset from universal time changes, and the offsets from then on: looked for every half hour."""
        moment = _EPOCH + timedelta(days=self.first_day - 2)
        end = moment + timedelta(days=self.days + _AFTER + 2)
        changes: list[int] = []
        offsets: list[int] = []
        while moment < end:
            offset = moment.astimezone(self._zone).utcoffset() or timedelta(0)
            offset_us = offset // timedelta(microseconds=1)
            if not offsets or offsets[-1] != offset_us:
                changes.append((moment - _EPOCH) // timedelta(microseconds=1))
                offsets.append(offset_us)
            moment += timedelta(minutes=30)
        return np.array(changes, np.int64), np.array(offsets, np.int64)

    def offset_us(self, t_us: np.ndarray) -> np.ndarray:
        """What local clocks are ahead at these universal times."""
        if len(self._offsets) == 1:
            return np.full(len(t_us), self._offsets[0])
        place = np.searchsorted(self._changes, t_us, side="right") - 1
        offsets: np.ndarray = self._offsets[np.maximum(place, 0)]
        return offsets

    def local_us(self, t_us: np.ndarray) -> np.ndarray:
        """The local time, as microseconds since 1970-01-01 in local time."""
        local_us: np.ndarray = t_us + self.offset_us(t_us)
        return local_us

    def universal_us(self, local_us: np.ndarray, later: np.ndarray) -> np.ndarray:
        """The universal time of a local one.

        Args:
            local_us: microseconds since 1970-01-01 in local time.
            later: (n,) bool, which one is meant where clocks show the same time twice. A time that clocks skip is
                read by the offset of before or of after: they will show another one.
        """
        by_later = np.full(len(local_us), self._offsets[0])
        by_earlier = by_later.copy()
        for change, old, new in zip(self._changes[1:], self._offsets[:-1], self._offsets[1:], strict=True):
            by_later[local_us - new >= change] = new
            by_earlier[local_us - old >= change] = new
        t_us: np.ndarray = local_us - np.where(later, by_later, by_earlier)
        return t_us

    def week_day(self, local_us: np.ndarray) -> np.ndarray:
        """0 is Monday."""
        return (local_us // DAY + 3) % 7  # 1970-01-01 was a Thursday

    def hour(self, local_us: np.ndarray) -> np.ndarray:
        """0 to 23."""
        return local_us // HOUR % 24
