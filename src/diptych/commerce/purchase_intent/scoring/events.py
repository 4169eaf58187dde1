"""Events of a session that runs just now, as a shop's service sends them, and what is known of its visitor.

Words for actions and devices are those that an import knows; errors have the event's number. The history of every
visitor of a log is kept beside a scorer only where it is asked for: it holds identifiers and what was bought when,
personal data. It stands still at the end of the log; a shop should give its own with every request.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.logs.schema import ACTION_WORDS, ACTIONS, DEVICE_WORDS, MISSING_WORDS, SECOND, UNKNOWN
from diptych.commerce.purchase_intent.features.view import EARLIER_DEVICES, NOTHING
from diptych.core.errors import DataError, StorageError
from diptych.core.files import atomic_path

if TYPE_CHECKING:
    import pyarrow as pa

    from diptych.commerce.purchase_intent.sessions import SessionTables

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_SECOND = 253_402_300_800
"""The year 10000: milliseconds given for seconds are far beyond."""

_ACTION = {word: action for action, words in ACTION_WORDS.items() for word in words}
_DEVICE = {word: device for device, words in DEVICE_WORDS.items() for word in words}
_NOBODY = frozenset(MISSING_WORDS)

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def shown(value: Any) -> str:
    """As ``repr``, and short, whatever was sent."""
    return _SHORT.repr(value)


EVENT_KEYS: Mapping[str, str] = {
    "t": "when: an ISO time (of UTC, where it names no zone), or seconds since 1970-01-01 UTC",
    "action": "one of " + ", ".join(ACTIONS) + "; page, when nothing is said",
    "page_type": "of a page, in the words of the log that the scorer was trained on",
    "device": "device type",
    "channel": "how the visitor came",
    "visitor_id": "the customer, where known at this event",
    "is_purchase": "whether something was bought; always so of the action purchase",
}
"""What is read of an event; anything else in it is passed over, as it plays no part."""


@dataclass(frozen=True)
class GivenEvent:
    """One event, as canonical as those of a log."""

    number: int  # its place in what was given, 1 is the first
    t_us: int  # microseconds since 1970-01-01 UTC
    action: str  # one of :data:`~diptych.commerce.logs.schema.ACTIONS`
    page_type: str  # or unknown
    device: str  # in lower case, or unknown
    channel: str  # in lower case, or unknown
    visitor_id: str | None  # or None
    is_purchase: bool  # whether something was bought


def read_event(given: Any, number: int, defaults: Mapping[str, Any] | None = None) -> GivenEvent:
    """Read one event."""
    where = f"event {number}"
    if not isinstance(given, Mapping):
        raise DataError(
            f"{where} is {type(given).__name__}, not an object", 'e.g. {"t": 0, "action": "page"}'
        )
    event = {**(defaults or {}), **{key: value for key, value in given.items() if value is not None}}
    if event.get("t") is None:
        raise DataError(f"{where} has no time", f"t: {EVENT_KEYS['t']}")
    said = read_text(event, "action", where) or "page"
    action = _ACTION.get(said.lower())
    if action is None:
        raise DataError(f"{where} has the action {shown(said)}", f"known: {', '.join(ACTIONS)}")
    bought = event.get("is_purchase", False)
    if not isinstance(bought, bool):
        raise DataError(f"{where} has is_purchase {shown(bought)}", "true or false")
    visitor = read_text(event, "visitor_id", where)
    return GivenEvent(
        number=number,
        t_us=read_time(event["t"], where),
        action=action,
        page_type=read_text(event, "page_type", where) or UNKNOWN,
        device=read_device(event, where),
        channel=(read_text(event, "channel", where) or UNKNOWN).lower(),
        visitor_id=None if visitor in _NOBODY else visitor,
        is_purchase=bought or action == "purchase",
    )


def read_device(given: Mapping[str, Any], where: str) -> str:
    """The device type under ``device``, in the words of logs: a desktop is a pc."""
    said = (read_text(given, "device", where) or UNKNOWN).lower()
    return _DEVICE.get(said, said)


def read_time(given: Any, where: str) -> int:
    """Microseconds since 1970-01-01 UTC of an ISO time or of seconds."""
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise DataError(
                f"{where} has the time {shown(given)}",
                "e.g. 2019-10-01T19:30:00+02:00, or seconds since 1970",
            ) from None
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        microseconds = (moment - _EPOCH) // _MICROSECOND
    elif (seconds := read_number(given)) is not None:
        microseconds = round(seconds * SECOND)
    else:
        raise DataError(
            f"{where} has the time {shown(given)}", "an ISO time, or seconds since 1970-01-01 UTC"
        )
    if not 0 <= microseconds < _LAST_SECOND * SECOND:
        raise DataError(
            f"{where} has the time {shown(given)}, outside the years 1970 to 9999",
            "seconds, not milliseconds",
        )
    return microseconds


def read_number(given: Any) -> int | float | None:
    """A finite number that a float can hold; None of anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    try:
        return given if math.isfinite(given) else None
    except OverflowError:
        return None


