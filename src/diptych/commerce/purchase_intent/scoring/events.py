"""Events of a session that runs just now, as a shop's service sends them.

Words for actions and devices are those that an import knows; errors have the event's number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from reprlib import Repr
from typing import Any

from diptych.commerce.purchase_intent.features.view import EARLIER_DEVICES, NOTHING
from diptych.core.errors import DataError
from diptych.data.logs.schema import ACTION_WORDS, ACTIONS, DEVICE_WORDS, MISSING_WORDS, SECOND, UNKNOWN

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
    action: str  # one of :data:`~diptych.data.logs.schema.ACTIONS`
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
