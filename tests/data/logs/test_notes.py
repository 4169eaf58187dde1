"""Where a person should look: the odd logs of a shop."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from imported import dropped_of, events_of, import_text

from diptych.data.logs import Cleaning
from diptych.data.logs.ingest import log_notes
from diptych.data.logs.stage import BucketCounts, LogCounts

FIRST = date(2019, 10, 1)


def notes(days: list[int], **changes: object) -> list[str]:
    counts = {
        "first_us": 0,
        "last_us": 0,
        "visitors": 1,
        "purchases": 1,
        "days": {FIRST + timedelta(days=number): events for number, events in enumerate(days)},
        "actions": {},
        "devices": {"pc": sum(days)},
        "channels": {"paid": sum(days)},
    }
    people = BucketCounts(sum(days), 100)
    return log_notes(LogCounts(**{**counts, **changes}), people, {})


def test_an_orderly_log_has_no_notes() -> None:
    assert notes([1000, 900, 1, 1000]) == []


@pytest.mark.parametrize(
    ("days", "says"),
    [
        ([10, 0, 0, 10], "2 of 4 days have no event: 2019-10-02, 2019-10-03"),
        ([20_000, 1], "the last days (2019-10-02) hold only 1 of 20,001 events{}--until 2019-10-02"),
        (
            [1, 1, 30_000],
            "the first days (2019-10-01 to 2019-10-02) hold only 2 of 30,002 events{}--since 2019-10-03",
        ),
        (
            [100, *[0] * 7, 2, 1],
            "the last days (2019-10-09 to 2019-10-10) hold only 3 of 103 events{}--until 2019-10-09",
        ),
        ([2, *[0] * 7, 100], "the first days (2019-10-01) hold only 2 of 102 events{}--since 2019-10-02"),
    ],
)
def test_days_that_are_empty_or_hold_next_to_nothing(days: list[int], says: str) -> None:
    assert says.format(": wrong clocks? ") in notes(days)


def test_half_of_a_log_far_from_the_other_is_no_wrong_clock() -> None:
    assert not any("clocks" in note for note in notes([50, *[0] * 30, 50]))


@pytest.mark.parametrize(
    ("events", "busiest", "says"), [(100_000, 1000, True), (100_000, 999, False), (110_000, 1000, False)]
)
def test_a_client_is_busy_from_a_thousand_events_and_a_hundredth_on(
    events: int, busiest: int, says: bool
) -> None:
    counts = LogCounts(0, 0, 1, 1, {FIRST: events}, {}, {"pc": events}, {"paid": events})
    found = log_notes(counts, BucketCounts(events, 100, busiest=busiest), {})
    assert found == (
        ["one client has 1,000 events, 1.0% of all: a bot? --most-events drops such clients"] if says else []
    )


def test_far_days_with_a_twentieth_of_all_events_are_odd_and_with_more_are_not() -> None:
    assert any("wrong clocks" in note for note in notes([95, *[0] * 7, 5]))
    assert not any("wrong clocks" in note for note in notes([94, *[0] * 7, 6]))


def test_every_odd_log_of_the_list_is_imported_and_said(tmp_path: Path) -> None:
    """Unsorted, duplicated, overlapping and clock-skewed events, null visitors, unknown devices, a busy client, empty
    days, no purchase."""
    lines = [
        f"2019-10-01T{hour:02d}:{minute:02d}:00Z,keen,,pc,NL,1"
        for hour in range(24)
        for minute in range(0, 60, 1)
    ]
    lines = lines[::-1]  # unsorted
    lines += lines[:3]  # duplicated
    lines += [
        f"2019-10-01T12:00:{second:02d}Z,s{second},null,toaster,Holland,9.9.9" for second in range(30)
    ]  # overlapping
    lines += [
        "2019-10-05T00:00:00Z,shared,7,,NL,",
        "2019-10-05T00:00:01Z,shared,8,,NL,",
        "2019-10-05T00:00:01Z,,8,,NL,",
    ]
    lines += ["2031-01-01T00:00:00Z,s1,,pc,NL,"]  # a clock that is ahead
    log = import_text(tmp_path, "\n".join(["time,client,visitor,device,country,price", *lines]))
    assert dropped_of(log) == {"duplicate": 3}
    assert log.n_events == len(lines) - 3
    said, times = log.about["notes"], [line.split(",")[0] for line in lines]
    back = sum(after < before for before, after in pairwise(times))
    empty = (date(2031, 1, 1) - FIRST).days - 2
    assert said == [
        f"{empty:,} of {empty + 3:,} days have no event: 2019-10-02, 2019-10-03, 2019-10-04, 2019-10-06, 2019-10-07, …",
        "the last days (2031-01-01) hold only 1 of 1,474 events: wrong clocks? --until 2031-01-01",
        f"{back:,} rows are earlier than the row before them in their file",
        "1 events have a visitor and no client: each such visitor is a client visitor:VISITOR",
        "30 events have a country that is no two letters, read as missing",
        "30 events have a price that is no number, read as missing",
        "1 of 33 clients have several visitors: shared browsers?",
        "one client has 1,440 events, 97.7% of all: a bot? --most-events drops such clients",
        "the device of 3 events (0.2%) is unknown",
        "no channel is known",
        "a log without a purchase: statistics of classes will be empty; nothing can be trained",
    ]
    assert (log.about["clients"], log.about["visitors"], log.about["purchases"]) == (33, 2, 0)
    assert log.about["devices"] == {"pc": 1441, "toaster": 30, "unknown": 3}
    assert [event["visitor_id"] for event in events_of(log)[-4:]] == ["7", "8", "8", None]
    assert sum(log.about["events_by_day"].values()) == log.n_events
    nobody = import_text(tmp_path, "time,client\n1970-01-03,a\n", "old.csv", cleaning=Cleaning()).about[
        "notes"
    ]
    assert any("events lie in 1970: check the format of times" in note for note in nobody)
    assert any("no visitor is known" in note for note in nobody)
    assert any("no device is known" in note for note in nobody)