def read_text(given: Mapping[str, Any], key: str, where: str) -> str | None:
    """The text under a key, without blanks around it; None where there is none or an empty one."""
    value = given.get(key)
    if value is None:
        return None
    number = isinstance(value, int) and read_number(value) is not None
    if not number and not isinstance(value, str):
        raise DataError(f"{where} has {key} {type(value).__name__}, not a text", "a text, or a whole number")
    return str(value).strip() or None


# A visitor's history as a request gives it, to the history columns of a view.
#
# What a request does not say is missing, as it is of nobody in training; the score's notes name it. A visitor who
# was never there before has ``{"sessions": 0}``, which says everything.


DAY_US = 86_400 * SECOND

HISTORY_KEYS: Mapping[str, str] = {
    "sessions": "how many sessions the visitor had before this one",
    "devices": "device type of each of them, earliest first",
    "orders": "how many sessions something was bought in, until now",
    "last_purchase": "when something was bought last",
    "days_since_purchase": "the same in days before this session's start",
    "since": "since when sessions were recorded; the start of the scorer's log, when nothing is said",
}

_MOST_SHOWN = 5

_NUMBERS = ("orders", "days_since_purchase", "sessions", "devices", "switches", "pairs", "history_days")


def history_columns(
    history: Mapping[str, Any] | None, start_us: int, device: str, since_us: int | None
) -> tuple[dict[str, float | str], list[str]]:
    """The history columns of one session, and the names of those that nobody said anything about."""
    columns: dict[str, float | str] = dict.fromkeys(_NUMBERS, math.nan) | dict.fromkeys(
        EARLIER_DEVICES, NOTHING
    )
    if history is None:
        return columns, list(HISTORY_KEYS)[:3]
    given = {key: value for key, value in history.items() if value is not None}
    if strange := sorted(set(given) - set(HISTORY_KEYS)):
        raise DataError(
            f"a history has no {', '.join(map(shown, strange[:_MOST_SHOWN]))}",
            f"known: {', '.join(HISTORY_KEYS)}",
        )
    earlier = _devices(given)
    sessions = _whole(given, "sessions", None if earlier is None else len(earlier))
    if sessions == 0:
        given, earlier = {"orders": 0, **given}, earlier or []
    orders = _whole(given, "orders")
    if sessions is not None and earlier is not None and len(earlier) != sessions:
        raise DataError(
            f"the history has {len(earlier)} devices of {sessions} sessions",
            "one for every earlier session, earliest first; leave devices out where they are not known",
        )
    days = _days(given, start_us)
    if days is not None and orders == 0:
        raise DataError("the history has no orders, and a purchase", "orders counts what was bought before")
    if earlier is not None:
        columns |= {
            "devices": float(len({*earlier, device})),
            "switches": float(sum(one != other for one, other in pairwise(earlier))),
            "pairs": float(max(0, len(earlier) - 1)),
            **dict(zip(EARLIER_DEVICES, reversed(earlier), strict=False)),
        }
    begun = read_time(given["since"], "the history's since") if "since" in given else since_us
    columns |= {
        "sessions": math.nan if sessions is None else float(sessions),
        "orders": math.nan if orders is None else float(orders),
        "days_since_purchase": math.nan if days is None else days,
        "history_days": math.nan if begun is None else (start_us - begun) / DAY_US,
    }
    said = {"sessions": sessions, "devices": earlier, "orders": orders}
    missing = [key for key, value in said.items() if value is None]
    if days is None and orders:
        missing.append("last_purchase")
    return columns, missing


def _devices(given: Mapping[str, Any]) -> list[str] | None:
    devices = given.get("devices")
    if devices is None:
        return None
    if not isinstance(devices, list | tuple) or not all(isinstance(one, str) for one in devices):
        raise DataError(f"the history's devices are {shown(devices)}", f"a list: {HISTORY_KEYS['devices']}")
    return [read_device({"device": one}, "the history") for one in devices]


def _whole(given: Mapping[str, Any], key: str, default: int | None = None) -> int | None:
    value = given.get(key, default)
    if value is None:
        return None
    number = read_number(value)
    if number is None or number < 0 or number != int(number):
        raise DataError(
            f"the history's {key} is {shown(value)}", f"a whole number, 0 or more: {HISTORY_KEYS[key]}"
        )
    return int(number)


def _days(given: Mapping[str, Any], start_us: int) -> float | None:
    if "last_purchase" in given and "days_since_purchase" in given:
        raise DataError("the history has last_purchase and days_since_purchase", "give one of them")
    if "last_purchase" in given:
        days = (start_us - read_time(given["last_purchase"], "the history's last_purchase")) / DAY_US
    elif "days_since_purchase" in given:
        said = read_number(given["days_since_purchase"])
        if said is None:
            raise DataError(
                f"the history's days_since_purchase is {shown(given['days_since_purchase'])}",
                "a number of days",
            )
        days = said
    else:
        return None
    if days < 0:
        raise DataError(
            f"the history's last purchase is {-days:g} days after this session's start",
            "only what was bought before the session is history",
        )
    return float(days)


