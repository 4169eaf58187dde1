"""Statistics of a log against an independent implementation and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import scipy.stats
from events import write_log
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.described import Description, describe
from diptych.commerce.purchase_intent.engine import Engine
from diptych.commerce.purchase_intent.options import DescribeOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.commerce.purchase_intent.statistics import ORDER, link, standardise, wilson
from diptych.core.errors import UnknownNameError, UsageError


def described(folder: Path, engine: Engine, events: list[dict[str, Any]], **options: Any) -> Description:
    tables = sessionise(write_log(folder / "log", events), engine=engine)
    return describe(tables, engine=engine, options=DescribeOptions(**options))


def test_a_log_without_events(tmp_path: Path, engine: Engine) -> None:
    found = described(tmp_path, engine, [])
    assert all(row["total"] == 0 for row in found.unprotected["overview"])
    for name in ("week-days", "weekend", "hours"):
        assert {(row["sessions"], row["share"], row["low"]) for row in found.unprotected[name]} == {
            (0, None, None)
        }
    for name in set(ORDER) - {"overview", "week-days", "weekend", "hours"}:
        assert found.unprotected[name] == []
    assert found.about["notes"] == ["the log has no events: there is nothing to describe"]


def test_a_log_without_purchases_and_visitors(tmp_path: Path, engine: Engine) -> None:
    found = described(tmp_path, engine, [{"t": 0}, {"t": 0, "client_id": "d", "device": "tv"}])
    values = [
        (row["rate"], row["purchase_share"], row["standardised"]) for row in found.unprotected["devices"]
    ]
    assert values == [(0.0, None, None)] * 2
    assert {(row["purchase"], row["share"]) for row in found.unprotected["queries"]} == {(False, None)}
    assert found.unprotected["devices-per-visitor"] == found.unprotected["device-transitions"] == []
    assert len(found.about["notes"]) == 2


def test_a_device_that_is_called_all_is_not_all_of_them(tmp_path: Path, engine: Engine) -> None:
    events = [
        {"t": 0, "client_id": client, "device": device, "action": "query", "query": client}
        for client, device in (("a", "all"), ("b", "all"), ("c", "tv"))
    ]
    found = described(tmp_path, engine, events)
    for name, column, of_both in (
        ("session-length-quantiles", "sessions", 3),
        ("session-length", "sessions", 3),
        ("queries", "queries", 3),
        ("unique-queries", "unique", 3),
    ):
        counts = {row["device"]: row[column] for row in found.unprotected[name]}
        assert counts == {"all": of_both, '"all"': 2, "tv": 1}, name
    assert {row["device"]: row["share"] for row in found.unprotected["unique-queries"]}["all"] == 1


def test_notes_say_what_is_odd(tmp_path: Path, engine: Engine) -> None:
    events = [{"t": t, "visitor_id": name, "is_purchase": True} for t, name in enumerate(["ann", "bob"])]
    notes = described(tmp_path, engine, events).about["notes"]
    assert notes == [
        "every session has a purchase: there is nothing to compare them with",
        "1 sessions have several visitors; each counts for the first of them",
    ]
    log = write_log(tmp_path / "other", events)
    tables = sessionise(log, SessionOptions(by="visitor"), engine=engine)
    assert "by visitor" in describe(tables, engine=engine, names=["overview"]).about["notes"][-1]


def test_what_is_not_there_is_said(tmp_path: Path, engine: Engine) -> None:
    tables = sessionise(write_log(tmp_path / "log", [{"t": 0}]), engine=engine)
    found = describe(tables, engine=engine, names=["hours", "channels", "hours"])
    assert list(found.unprotected) == ["hours", "channels"]
    with pytest.raises(UnknownNameError, match="unknown statistic of this description 'devices'"):
        found.rows("devices")
    for names, error, match in (
        (["chanels"], UnknownNameError, "unknown statistic 'chanels'.*did you mean 'channels'"),
        ([], UsageError, "no statistic is named"),
    ):
        with pytest.raises(error, match=match):
            describe(tables, engine=engine, names=names)


@given(st.integers(1, 10**9), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_the_usual_one(of: int, data: st.DataObject, confidence: float) -> None:
    part = data.draw(st.integers(0, of))
    low, high = wilson(part, of, confidence)
    usual = scipy.stats.binomtest(part, of).proportion_ci(confidence, method="wilson")
    assert low == pytest.approx(usual.low, rel=1e-9, abs=1e-15)
    assert high == pytest.approx(usual.high, rel=1e-9)
    assert 0 <= low <= part / of <= high <= 1


def test_kinds() -> None:
    low, high = {"likely": 0.01, "near_zero": 0.01}, {"likely": 0.05, "near_zero": 0.02}
    for there, back, limits, kind in (
        (0.20, 0.02, low, "strong"),  # tablet to PC and back
        (0.4375, 0.0001, low, "one-sided"),  # TV to PC
        (0.0001, 0.0625, low, "one-sided"),  # tablet to TV
        (0.009, 0.0, low, "weak"),
        (0.01, 0.01, low, "strong"),
        (0.5, None, low, "none"),
        (0.3, 0.03, high, "none"),
        (0.03, 0.03, high, "none"),
        (0.3, 0.01, high, "one-sided"),
        (0.3, 0.05, high, "strong"),
    ):
        assert link(there, back, **limits) == kind
        assert back is None or link(back, there, **limits) == kind


def test_table_6_4_is_divided_by_n() -> None:
    # Rates up to a factor, from the shares of purchase and other sessions that the text compares.
    ratios = [1 - 0.1910, 1.3070, 1.0712, 1 - 0.1547, 1 - 0.3401]  # smartphone, pc, tablet, console, tv
    rates = [ratio * 0.03 / (1 + ratio * 0.03) for ratio in ratios]
    printed = [-0.56, 1.61, 0.61, -0.40, -1.25]
    assert standardise(rates) == pytest.approx(printed, abs=0.03)
    assert standardise(rates, ddof=1) != pytest.approx(printed, abs=0.1)


def test_where_nothing_differs_there_is_no_deviation() -> None:
    for rates in ([], [0.3], [0.1, 0.1, 0.1], [None, None], [0.2, None]):
        for ddof in (0, 1):
            assert standardise(rates, ddof) == [None] * len(rates)


def test_a_group_without_a_rate_plays_no_part() -> None:
    # The thesis's worked example.
    assert standardise([0.5, None, 0.2, 0.3]) == pytest.approx([1.3363, None, -1.0690, -0.2673], abs=1e-4)
