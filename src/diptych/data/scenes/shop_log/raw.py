"""Events as the columns of the raw log: texts as Arrow holds them, a block at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.draws import draw_uniform
from diptych.core.extras import require
from diptych.data.logs.schema import SECOND, THESIS_CHANNELS, THESIS_DEVICES
from diptych.data.scenes.shop_log.calendar import DAY, HOUR, Calendar
from diptych.data.scenes.shop_log.columns import ACTIONS, COUNTRIES, DEVICES, RAW_COLUMNS
from diptych.data.scenes.shop_log.dirt import BOT_DEVICES, OTHER_COUNTRIES, UNREADABLE
from diptych.data.scenes.shop_log.events import NOTHING, PAGES, Events
from diptych.data.scenes.shop_log.paths import ITEMS
from diptych.data.scenes.shop_log.queries import typed_texts
from diptych.data.scenes.shop_log.world import World

if TYPE_CHECKING:
    import pyarrow as pa


_MINUTE = 60 * SECOND


def stamps(calendar: Calendar, t_us: np.ndarray, universal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Write times, e.g. ``2019-10-27T02:30:00.000001+02:00`` or ``2019-10-27T00:30:00.000001Z``.

    Args:
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


WORK = "making a shop log"

COOKIE = "{:016x}"
"""How the number of a cookie is written."""

_PRICES = 20191001
_APPS = tuple(THESIS_DEVICES.index(name) for name in ("smartphone", "tablet"))


def raw_table(world: World, events: Events) -> pa.Table:
    """The events in the columns of the raw log."""
    pa = require("pyarrow", "commerce", WORK)
    columns = {
        "time": _times(world, events),
        "cookie": numbered(events.cookie, COOKIE),
        "customer": numbered(events.customer, "c{:08d}"),
        "device": _named(events.device, (*DEVICES, *BOT_DEVICES)),
        "channel": _named(events.channel, tuple(name.capitalize() for name in THESIS_CHANNELS)),
        "country": _named(events.country, (*COUNTRIES, *OTHER_COUNTRIES)),
        "action": _named(events.action, tuple(ACTIONS)),
        "page": _named(events.page, PAGES),
        "query": _named(events.query, typed_texts(world.effects.queries)),
        "item": _named(events.item, _item_texts()),
        "price": pa.array(_prices()[events.item], mask=events.item == NOTHING),
        "purchased": pa.array(events.purchased),
    }
    return pa.table({name: columns[name] for name in RAW_COLUMNS})


def _times(world: World, events: Events) -> pa.Array:
    """What apps write is universal time, what browsers write is local time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    letters, ends = stamps(world.calendar, events.t_us, np.isin(events.device, _APPS))
    times = pa.StringArray.from_buffers(len(events), pa.py_buffer(ends), pa.py_buffer(letters))
    bad = events.unreadable != NOTHING
    if not bad.any():
        return times
    instead = _dictionary(UNREADABLE).take(pa.array(events.unreadable[bad]))
    return pc.replace_with_mask(times, pa.array(bad), instead)


def _named(codes: np.ndarray, names: tuple[str | None, ...]) -> pa.Array:
    """Texts by number; none where there is no number."""
    import pyarrow as pa

    numbers = pa.array(codes.astype(np.int32), mask=codes == NOTHING)
    return pa.DictionaryArray.from_arrays(numbers, _dictionary(names))


def numbered(values: np.ndarray, text: str) -> pa.Array:
    """Numbers, each written as ``text`` says; none where there is no number."""
    import pyarrow as pa

    known = values != NOTHING
    different, place = np.unique(values[known], return_inverse=True)
    numbers = np.zeros(len(values), np.int32)
    numbers[known] = place
    texts = pa.array([text.format(value) for value in different.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=~known), texts)


@lru_cache(maxsize=32)
def _dictionary(names: tuple[str | None, ...]) -> pa.Array:
    import pyarrow as pa

    return pa.array(names, pa.string())


@lru_cache
def _item_texts() -> tuple[str, ...]:
    return tuple(f"p{number:05d}" for number in range(ITEMS))


@lru_cache
def _prices() -> np.ndarray:
    """(items,) euros from 2.00 to 800.00, most of them low."""
    return np.round(2 * 400 ** draw_uniform(_PRICES, np.arange(ITEMS)), 2)
