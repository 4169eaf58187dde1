"""A visitor's history as a request gives it, to the history columns of a view.

What a request does not say is missing, as it is of nobody in training; the score's notes name it. A visitor who
was never there before has ``{"sessions": 0}``, which says everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from diptych.commerce.purchase_intent.features.columns import EARLIER_DEVICES, NOTHING
from diptych.commerce.purchase_intent.scoring.events import read_device, read_number, read_time, shown
from diptych.core.errors import DataError
from diptych.data.logs.schema import SECOND

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
