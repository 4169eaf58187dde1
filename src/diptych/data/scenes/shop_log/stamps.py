"""Times as a shop's servers write them: ISO 8601 with microseconds, in universal or local time."""

from __future__ import annotations

import numpy as np

from diptych.data.logs.schema import SECOND
from diptych.data.scenes.shop_log.calendar import DAY, HOUR, Calendar

__all__ = ["stamps"]

_MINUTE = 60 * SECOND


def stamps(calendar: Calendar, t_us: np.ndarray, universal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Write times, e.g. ``2019-10-27T02:30:00.000001+02:00`` or ``2019-10-27T00:30:00.000001Z``.

    Args:
        calendar: of the local time.
        t_us: (n,) microseconds.
        universal: (n,) bool, whether with Z, else with the offset of the local time.

    Returns:
        (bytes, (n + 1,) int32 where each text begins and the last one ends): what a column of texts is made of.
    """
    offset_us = np.where(universal, 0, calendar.offset_us(t_us))
    local_us = t_us + offset_us
    day, rest = np.divmod(local_us, DAY)
    fraction = rest % SECOND
    first = int(day[0]) if len(day) else 0
    first, last = int(day.min(initial=first)), int(day.max(initial=first))
    days = np.arange(first, last + 1).astype("datetime64[D]")
    parts = [
        _letters(np.datetime_as_string(days), "T")[day - first],
        _digits(24, ":")[rest // HOUR],
        _digits(60, ":")[rest // _MINUTE % 60],
        _digits(60, ".")[rest // SECOND % 60],
        _digits(1000, "")[fraction // 1000],
        _digits(1000, "")[fraction % 1000],
        _offsets(offset_us, universal),
    ]
    letters = np.concatenate(parts, axis=1)
    written = letters != 0
    ends = np.zeros(len(t_us) + 1, np.int32)
    np.cumsum(written.sum(axis=1), out=ends[1:])
    return letters[written], ends


def _offsets(offset_us: np.ndarray, universal: np.ndarray) -> np.ndarray:
    """(n, 6) letters: Z and nothing, or an offset such as +02:00."""
    different, place = np.unique(offset_us, return_inverse=True)
    texts = [_offset(int(value)) for value in different]
    letters = _letters(np.array(["Z", *texts]), "")
    return letters[np.where(universal, 0, place + 1)]


def _offset(offset_us: int) -> str:
    hours, minutes = divmod(abs(offset_us) // _MINUTE, 60)
    return f"{'-' if offset_us < 0 else '+'}{hours:02d}:{minutes:02d}"


def _digits(count: int, end: str) -> np.ndarray:
    """(count, width) letters of 0, 1, … with leading zeros, each followed by ``end``."""
    width = len(str(count - 1))
    return _letters(np.array([f"{number:0{width}d}" for number in range(count)]), end)


def _letters(texts: np.ndarray, end: str) -> np.ndarray:
    """(n, width) bytes of ASCII texts; 0 behind shorter ones."""
    given = np.array([f"{text}{end}".encode() for text in texts])
    return given.view(np.uint8).reshape(len(given), -1)
