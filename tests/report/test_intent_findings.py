"""What readers take away, computed from rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from intent_rows import described, groups, lengths, times, transitions

from diptych.report.intent_content import Discretion
from diptych.report.intent_description_tables import (
    device_count_findings,
    group_findings,
    hour_findings,
    length_findings,
    query_findings,
    transition_findings,
    unique_findings,
    week_day_findings,
)

SOME = Discretion()
ROWS = described()


def quantiles(buy: dict[int, int], other: dict[int, int]) -> list[dict[str, Any]]:
    counts = {("pc", True): buy, ("pc", False): other}
    return lengths({key: value for key, value in counts.items() if value})[1]


def test_which_sessions_are_longer() -> None:
    assert length_findings(ROWS["session-length-quantiles"], SOME) == [
        "Purchase sessions are longer: P50 12 actions against 2, P90 30 against 8.",
        "Without a purchase, sessions are longest on pc (mean 7.6) and shortest on smartphone (3.2).",
    ]
    assert length_findings(quantiles({2: 60}, {9: 60}), SOME)[0].startswith(
        "Purchase sessions are shorter: P50 2"
    )
    assert length_findings(quantiles({2: 60}, {2: 60}), SOME)[0].startswith(
        "Half of the sessions of both classes"
    )


@pytest.mark.parametrize(
    ("buy", "other", "said"),
    [
        ({}, {2: 90}, "No session with a purchase can be compared"),
        ({3: 4}, {2: 90}, "No session with a purchase can be compared"),
        ({3: 90}, {}, "Every session has a purchase"),
        ({3: 20}, {2: 90}, "too few sessions of a class"),
    ],
)
def test_lengths_that_cannot_be_compared(buy: dict[int, int], other: dict[int, int], said: str) -> None:
    (line,) = length_findings(quantiles(buy, other), SOME)
    assert said in line
    assert length_findings([], SOME) == []


def test_days_and_hours() -> None:
    days, week = week_day_findings(ROWS["week-days"], SOME)
    assert days == (
        "Purchase sessions are most frequent on Thursday (18.0 %), least on Sunday (12.0 %); others are most "
        "frequent on Wednesday (16.0 %), least on Saturday (12.7 %)."
    )
    assert week == (
        "Monday to Friday hold 76.0 % of purchase sessions and 73.0 % of others; five days of seven would be 71.4 %."
    )
    # of days too rare to be shown nothing is said
    rare = times("week_day", (2, 32, 30, 36, 26, 24, 24), (450, 420, 480, 440, 400, 380, 430))
    assert week_day_findings(rare, SOME) == []
    assert hour_findings(ROWS["hours"], SOME) == [
        "Most purchase sessions start from 18 to 19 h (8.0 %). From 18 to 23 h start 40.0 % of purchase sessions and "
        "26.7 % of others."
    ]
    assert hour_findings([row for row in ROWS["hours"] if not row["purchase"]], SOME) == []


def test_groups_that_differ_beyond_doubt() -> None:
    assert group_findings(ROWS["devices"], "device", SOME) == [
        "“pc” clearly converts more often (9.09 %) than “smartphone” (4.76 %).",
        "“pc” is 1.5 times as frequent among purchase sessions (50.0 %) as among others (33.3 %).",
    ]
    hidden = group_findings(ROWS["devices"], "device", replace(SOME, hide_rates=True))
    assert hidden[0] == (
        "“pc” clearly converts more often (standardised +1.00) than “smartphone” (standardised −1.00)."
    )
    alike = groups("channel", {"paid": (100, 10), "direct": (100, 11)})
    assert group_findings(alike, "channel", SOME) == [
        "No channel is to be told from another by its conversion rate: all intervals overlap."
    ]
    # a rare device with the least rate of all hides nothing: the others are told apart
    rare = groups("device", {"pc": (5000, 300), "smartphone": (8000, 300), "tv": (40, 0)})
    assert group_findings(rare, "device", SOME)[0].endswith("(6.00 %) than “smartphone” (3.75 %).")


def test_groups_of_which_nothing_can_be_said() -> None:
    assert group_findings([], "device", SOME) == []
    assert group_findings(groups("device", {"pc": (100, 50)}), "device", SOME) == []
    assert group_findings(groups("device", {"pc": (100, 0), "tv": (90, 0)}), "device", SOME) == []
    # a rate of few is no finding, however high
    rows = groups("device", {"pc": (1000, 100), "tv": (4, 4), "tablet": (1000, 10)})
    assert "tv" not in " ".join(group_findings(rows, "device", SOME))


def test_devices_of_purchasers() -> None:
    assert device_count_findings(ROWS["devices-per-visitor"], SOME) == [
        "30.0 % of purchasers use more than one device, of other visitors 12.0 %."
    ]
    near = [{**row, "low": 0.0, "high": 1.0} for row in ROWS["devices-per-visitor"]]
    assert device_count_findings(near, SOME)[0].endswith("12.0 %; the intervals overlap.")
    assert device_count_findings(near[:1], SOME) == []


def test_transitions() -> None:
    assert transition_findings(ROWS["device-transitions"], SOME) == [
        "Before a purchase, who was on pc stays there in 75.0 % of cases.",
        "The most probable switch is from smartphone to pc (30.0 %).",
        "Links that are strong: smartphone–pc.",
    ]
    many = transitions({("tv", f"d{number}"): (20 + number, "one-sided") for number in range(6)})
    assert transition_findings(many, SOME)[-1] == (
        "Links that are one-sided: tv → d5, tv → d4, tv → d3, tv → d2 and 2 more."
    )
    assert transition_findings(transitions({("pc", "tv"): (4, "weak")}), SOME) == []


def test_queries() -> None:
    assert query_findings(ROWS["queries"], SOME) == [
        "A purchase session has 2.00 queries, another one 0.50, 4.0 times as many."
    ]
    none = [{**row, "queries": 0, "per_session": 0.0} for row in ROWS["queries"]]
    assert query_findings(none, SOME) == ["There are no queries in this log."]
    assert query_findings(ROWS["queries"][:1], SOME) == []
    assert unique_findings(ROWS["unique-queries"], SOME)[0].startswith("Different queries are 25.0 % of all")
    assert unique_findings([{**row, "queries": 0} for row in ROWS["unique-queries"]], SOME) == []
