"""Events as the columns of the raw log: texts as Arrow holds them, a block at a time."""

from __future__ import annotations

import gzip
from collections import Counter
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.logs.schema import SECOND, THESIS_CHANNELS, THESIS_DEVICES
from diptych.commerce.scenes.shop_log.chance import (
    ACTIONS,
    COUNTRIES,
    DAY,
    DEVICES,
    HOUR,
    MOST_EVENTS,
    RAW_COLUMNS,
    Calendar,
    Draw,
)
from diptych.commerce.scenes.shop_log.effects import PAGE_TYPES
from diptych.commerce.scenes.shop_log.events import NOTHING, PAGES, Events
from diptych.commerce.scenes.shop_log.sessions import ITEMS
from diptych.commerce.scenes.shop_log.world import World, typed_texts
from diptych.core.draws import draw_below, draw_uniform
from diptych.core.extras import require

if TYPE_CHECKING:
    import pyarrow as pa


RULES = ("duplicate", "no client", "unreadable time", "country", "device", "too many events")
"""What the rows of a dirty log are dropped by."""

UNREADABLE = ("yesterday", "2019-13-45T25:61:61.000000Z", "n/a", None)
"""What stands instead of a time."""

OTHER_COUNTRIES = ("US", "CN", "BR")
BOT_DEVICES = ("Robot",)

BOT_EVENTS = MOST_EVENTS + 500

_BOT_COOKIE = 1 << 62  # above those of visitors


def spoil(world: World, events: Events, rate: float) -> tuple[Events, Counter[str]]:
    """Return the events of a block, unordered, among rows that are none.

    A part ``rate`` of the events is there twice, once more without cookie and customer, and once more with a time
    that cannot be read; a part ``rate`` of the sessions is there once more from another country, and from no known
    device. All that are no exact copies have cookies of their own.

    Returns:
        (events, rows that have been added, by rule)
    """
    spoilt = [events]
    added: Counter[str] = Counter()
    for number, rule in enumerate(RULES[:-1]):
        by_session = rule in ("country", "device")
        thing = np.where(by_session, 0, events.t_us)
        rows = np.flatnonzero(draw_uniform(world.seed, Draw.DIRT, number, events.session, thing) < rate)
        some, thing = events.take(rows), thing[rows]
        kind = draw_uniform(world.seed, Draw.BOT, number, some.session, thing)
        bot = _BOT_COOKIE + (kind * 2**53).astype(np.int64)
        some = some.but(**_changes(rule, bot))
        spoilt.append(some)
        added[rule] = len(some)
    order = np.argsort(
        np.concatenate(
            [
                draw_uniform(world.seed, Draw.ORDER, place, one.session, one.t_us)
                for place, one in enumerate(spoilt)
            ]
        ),
        kind="stable",
    )
    return Events.joined(*spoilt).take(order), added


def _changes(rule: str, bot: np.ndarray) -> dict[str, np.ndarray | int]:
    """Return which columns of an event become what, so that the rule finds it; ``bot`` is a cookie for each."""
    nobody: dict[str, np.ndarray | int] = {"cookie": bot, "customer": NOTHING}
    changes: dict[str, dict[str, np.ndarray | int]] = {
        "duplicate": {},
        "no client": {"cookie": NOTHING, "customer": NOTHING},
        "unreadable time": nobody | {"unreadable": bot % len(UNREADABLE)},
        "country": nobody | {"country": len(COUNTRIES) + bot % len(OTHER_COUNTRIES)},
        "device": nobody | {"device": np.where(bot % 2 == 0, NOTHING, len(DEVICES))},
    }
    return changes[rule]


def busy_bot(world: World) -> Events:
    """Return one cookie with more events than any visitor has, all else as it should be."""
    numbers = np.arange(BOT_EVENTS)
    window = world.calendar.days * DAY
    t_us = world.calendar.first_day * DAY + (draw_uniform(world.seed, Draw.BOT, numbers) * window).astype(
        np.int64
    )
    nothing = np.full(BOT_EVENTS, NOTHING)
    return Events(
        t_us=np.sort(t_us),
        unreadable=nothing,
        session=nothing,
        cookie=np.full(BOT_EVENTS, 2 * _BOT_COOKIE - 1),
        customer=nothing,
        device=np.full(BOT_EVENTS, list(DEVICES).index("PC")),
        channel=np.zeros(BOT_EVENTS, np.int64),
        country=np.zeros(BOT_EVENTS, np.int64),
        action=np.full(BOT_EVENTS, list(ACTIONS).index("page")),
        page=draw_below(len(PAGE_TYPES), world.seed, Draw.BOT, numbers, 1),
        query=nothing,
        item=nothing,
        purchased=np.zeros(BOT_EVENTS, bool),
    )


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

_PRICES = 20191001
_APPS = tuple(THESIS_DEVICES.index(name) for name in ("smartphone", "tablet"))


def raw_table(world: World, events: Events) -> pa.Table:
    """Return the events in the columns of the raw log."""
    pa = require("pyarrow", "commerce", WORK)
    columns = {
        "time": _times(world, events),
        "cookie": _numbered(events.cookie, "{:016x}"),
        "customer": _numbered(events.customer, "c{:08d}"),
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
    """Return what apps write is universal time, what browsers write is local time."""
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


def _numbered(values: np.ndarray, text: str) -> pa.Array:
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


_ROWS = 2_000_000
"""Of a Parquet file: another one begins after the block that reaches it."""


class _Files:
    """Tables of the same columns, one after the other; closed at the end of a ``with``."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._writer: Any = None

    def close(self) -> None:
        """Finish the file that is open."""
        self._open.close()
        self._writer = None

    def __enter__(self) -> _Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, table: pa.Table) -> None:
        """Write a table."""
        raise NotImplementedError


class CsvFile(_Files):
    """A compressed CSV file with a header; the same rows are the same bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def write(self, table: pa.Table) -> None:
        """Write a table; missing values are empty."""
        pa, csv = require("pyarrow", "commerce", WORK), require("pyarrow.csv", "commerce", WORK)
        plain = pa.schema([(field.name, _plain(pa, field.type)) for field in table.schema])
        if self._writer is None:
            file = self._open.enter_context(self._path.open("wb"))
            # neither a name nor a time in the header
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=4, mtime=0)
            self._writer = self._open.enter_context(csv.CSVWriter(self._open.enter_context(packed), plain))
        self._writer.write_table(table.cast(plain))


class ParquetFiles(_Files):
    """Parquet files, a row group for every table."""

    def __init__(self, pattern: Path) -> None:
        super().__init__()
        self._pattern = pattern
        self._files = self._rows = 0

    def write(self, table: pa.Table) -> None:
        """Write a table; columns of words by number are plain texts to who reads them."""
        parquet = require("pyarrow.parquet", "commerce", WORK)
        if self._writer is None:
            path = self._pattern.with_name(self._pattern.name.replace("*", f"{self._files:04d}"))
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = self._open.enter_context(
                parquet.ParquetWriter(path, table.schema, compression="zstd", store_schema=False)
            )
            self._files += 1
            self._rows = 0
        self._writer.write_table(table)
        self._rows += len(table)
        if self._rows >= _ROWS and "*" in self._pattern.name:
            self.close()


def _plain(pa: Any, kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
