from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from imported import dropped_of, events_of, import_text
from plain_import import plain_time
from refusals import refused

from diptych.commerce.logs import Cleaning, ColumnMapping
from diptych.core.errors import DiptychError, UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAPPING = {"time": "time", "client": "client"}


def times(tmp_path: Path, texts: list[str], **options: str) -> list[int | None]:
    """Microseconds of texts, or None where they are no time."""
    time_format = options.pop("time_format", "auto")
    lines = [f"{text}|{number}" for number, text in enumerate(["2019-10-01", *texts])]
    content = "\n".join(["time|client", *lines])
    log = import_text(
        tmp_path, content, mapping=ColumnMapping(columns=MAPPING, time_format=time_format), **options
    )
    found = {event["client_id"]: event["t_us"] for event in events_of(log)}
    assert dropped_of(log).get("unreadable time", 0) == len(lines) - len(found)
    return [found.get(str(1 + number)) for number in range(len(texts))]


def test_iso_8601_in_many_ways_and_what_is_no_time(tmp_path: Path) -> None:
    same = [
        *("2019-10-01T10:00:00Z", "2019-10-01 10:00:00 UTC", "2019-10-01 12:00:00+02:00"),
        *("2019-10-01T12:00:00+0200", "2019-10-01 12:00:00+02", "2019-10-01T10:00:00.000Z"),
        *("2019-10-01t10:00:00z", "2019-10-01T10:00:00,000Z", "2019-10-01 10:00:00GMT"),
        *("2019-10-01 10:00", "2019-10-01T10:00Z", "2019-10-01 12:00 +02:00"),
    ]
    assert times(tmp_path, same, time_format="iso") == [1_569_924_000_000_000] * len(same)
    none = [
        *("", "nan", "infinity", "epoch", "0", "-5", "2019-13-01", "1e300", "2300-01-01"),
        *("2019-10-01 (BC)", "12:00"),
    ]
    assert times(tmp_path, none) == [None] * len(none)


def test_numbers_are_told_by_their_size(tmp_path: Path) -> None:
    second, far = 1_569_924_000, 100_000_000_000_000
    whole = second * 1_000_000
    told = {f"{second}": whole, f"{second}.277": whole + 277_000, f"{second}277": whole + 277_000}
    told |= {f"{second}277001": whole + 277_001, f"{second}277001999": whole + 277_001, "1.5699240e9": whole}
    told |= {"99999999999": None, "100000000000": far}  # still seconds, and too late; milliseconds
    told |= {"99999999999999": None, "100000000000000": far}  # still milliseconds, and too late
    assert times(tmp_path, list(told)) == list(told.values())


def test_formats_of_ones_own(tmp_path: Path) -> None:
    texts = ["01/10/2019 12:00", "31/02/2019 12:00", "2019-10-01"]
    options = {"time_format": "%d/%m/%Y %H:%M", "times_in": "Europe/Amsterdam"}
    assert times(tmp_path, texts, **options) == [1_569_924_000_000_000, None, None]
    for wrong in ("%Q", "seconds"):
        refused(UsageError, "format", times, tmp_path, [], time_format=wrong)


def test_local_hours_over_the_change_of_the_clocks_are_those_of_zoneinfo(tmp_path: Path) -> None:
    cases: Any = ["Europe/Amsterdam", "America/St_Johns", "Asia/Kathmandu", "UTC"]
    for zone in cases:
        begin = datetime(2019, 10, 26, 20, tzinfo=UTC)
        moments = [begin + timedelta(minutes=13 * step) for step in range(150)]
        moments += [
            moment + timedelta(days=7) for moment in moments
        ]  # America changes its clocks a week later
        content = "\n".join(["time,client", *(f"{moment.isoformat()},c" for moment in moments)])
        found = events_of(import_text(tmp_path, content, zone=zone))
        walls = [moment.astimezone(ZoneInfo(zone)) for moment in moments]
        assert [(event["local_hour"], event["local_dow"], event["local_day"]) for event in found] == [
            (wall.hour, wall.weekday(), (wall.date() - EPOCH.date()).days) for wall in walls
        ]


def test_times_without_a_zone_are_in_the_one_that_is_said(tmp_path: Path) -> None:
    naive = [f"2019-10-27 {hour:02d}:{minute:02d}:00" for hour in range(5) for minute in (0, 30)]
    naive += [f"2020-03-29 {hour:02d}:30:00" for hour in range(5)]
    found = times(tmp_path, naive, times_in="Europe/Amsterdam")
    assert found == [plain_time(text, "Europe/Amsterdam") for text in naive]
    assert (
        found[4] == 1_572_138_000_000_000 + 1_800_000_000 - 1_800_000_000
    )  # 02:00 is there twice: the later one
    assert found[12] == 1_585_445_400_000_000  # 02:30 is skipped: half an hour after 01:59:59


def test_a_period_is_of_days_in_the_logs_zone(tmp_path: Path) -> None:
    content = "\n".join(
        [
            *("time,client", "2019-09-30T21:59:59.999999Z,too early", "2019-09-30T22:00:00Z,first"),
            *("2019-10-28T22:59:59.999999Z,last", "2019-10-28T23:00:00Z,too late"),
        ]
    )
    log = import_text(
        tmp_path, content, zone="Europe/Amsterdam", cleaning=Cleaning(since="2019-10-01", until="2019-10-29")
    )
    assert [event["client_id"] for event in events_of(log)] == ["first", "last"]
    assert dropped_of(log) == {"outside": 2}
    assert (log.about["first"], log.about["last"]) == ("2019-09-30T22:00:00Z", "2019-10-28T22:59:59Z")
    assert log.about["events_by_day"]["2019-10-01"] == log.about["events_by_day"]["2019-10-28"] == 1
    assert len(log.about["events_by_day"]) == 28
    sharper = import_text(tmp_path, content, cleaning=Cleaning(until="2019-09-30T23:00:00+01:00"))
    assert [event["client_id"] for event in events_of(sharper)] == ["too early"]


def test_zones_and_periods_that_are_none(tmp_path: Path) -> None:
    cases: Any = [
        ({"zone": "Europe/Amsterdm"}, "did you mean 'Europe/Amsterdam'"),
        ({"zone": "europe/amsterdam"}, "did you mean 'Europe/Amsterdam'"),
        ({"times_in": "Mars"}, "time zone 'Mars'"),
        ({"cleaning": Cleaning(since="soon")}, "'soon' is no time"),
        ({"cleaning": Cleaning(since="2019-10-02", until="2019-10-01")}, "outside: 1"),
    ]
    for options, says in cases:
        refused(DiptychError, says, import_text, tmp_path, "time,client\n2019-10-01,a\n", **options)
