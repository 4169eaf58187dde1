"""Events as the columns of the raw log: texts as Arrow holds them, a block at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.draws import draw_uniform
from diptych.core.extras import require
from diptych.data.logs.schema import THESIS_CHANNELS, THESIS_DEVICES
from diptych.data.scenes.shop_log.columns import ACTIONS, COUNTRIES, DEVICES, RAW_COLUMNS
from diptych.data.scenes.shop_log.dirt import BOT_DEVICES, OTHER_COUNTRIES, UNREADABLE
from diptych.data.scenes.shop_log.events import NOTHING, PAGES, Events
from diptych.data.scenes.shop_log.paths import ITEMS
from diptych.data.scenes.shop_log.queries import typed_texts
from diptych.data.scenes.shop_log.stamps import stamps
from diptych.data.scenes.shop_log.world import World

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COOKIE", "WORK", "numbered", "raw_table"]

WORK = "making a shop log"

COOKIE = "{:016x}"
"""How the number of a cookie is written."""

_PRICES = 20191001
_APPS = tuple(THESIS_DEVICES.index(name) for name in ("smartphone", "tablet"))


def raw_table(world: World, events: Events) -> pa.Table:
    """The events in the columns of the raw log.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
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
