"""What can be planted, in which zones, and that it is found in the sessions that were drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_shop_logs import raw_rows
from refusals import refused

from diptych.commerce.scenes.shop_log import DEFAULT, DeviceSet, make_shop_log
from diptych.commerce.scenes.shop_log.chance import DAY, HOUR, Calendar
from diptych.commerce.scenes.shop_log.raw import stamps
from diptych.core.errors import UsageError


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"hours": (1.0,) * 24}, "hours is no distribution"),
        ({"channels": {"direct": 1.0}}, "name each of direct, paid, organic, other"),
        ({"device": {**DEFAULT.device, "watch": 0.0}}, "watch"),
        ({"device_sets": (DeviceSet(("pc",), 0.5),)}, "device_sets is no distribution"),
        ({"repeat": 1.0}, "repeat is 1.0"),
        ({"recognised": 0.9, "login": 0.2}, "recognised and login"),
        ({"exact_gaps": -0.1}, "exact_gaps is -0.1"),
        ({"buyers": replace(DEFAULT.buyers, start=(0.5, 0.5, 0, 0, 0, 0, 0, 0))}, "give a session away"),
        ({"buyers": replace(DEFAULT.buyers, start=(0.5,) * 8)}, "buyers.start is no distribution"),
    ],
)
def test_impossible_effects(wrong: dict[str, Any], said: str) -> None:
    refused(UsageError, said, replace, DEFAULT, **wrong)


ZONES = ("Europe/Amsterdam", "UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
CALENDARS = {zone: Calendar(zone, 400) for zone in ZONES}  # two changes of the clocks, or none
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = CALENDARS["UTC"].first_day * DAY

moments = st.integers(FIRST, FIRST + 400 * DAY)


def local_of(t_us: int, zone: str) -> datetime:
    return (EPOCH + timedelta(microseconds=t_us)).astimezone(ZoneInfo(zone))


@given(t_us=moments, zone=st.sampled_from(ZONES))
def test_the_local_time_is_that_of_the_zone(t_us: int, zone: str) -> None:
    calendar, known = CALENDARS[zone], local_of(t_us, zone)
    local_us = calendar.local_us(np.array([t_us]))
    assert local_us[0] // DAY == (known.date() - date(1970, 1, 1)).days
    assert (calendar.week_day(local_us)[0], calendar.hour(local_us)[0]) == (known.weekday(), known.hour)


@given(t_us=moments, zone=st.sampled_from(ZONES))
def test_there_and_back(t_us: int, zone: str) -> None:
    calendar = CALENDARS[zone]
    local_us = calendar.local_us(np.array([t_us]))
    assert calendar.universal_us(local_us, np.array([local_of(t_us, zone).fold == 1]))[0] == t_us


def test_the_hour_that_there_is_not() -> None:
    calendar = CALENDARS["Europe/Amsterdam"]
    day = (date(2020, 3, 29) - date(1970, 1, 1)).days
    t_us = calendar.universal_us(np.array([day * DAY + 2 * HOUR] * 2), np.array([False, True]))
    assert calendar.hour(calendar.local_us(t_us)).tolist() == [1, 3]


@given(times=st.lists(st.tuples(moments, st.booleans()), max_size=5), zone=st.sampled_from(ZONES))
def test_stamps_are_read_back(times: list[tuple[int, bool]], zone: str) -> None:
    t_us, universal = np.array([t for t, _ in times], np.int64), np.array([z for _, z in times], bool)
    letters, ends = stamps(CALENDARS[zone], t_us, universal)
    text = letters.tobytes().decode()
    assert ends[0] == 0
    assert ends[-1] == len(text)
    for (moment, in_universal), start, end in zip(times, ends[:-1], ends[1:], strict=True):
        stamp = text[start:end]
        assert datetime.fromisoformat(stamp) == EPOCH + timedelta(microseconds=moment)
        if in_universal:
            assert stamp == f"{EPOCH + timedelta(microseconds=moment):%Y-%m-%dT%H:%M:%S.%f}Z"
        else:
            assert stamp == local_of(moment, zone).isoformat(timespec="microseconds")


@pytest.mark.parametrize("days", [1, 60])
def test_sessions_begin_on_the_days_that_were_asked_for(tmp_path: Path, days: int) -> None:
    zone = "Australia/Lord_Howe"  # half an hour is skipped on 6 October 2019
    rows = raw_rows(make_shop_log(tmp_path / "log", visitors=60, days=days, zone=zone))
    begun: dict[str, datetime] = {}
    for row in rows:
        time = datetime.fromisoformat(row["time"]).astimezone(ZoneInfo(zone))
        begun[row["cookie"]] = min(time, begun.get(row["cookie"], time))
    assert min(begun.values()).date() == date(2019, 10, 1)
    assert date(2019, 10, 1) + timedelta(days=days - 1 - days // 20) <= max(begun.values()).date()
    assert max(begun.values()).date() < date(2019, 10, 1) + timedelta(days=days)
