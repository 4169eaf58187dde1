"""The truth is what a plain reading of the files finds: every statistic, every row of dirt."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from raw_shop_logs import cleaned, raw_rows, sessions_of

from diptych.commerce.logs.log import THESIS_CHANNELS, THESIS_DEVICES
from diptych.commerce.scenes import shop_log
from diptych.commerce.scenes.shop_log import EFFECTS, RAW_COLUMNS, ShopLog, make_shop_log
from diptych.commerce.scenes.visits import HOUR, NEVER, NOTHING, Calendar, ShopWorld, visits_of, week_day


def truth_of(folder: Path) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((folder / "truth.json").read_text())
    return truth


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean log as CSV."""
    return make_shop_log(tmp_path_factory.mktemp("made") / "shop", visitors=600, seed=5)


@pytest.fixture(scope="module")
def sessions(shop: Path) -> list[dict[str, Any]]:
    return sessions_of(raw_rows(shop))


def totals_of(sessions: list[dict[str, Any]]) -> dict[str, int]:
    return {
        "events": sum(len(one["events"]) for one in sessions),
        "sessions": len(sessions),
        "purchase sessions": sum(one["purchase"] for one in sessions),
        "anonymous sessions": sum(one["visitor"] is None for one in sessions),
    }


def test_sessions_are_found_as_they_were_drawn(shop: Path, sessions: list[dict[str, Any]]) -> None:
    truth = truth_of(shop)
    totals = totals_of(sessions)
    assert truth == truth | totals | {"rows": totals["events"], "dirt": dict.fromkeys(truth["dirt"], 0)}
    calendar = Calendar("Europe/Amsterdam", 28)
    drawn, pages = visits_of(ShopWorld(EFFECTS, calendar, 5), range(600))
    drawn = drawn.take(np.argsort(drawn.start_us, kind="stable"))
    local_us = calendar.local_us(drawn.start_us)
    columns = {
        "start_us": drawn.start_us,
        "week_day": week_day(local_us),
        "hour": local_us // HOUR % 24,
        "device": np.array(THESIS_DEVICES)[drawn.device],
        "channel": np.array(THESIS_CHANNELS)[drawn.channel],
        "purchase": drawn.purchase,
    }
    for name, values in columns.items():
        assert [one[name] for one in sessions] == values.tolist(), name
    assert [len(one["pages"]) for one in sessions] == drawn.pages.tolist()
    assert sum(len(one["queries"]) for one in sessions) == (pages.query != NOTHING).sum()
    known = np.where(drawn.known_page < NEVER, drawn.number, -1)
    assert [int((one["visitor"] or "c-1")[1:]) for one in sessions] == known.tolist()


def test_dirt_is_counted_by_the_rule(shop: Path, tmp_path: Path) -> None:
    for visitors in (600, 40):
        half = visitors == 40
        options: dict[str, Any] = {"dirt": 0.5} if half else {"dirt": 0.02, "seed": 5}
        folder = make_shop_log(tmp_path / str(visitors), visitors=visitors, format="parquet", **options)
        rows, truth = raw_rows(folder), truth_of(folder)
        kept, dropped = cleaned(rows)
        assert dict(dropped) == truth["dirt"]
        assert min(dropped.values()) > 20
        assert len(rows) == truth["rows"] == len(kept) + dropped.total()
        assert truth == truth | totals_of(sessions_of(kept))
        if not half:
            assert sessions_of(kept) == sessions_of(raw_rows(shop))
            assert any(one["time"] > other["time"] for one, other in pairwise(kept)), "in no order"


def test_a_session_is_as_it_should_be(sessions: list[dict[str, Any]]) -> None:
    known_later = 0
    for one in sessions:
        assert len({(event["device"], event["channel"], event["country"]) for event in one["events"]}) == 1
        customers = [event["customer"] for event in one["events"]]
        first = next((place for place, who in enumerate(customers) if who), len(customers))
        assert set(customers[first:]) <= {one["visitor"]}, "known from then on"
        if 0 < first < len(customers):
            known_later += 1
            assert one["events"][first]["action"] == "login"
        assert [event["action"] for event in one["events"]].count("login") == (0 < first < len(customers))
        basket = 0
        for event in one["events"]:
            assert list(event) == [*RAW_COLUMNS, "t_us"]
            assert (event["query"] is not None) == (event["action"] == "query")
            assert (event["page"] is not None) == (event["action"] == "page")
            assert (event["item"] is None) == (event["price"] is None)
            assert event["purchased"] == (event["page"] == "confirmation")
            basket += event["action"] == "add"
            if event["action"] == "remove" or event["purchased"]:
                assert basket, "something was put into it before"
        pages = [event["page"] for event in one["pages"]]
        assert pages.count("confirmation") == one["purchase"]
        if one["purchase"]:
            place = pages.index("confirmation")
            assert pages[place - 2 : place] == ["basket", "checkout"]
    assert known_later > 10


def by_visitor(rows: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Rows of each visitor's cookies, sorted: the second half of a cookie is visitor × 5 + device."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(int(row["cookie"][8:], 16) // 5, []).append(row)
    return {visitor: sorted(some, key=lambda row: repr(row)) for visitor, some in found.items()}


def test_a_larger_log_begins_with_the_visitors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShopLog, "block", 16)
    few = by_visitor(raw_rows(make_shop_log(tmp_path / "few", visitors=23, seed=3)))
    monkeypatch.setattr(ShopLog, "block", 10)
    many = by_visitor(raw_rows(make_shop_log(tmp_path / "many", visitors=47, seed=3)))
    assert len(few) == 23
    assert len(many) == 47
    assert {visitor: many[visitor] for visitor in few} == few


def test_blocks_change_nothing_but_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make_shop_log(tmp_path / "whole", visitors=50, seed=3, dirt=0.05, format="parquet")
    monkeypatch.setattr(ShopLog, "block", 7)
    monkeypatch.setattr(shop_log, "_TABLES", 2)
    parts = make_shop_log(tmp_path / "parts", visitors=50, seed=3, dirt=0.05, format="parquet")
    assert (parts / "truth.json").read_bytes() == (whole / "truth.json").read_bytes()
    assert len(list((parts / "events").iterdir())) > 3
    assert sorted(map(repr, raw_rows(parts))) == sorted(map(repr, raw_rows(whole)))


ZONES = ("Europe/Amsterdam", "UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


def test_times_are_written_as_the_zone_has_them(tmp_path: Path) -> None:
    """Across a change of the clocks: apps write universal time, browsers the local one."""
    for zone in ZONES:
        rows = raw_rows(make_shop_log(tmp_path / zone, visitors=60, days=60, zone=zone, seed=1))
        for row in rows:
            time = datetime.fromisoformat(row["time"])
            if row["device"] in ("Smartphone", "Tablet"):
                assert row["time"] == f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"
            else:
                assert row["time"] == time.astimezone(ZoneInfo(zone)).isoformat(timespec="microseconds")
