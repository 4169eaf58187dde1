"""A visitor's history in words to the columns that features are made of."""

from __future__ import annotations

import math
from typing import Any

import pytest

from diptych.commerce.purchase_intent.features.view import EARLIER_DEVICES, HISTORY_COLUMNS
from diptych.commerce.purchase_intent.scoring.events import DAY_US, history_columns
from diptych.core.errors import DataError

START = 100 * DAY_US


def columns(history: Any, device: str = "pc") -> tuple[dict[str, float | str], list[str]]:
    return history_columns(history, START, device, 40 * DAY_US)


def test_a_whole_history() -> None:
    given = {"sessions": 6, "devices": ["TV", "pc", "pc", "tablet", "pc", "tv"], "orders": 2,
             "last_purchase": "1970-04-09T12:00:00Z"}  # fmt: skip
    found, missing = columns(given, "smartphone")
    assert missing == []
    assert set(found) == set(HISTORY_COLUMNS)
    assert found == {
        "sessions": 6.0,
        "orders": 2.0,
        "days_since_purchase": 1.5,
        "devices": 4.0,
        "switches": 4.0,
        "pairs": 5.0,
        "history_days": 60.0,
        **dict(zip(EARLIER_DEVICES, ("tv", "pc", "tablet", "pc"), strict=True)),
    }


def test_somebody_who_was_never_there() -> None:
    found, missing = columns({"sessions": 0})
    assert missing == []
    assert math.isnan(float(found.pop("days_since_purchase")))
    assert found == {
        **{
            "sessions": 0.0,
            "orders": 0.0,
            "devices": 1.0,
            "switches": 0.0,
            "pairs": 0.0,
            "history_days": 60.0,
        },
        **dict.fromkeys(EARLIER_DEVICES, ""),
    }


def test_what_nobody_says_is_missing_and_named() -> None:
    found, missing = columns(None)
    assert missing == ["sessions", "devices", "orders"]
    assert all(value == "" or math.isnan(float(value)) for value in found.values())
    found, missing = columns({"orders": 3, "sessions": 4, "since": 90 * 86_400})
    assert missing == ["devices", "last_purchase"]
    assert (found["orders"], found["sessions"], found["history_days"]) == (3.0, 4.0, 10.0)
    assert math.isnan(float(found["devices"]))


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ({"order": 1}, "has no 'order'"),
        ({"orders": -1}, "orders is -1"),
        ({"orders": 1.5}, "orders is 1.5"),
        ({"sessions": True}, "sessions is True"),
        ({"sessions": float("nan")}, "sessions is nan"),
        ({"sessions": 10**400}, "sessions is 1000"),
        ({"orders": 1, "days_since_purchase": 10**400}, "days_since_purchase is 1000"),
        ({"sessions": 2, "devices": ["pc"]}, "1 devices of 2 sessions"),
        ({"devices": 2}, "devices are 2"),
        ({"orders": 0, "sessions": 3, "days_since_purchase": 4}, "no orders, and a purchase"),
        ({"orders": 1, "days_since_purchase": -0.5}, "0.5 days after this session's start"),
        ({"orders": 1, "last_purchase": 101 * 86_400}, "1 days after this session's start"),
        (
            {"orders": 1, "last_purchase": 1, "days_since_purchase": 1},
            "last_purchase and days_since_purchase",
        ),
        ({"orders": 1, "days_since_purchase": "many"}, "days_since_purchase is 'many'"),
    ],
)
def test_what_is_refused(history: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        columns(history)