FILE = "history.parquet"
_BLOCK = 1 << 16
_READ = (
    "visitor_id",
    "session_id",
    "start_us",
    "end_us",
    "device",
    "first_purchase_us",
    "pages_before_identified",
)


class HistoryTable:
    """What is known of each visitor at the end of the log."""

    def __init__(self, file: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self._rows: pa.Table = pq.read_table(file)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"{file} cannot be read: {error}", "train again with --keep-history") from None
        self._visitors = self._rows.column("visitor_id").combine_chunks()

    def __len__(self) -> int:
        return len(self._visitors)

    def columns(
        self, visitor: str, start_us: int, device: str, since_us: int | None
    ) -> tuple[dict[str, float | str], int] | None:
        """The history columns of a session of ``visitor``, and when the visitor's last session ended.

        None of a visitor who is not in the table: never seen before.
        """
        place = bisect_left(self._visitors, visitor, key=lambda scalar: scalar.as_py())
        if place == len(self) or self._visitors[place].as_py() != visitor:
            return None
        row: dict[str, Any] = self._rows.slice(place, 1).to_pylist()[0]
        bought = row["last_purchase_us"]
        last = dict(zip(EARLIER_DEVICES, row["last_devices"], strict=False))
        columns: dict[str, float | str] = {
            "orders": float(row["orders"]),
            "days_since_purchase": np.nan if bought is None else (start_us - bought) / DAY_US,
            "sessions": float(row["sessions"]),
            "devices": float(len({*row["devices"], device})),
            "switches": float(row["switches"]),
            "pairs": float(row["sessions"] - 1),
            "history_days": np.nan if since_us is None else (start_us - since_us) / DAY_US,
            **{name: last.get(name, NOTHING) for name in EARLIER_DEVICES},
        }
        return columns, int(row["last_end_us"])


def keep_history(tables: SessionTables, file: Path) -> int:
    """Write the history of every visitor; gives how many there are.

    Sessions count in the order in which they became known as the visitor's, see
    :mod:`diptych.commerce.purchase_intent.features.make`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    known = ds.dataset(tables.files("sessions")).to_table(
        columns=list(_READ), filter=pc.field("visitor_id").is_valid()
    )
    visitors, codes = _encoded(known.column("visitor_id"))
    names, devices = _encoded(known.column("device"))
    ends = known.column("end_us").to_numpy()
    on_arrival = known.column("pages_before_identified").to_numpy() == 0
    known_us = np.where(on_arrival, known.column("start_us").to_numpy(), ends)
    order = np.lexsort((known.column("session_id").to_numpy(), known_us, codes))
    bought = known.column("first_purchase_us").to_numpy().astype(np.float64)  # NaN where nothing was
    begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sessions_of = np.append(begins, len(order))
    with (
        atomic_path(file) as temporary,
        pq.ParquetWriter(temporary, _schema(pa), compression="zstd") as writer,
    ):
        for start in range(0, len(visitors), _BLOCK):
            rows = []
            for number in range(start, min(start + _BLOCK, len(visitors))):
                mine = order[sessions_of[number] : sessions_of[number + 1]]
                history = _history(names, devices[mine], bought[mine], ends[mine])
                rows.append({"visitor_id": visitors[number], **history})
            writer.write_table(pa.Table.from_pylist(rows, _schema(pa)))
    return len(visitors)


def _encoded(column: Any) -> tuple[list[str], np.ndarray]:
    """The texts of a column, sorted, and (n,) the place of each in them."""
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.empty(len(texts), dtype=np.int64)
    place[order] = np.arange(len(texts))
    return [texts[number] for number in order], place[encoded.indices.to_numpy()]


def _history(names: list[str], devices: np.ndarray, bought: np.ndarray, ends: np.ndarray) -> dict[str, Any]:
    """One visitor's, of sessions in their order."""
    there = bought[~np.isnan(bought)]
    return {
        "orders": len(there),
        "last_purchase_us": int(there.max()) if len(there) else None,
        "sessions": len(devices),
        "switches": int((devices[1:] != devices[:-1]).sum()),
        "devices": [names[code] for code in np.unique(devices)],
        "last_devices": [names[code] for code in devices[::-1][: len(EARLIER_DEVICES)]],
        "last_end_us": int(ends.max()),
    }


def _schema(pa: Any) -> Any:
    numbers = ("orders", "last_purchase_us", "sessions", "switches", "last_end_us")
    return pa.schema(
        [
            ("visitor_id", pa.string()),
            *((name, pa.int64()) for name in numbers),
            *((name, pa.list_(pa.string())) for name in ("devices", "last_devices")),
        ]
    )
