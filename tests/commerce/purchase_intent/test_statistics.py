"""Statistics of a log against an independent implementation and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import scipy.stats
from events import write_log
from hypothesis import given, settings
from hypothesis import strategies as st
from intent_rows import finished, groups

from diptych.commerce.purchase_intent.described import Description, describe
from diptych.commerce.purchase_intent.engine import Engine
from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.commerce.purchase_intent.statistics import ORDER
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
    # One without purchases and visitors.
    found = described(tmp_path / "d", engine, [{"t": 0}, {"t": 0, "client_id": "d", "device": "tv"}])
    rates = [
        (one["rate"], one["purchase_share"], one["standardised"]) for one in found.unprotected["devices"]
    ]
    assert rates == [(0.0, None, None)] * 2
    assert {(row["purchase"], row["share"]) for row in found.unprotected["queries"]} == {(False, None)}
    assert found.unprotected["devices-per-visitor"] == found.unprotected["device-transitions"] == []


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


@settings(max_examples=15)
@given(st.integers(1, 10**9), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_are_the_usual_ones(of: int, data: st.DataObject, confidence: float) -> None:
    part = data.draw(st.integers(0, of))
    counted = ("pc", True, part), ("pc", False, of - part)
    (row,) = finished("devices", "name purchase sessions", *counted, confidence=confidence)
    usual = scipy.stats.binomtest(part, of).proportion_ci(confidence, method="wilson")
    assert row["low"] == pytest.approx(usual.low, rel=1e-9, abs=1e-15)
    assert row["high"] == pytest.approx(usual.high, rel=1e-9)
    assert 0 <= row["low"] <= part / of == row["rate"] <= row["high"] <= 1


def test_kinds_of_links() -> None:
    for there, back, kind in (
        (2000, 200, "strong"),  # tablet to PC and back
        (4375, 1, "one-sided"),  # TV to PC
        (1, 625, "one-sided"),  # tablet to TV
        (90, 0, "weak"),
        (100, 100, "strong"),
        (5000, None, "none"),
    ):
        counted = [("a", "b", there), ("a", "a", 10_000 - there)]
        counted += [] if back is None else [("b", "a", back)] * (back > 0) + [("b", "b", 10_000 - back)]
        rows = finished("device-transitions", "from_device to_device transitions", *counted)
        found = {(row["from_device"], row["to_device"]): row["link"] for row in rows}
        assert found == dict.fromkeys(found, kind) | {pair: "self" for pair in found if pair[0] == pair[1]}


def standardised(rates: list[float], ddof: int = 0) -> list[float | None]:
    counts = {f"{place}": (100_000, round(rate * 100_000)) for place, rate in enumerate(rates)}
    return [row["standardised"] for row in groups("device", counts, ddof=ddof)]


def test_table_6_4_is_divided_by_n() -> None:
    # Rates up to a factor, from the shares of purchase and other sessions that the text compares.
    ratios = [1 - 0.1910, 1.3070, 1.0712, 1 - 0.1547, 1 - 0.3401]  # smartphone, pc, tablet, console, tv
    rates = [ratio * 0.03 / (1 + ratio * 0.03) for ratio in ratios]
    printed = [-0.56, 1.61, 0.61, -0.40, -1.25]
    assert standardised(rates) == pytest.approx(printed, abs=0.03)
    assert standardised(rates, ddof=1) != pytest.approx(printed, abs=0.1)
    assert standardised([0.5, 0.2, 0.3]) == pytest.approx([1.3363, -1.0690, -0.2673], abs=1e-4)  # its example


def test_where_nothing_differs_there_is_no_deviation() -> None:
    for rates in ([0.3], [0.1, 0.1, 0.1]):
        for ddof in (0, 1):
            assert standardised(rates, ddof) == [None] * len(rates)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
@settings(max_examples=15)
def test_the_middle_is_that_of_repeated_sessions(lengths: list[int]) -> None:
    """Every session ten times: then the ends fall between sessions, and the middle is a plain mean."""
    repeated = sorted(length for length in lengths for _ in range(10))
    inside = repeated[len(repeated) // 2 : len(repeated) * 9 // 10]
    counted = [("pc", True, one, repeated.count(one)) for one in set(repeated)]
    (row, _) = finished("session-length-quantiles", "device purchase length sessions", *counted)
    assert row["middle"] == pytest.approx(sum(inside) / len(inside))
