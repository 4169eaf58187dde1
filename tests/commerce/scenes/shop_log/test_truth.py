"""The truth is what a plain reading of the files finds: every statistic, every row of dirt."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raw_shop_logs import cleaned, raw_rows, sessions_of

from diptych.commerce.logs.schema import THESIS_CHANNELS, THESIS_DEVICES
from diptych.commerce.scenes.shop_log import DEFAULT, RAW_COLUMNS, make_shop_log
from diptych.commerce.scenes.shop_log.chance import Calendar
from diptych.commerce.scenes.shop_log.sessions import NEVER, NO_QUERY, visits_of
from diptych.commerce.scenes.shop_log.world import World

GAP_US = 1_800_000_000


def truth_of(folder: Path) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((folder / "truth.json").read_text())
    return truth


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
    visits = visits_of(World.of(DEFAULT, Calendar("Europe/Amsterdam", 28), 5), np.arange(900))
    drawn = visits.sessions.take(np.argsort(visits.sessions.start_us, kind="stable"))
    queries = np.bincount(visits.paths.session, visits.paths.query != NO_QUERY)
    columns = {
        "start_us": drawn.start_us,
        "week_day": drawn.week_day,
        "hour": drawn.hour,
        "device": np.array(THESIS_DEVICES)[drawn.device],
        "channel": np.array(THESIS_CHANNELS)[drawn.channel],
        "purchase": drawn.purchase,
    }
    for name, values in columns.items():
        assert [one[name] for one in sessions] == values.tolist(), name
    assert [len(one["pages"]) for one in sessions] == drawn.pages.tolist()
    assert sum(len(one["queries"]) for one in sessions) == queries.sum()
    known = np.where(drawn.known_page < NEVER, visits.people.number[drawn.person], -1)
    assert [int((one["visitor"] or "c-1")[1:]) for one in sessions] == known.tolist()


@pytest.mark.parametrize("visitors", [900, 40])
def test_dirt_is_counted_by_the_rule(shop: Path, dirty: Path, tmp_path: Path, visitors: int) -> None:
    half = visitors == 40
    folder = make_shop_log(tmp_path / "log", visitors=40, dirt=0.5, format="parquet") if half else dirty
    rows, truth = raw_rows(folder), truth_of(folder)
    kept, dropped = cleaned(rows)
    assert dict(dropped) == truth["dirt"]
    assert min(dropped.values()) > 20
    assert len(rows) == truth["rows"] == len(kept) + dropped.total()
    assert truth == truth | totals_of(sessions_of(kept))
    if not half:
        assert sessions_of(kept) == sessions_of(raw_rows(shop))
        assert any(one["time"] > other["time"] for one, other in pairwise(kept)), "in no order"


def test_gaps_are_such_that_the_strict_rule_matters(sessions: list[dict[str, Any]]) -> None:
    inside = [after["t_us"] - before["t_us"] for one in sessions for before, after in pairwise(one["events"])]
    assert min(inside) > 0
    assert max(inside) == GAP_US
    assert inside.count(GAP_US) > 1
    by_person: dict[str, list[dict[str, Any]]] = {}
    for one in sessions:  # the second half of a cookie is visitor × 5 + device
        by_person.setdefault(int(one["client"][8:], 16) // 5, []).append(one)
    between = [
        after["start_us"] - before["events"][-1]["t_us"]
        for some in by_person.values()
        for before, after in pairwise(some)
    ]
    assert min(between) == GAP_US + 1, "one begins as soon as it can"


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
    assert known_later > 20
