"""The registry against the printed table."""

from __future__ import annotations

import pytest

from diptych.commerce.purchase_intent.features import FEATURES
from diptych.commerce.purchase_intent.features.table import TABLE_6_7, features_of, optional_features
from diptych.commerce.purchase_intent.features.view import COLUMNS
from diptych.core.errors import UnknownNameError, UsageError

PRINTED = [  # label, dynamic, baseline
    ("current page dwell time, mean", True, True),
    ("current page dwell time, σ", True, True),
    ("page sequence score", True, True),
    ("number of pages", True, True),
    ("channel type", False, False),
    ("start hour", False, False),
    ("week day", False, False),
    ("device type", False, False),
    ("device conversion rate", False, False),
    ("number of orders", False, True),
    ("days since last purchase", False, True),
    ("number of sessions", False, False),
    ("number of devices", False, False),
    ("device sequence score", False, False),
    ("switch probability", False, False),
]


def test_the_rows_of_table_6_7() -> None:
    rows = [FEATURES.get(name) for name in TABLE_6_7]
    assert [(one.label, one.dynamic, one.baseline) for one in rows] == PRINTED
    assert [one.group for one in rows] == ["session"] * 9 + ["history"] * 6
    assert all(one.default for one in rows)
    assert {one.name for one in optional_features()} == set(FEATURES.names()) - set(TABLE_6_7)
    assert {"previous-device", "previous-device-rate", "hour-cyclic", "history-days"} == {
        one.name for one in optional_features()
    }


def names(*cell: object) -> list[str]:
    return [feature.name for feature in features_of(*cell)]  # type: ignore[arg-type]


def test_the_four_sets() -> None:
    assert names("anonymous", "baseline", 1) == list(TABLE_6_7[:4])
    assert names("anonymous", "extended", 10) == list(TABLE_6_7[:9])
    assert names("identified", "baseline", 1) == [*TABLE_6_7[:4], "orders", "days-since-purchase"]
    assert names("identified", "extended", 5) == list(TABLE_6_7)


def test_before_any_page_nothing_is_dynamic() -> None:
    assert names("anonymous", "baseline", 0) == []
    assert names("anonymous", "extended", 0) == list(TABLE_6_7[4:9])
    assert names("identified", "baseline", 0) == ["orders", "days-since-purchase"]


def test_what_is_asked_for_besides() -> None:
    also = ("previous-device", "hour-cyclic")
    assert names("identified", "extended", 1, also) == [*TABLE_6_7, "hour-cyclic", "previous-device"]
    assert names("anonymous", "extended", 1, also) == [*TABLE_6_7[:9], "hour-cyclic"]
    assert names("identified", "baseline", 1, also) == names("identified", "baseline", 1)
    with pytest.raises(UnknownNameError, match="hour-cylic"):
        features_of("anonymous", "extended", 1, ("hour-cylic",))
    with pytest.raises(UsageError, match="anyway"):
        features_of("anonymous", "extended", 1, ("channel",))


def test_unknown_cells() -> None:
    with pytest.raises(UnknownNameError, match="setting 'anon'"):
        features_of("anon", "extended", 1)
    with pytest.raises(UnknownNameError, match="feature set 'large'"):
        features_of("anonymous", "large", 1)


def test_features_of_the_session_need_no_history() -> None:
    group = {column.name: column.group for column in COLUMNS}
    for feature in FEATURES:
        if feature.group == "session":
            assert {group[name] for name in feature.columns} <= {"session"}, feature.name
