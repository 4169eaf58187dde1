"""Features in plain words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diptych.commerce.purchase_intent.features import FEATURES
from diptych.commerce.purchase_intent.features.view import SessionsView, text_array
from diptych.commerce.purchase_intent.scoring.score import reason_of, typical_value, value_in_words

NAN = math.nan


def view(**columns: list[float] | list[str]) -> SessionsView:
    n = len(next(iter(columns.values())))
    arrays = {
        name: text_array(values) if isinstance(values[0], str) else np.array(values)  # type: ignore[arg-type]
        for name, values in columns.items()
    }
    nothing = np.zeros((n, 0), dtype=np.int64)
    return SessionsView(arrays, nothing.astype(np.int32), nothing)


@pytest.mark.parametrize(
    ("feature", "given", "columns", "words"),
    [
        ("orders", {"orders": [3.0]}, [3.0], "3"),
        ("orders", {"orders": [NAN]}, [NAN], "none"),
        ("week-day", {"start_dow": [2.0]}, [0, 0, 1, 0, 0, 0, 0], "Wednesday"),
        ("start-hour", {"start_hour": [19.0]}, [19.0], "19 h"),
        ("hour-cyclic", {"start_hour": [19.0]}, [-0.97, 0.26], "19 h"),
        ("channel", {"channel": ["paid"]}, [0, 1], "paid"),
        ("device-rate", {"device": ["pc"]}, [0.12345678], "0.1235"),
        ("days-since-purchase", {"days_since_purchase": [12.5], "orders": [1.0]}, [12.5, 0.0], "12.5"),
    ],
)
def test_a_value(feature: str, given: dict[str, list[float]], columns: list[float], words: str) -> None:
    assert value_in_words(FEATURES.get(feature), view(**given), np.array(columns)) == words


def test_typical_values() -> None:
    given = view(
        orders=[0.0, 0.0, 7.0, 1.0, 9.0],
        days_since_purchase=[NAN, NAN, 3.0, 1.0, NAN],
        start_hour=[23.0, 0.0, 23.0, 1.0, 0.0],
        channel=["b", "a", "b", "a", "c"],
    )
    orders = given.columns["orders"][:, None]
    assert typical_value(FEATURES.get("orders"), given, orders) == "1"
    hours = given.columns["start_hour"][:, None]
    assert typical_value(FEATURES.get("start-hour"), given, hours) == "0 h"  # the first of the most frequent
    assert typical_value(FEATURES.get("channel"), given, np.zeros((5, 3))) == "a"
    # Most have none, so that none is typical.
    assert typical_value(FEATURES.get("days-since-purchase"), given, np.zeros((5, 2))) == "none"


@pytest.mark.parametrize(
    ("value", "effect", "text"),
    [
        ("3", math.log(2.4), "number of orders: 3, typically 0; raises the odds 2.4×"),
        ("3", -math.log(2), "number of orders: 3, typically 0; lowers the odds 2×"),
        ("0", -math.log(2), "number of orders: 0, as is typical; lowers the odds 2×"),
        ("3", 5000.0, "number of orders: 3, typically 0; raises the odds more than 1000×"),
    ],
)
def test_a_reason(value: str, effect: float, text: str) -> None:
    reason = reason_of(FEATURES.get("orders"), value, "0", effect)
    assert str(reason) == reason.text == text
    assert reason.effect == effect
