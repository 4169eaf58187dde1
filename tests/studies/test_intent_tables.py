"""Thesis chapter 6: printed arithmetic, and what is counted in a log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from intent_rows import described

from diptych.commerce.purchase_intent.shown import Discretion
from diptych.studies.intent_rows import (
    MIDDLE,
    Statistics,
    channel_shares,
    device_counts,
    hours,
    lengths,
    middle,
    queries,
    transitions,
    unique_queries,
    week_days,
)
from diptych.studies.study import PUBLISHED

Rows = Sequence[Mapping[str, Any]]


def of(**tables: Rows) -> Statistics:
    return lambda name: tables.get(name.replace("-", "_"), [])


def group(
    key: str, name: str, bought: int, others: int, of_all: tuple[int, int], standardised: float | None
) -> dict[str, Any]:
    return {
        key: name,
        "sessions": bought + others,
        "purchase_sessions": bought,
        "purchase_share": bought / of_all[0],
        "other_share": others / of_all[1],
        "rate": bought / (bought + others),
        "low": 0.1,
        "high": 0.3,
        "standardised": standardised,
    }


def test_what_is_hidden_is_left_out_and_nothing_else_changes() -> None:
    tables = described()
    countings = (
        channel_shares,
        lengths,
        transitions,
        unique_queries,
        week_days,
        hours,
        queries,
        device_counts,
    )
    for counting in countings:
        every = counting(tables.__getitem__)
        some = counting(lambda name: Discretion(least=25).rows(name, tables[name]))
        assert every, counting.__name__
        for row, columns in some.items():
            same = {name: every[row][name] for name in columns} == pytest.approx(columns)
            assert same or counting is week_days
    hidden = transitions(lambda name: Discretion(least=25).rows(name, tables[name]))
    # 20 and 60 of 80
    assert not [name for name in hidden["pc"] if name.startswith(("to pc", "to smartphone"))]
    assert hidden["smartphone"]["to pc"] == pytest.approx(30.0)
    few = unique_queries(lambda name: Discretion(least=60).rows(name, tables[name]))
    assert "purchase %" not in few["pc"]


def test_channels_are_standardised_both_ways() -> None:
    rows = [
        group("channel", "direct", 6, 4, (10, 10), -0.5),
        group("channel", "paid", 4, 5, (10, 10), 1.5),
        group("channel", "e-mail", 0, 1, (10, 10), -1.0),  # the thesis has none, the rates do
    ]
    found = channel_shares(of(channels=rows))
    assert list(found) == ["direct", "paid"]
    assert found["paid"]["purchase"] == 40.0
    assert found["paid"]["non-purchase"] == 50.0
    assert found["paid"]["standardised"] == 1.5
    assert found["paid"][f"standardised{PUBLISHED}"] == pytest.approx(1.5 * math.sqrt(2 / 3))
    assert found["paid"]["rate low"] == 10.0


def week(sessions: Sequence[int], purchase: bool) -> Rows:
    of = {"purchase": purchase, "low": 0.0, "high": 1.0}
    return [
        {**of, "week_day": day, "sessions": n, "share": n / sum(sessions)} for day, n in enumerate(sessions)
    ]


def test_three_busiest_days_and_both_kinds_together() -> None:
    rows = [*week([10, 20, 30, 25, 5, 6, 4], True), *week([100, 0, 0, 0, 0, 0, 100], False)]
    found = week_days(of(week_days=rows))
    assert found["purchase"]["three most"] == pytest.approx(75.0)
    assert found["purchase"]["four least"] == pytest.approx(25.0)
    assert found["purchase"]["difference"] == pytest.approx(50.0)
    assert found["either"]["Monday"] == pytest.approx(100 * 110 / 300)
    three = sum(found["either"][day] for day in ("Monday", "Tuesday", "Sunday"))
    assert three == pytest.approx(100 * 234 / 300)


def test_lengths_between_two_percentiles() -> None:
    base = {"device": "pc", "purchase": True}
    counts = [{**base, "length": length, "sessions": n} for length, n in ((1, 5), (2, 4), (50, 1))]
    row = {**base, "sessions": 10, "mean": 6.3, "p50": 1, "p90": 2, "p99": 50, "max": 50}
    everywhere = [{**one, "device": "all"} for one in (*counts, row)]
    tables = {
        "session_length": [*counts, *everywhere[:-1]],
        "session_length_quantiles": [row, everywhere[-1]],
    }
    found = lengths(of(**tables))
    assert found["pc-purchase"][MIDDLE] == 2.0  # of ten sessions the sixth to ninth
    assert found["pc-purchase"]["P90"] == 2.0
    assert found["any-purchase"] == found["pc-purchase"]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_the_middle_is_that_of_repeated_sessions(given_lengths: list[int]) -> None:
    """Every session ten times: then the ends fall between sessions, and the middle is a plain mean."""
    repeated = sorted(length for length in given_lengths for _ in range(10))
    n = len(repeated)
    counts = {length: repeated.count(length) for length in set(repeated)}
    inside = repeated[n // 2 : n * 9 // 10]
    assert middle(counts) == pytest.approx(sum(inside) / len(inside))


def test_transitions_are_rows_of_the_device_before() -> None:
    columns = ("from_device", "to_device", "transitions", "share", "low", "high", "link")
    given_rows = (
        ("tv", "pc", 7, 7 / 16, 0.0, 1.0, "weak"),
        ("tv", "tv", 9, 9 / 16, 0.0, 1.0, "weak"),
        ("fridge", "pc", 1, 1.0, 0.0, 1.0, "weak"),
    )
    rows = [dict(zip(columns, row, strict=True)) for row in given_rows]
    found = transitions(of(device_transitions=rows))
    assert list(found) == ["tv"]
    assert found["tv"]["to pc"] == 43.75
    assert found["tv"]["transitions"] == 16.0


def test_a_total_of_unique_queries_counts_once_and_as_published() -> None:
    columns = ("purchase", "device", "unique", "queries", "share", "unique_share")
    given_rows = (
        (True, "pc", 4, 10, 0.4, 0.4),
        (True, "tv", 5, 10, 0.5, 0.5),
        (True, "fridge", 1, 10, 0.1, 0.1),
        (True, "all", 6, 10, None, 0.6),
        (False, "all", 3, 10, None, 0.3),
    )
    rows = [dict(zip(columns, row, strict=True)) for row in given_rows]
    found = unique_queries(of(unique_queries=rows))
    assert found["all"]["purchase count"] == 6.0
    assert found["all"][f"purchase count{PUBLISHED}"] == 10.0
    assert found["all"]["purchase unique %"] == 60.0
    assert found["all"]["purchase %"] == 100.0
    assert found["pc"]["purchase %"] == 40.0
    assert "fridge" not in found
