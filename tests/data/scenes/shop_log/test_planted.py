"""What can be planted, in which zones, and that it is found in the sessions that were drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted_logs import expected
from raw_shop_logs import raw_rows

from diptych.core.errors import UsageError
from diptych.data.logs.schema import THESIS_CHANNELS, THESIS_DEVICES
from diptych.data.scenes.shop_log import DEFAULT, DeviceSet, Effects, make_shop_log
from diptych.data.scenes.shop_log.chance import DAY, HOUR, Calendar, choose, cumulated, geometric
from diptych.data.scenes.shop_log.effects import CLASSES, CONFIRMATION, PAGE_TYPES
from diptych.data.scenes.shop_log.raw import stamps
from diptych.data.scenes.shop_log.sessions import NEVER, NO_QUERY, visits_of
from diptych.data.scenes.shop_log.world import NO_DEVICE, START, World, query_texts, typed_texts


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
    with pytest.raises(UsageError, match=said):
        replace(DEFAULT, **wrong)


def test_choices_by_hand() -> None:
    flat = cumulated(np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]))
    uniform = np.array([0.0, 0.49, 0.5, 1 - 2**-53, 0.0, 0.24, 0.25, 1 - 2**-53])
    rows = np.repeat([0, 1], 4)
    assert choose(flat, 3, uniform[4:], 1).tolist() == [1, 1, 2, 2]
    assert choose(flat, 3, uniform[:3], rows[:3]).tolist() == [0, 0, 1]
    assert choose(flat, 3, uniform, rows).max() == 2


def test_a_geometric_number_by_hand() -> None:
    # mean 1: 0 with probability 1/2, 1 with 1/4, 2 with 1/8 …
    assert geometric(np.array([0.0, 0.49, 0.51, 0.74, 0.76, 0.9]), 1.0).tolist() == [0, 0, 1, 1, 2, 3]
    assert geometric(np.array([0.0, 0.999]), 0.0).tolist() == [0, 0]


def test_devices_in_the_long_run_stay_as_they_are() -> None:
    world = World.of(DEFAULT, Calendar("UTC", 28), 0)
    for place, devices in enumerate(world.owned):
        shares, moves = world.stationary[place], world.moves[place, :NO_DEVICE]
        assert set(np.flatnonzero(shares)) == set(devices)
        assert shares @ moves == pytest.approx(shares)
        assert moves[list(devices)].sum(axis=1) == pytest.approx(1)
    pair = world.owned.index((0, 1))  # smartphone and PC: 0.68 to 0.20, and 0.16 to 0.73
    assert world.moves[pair, 0, 1] == pytest.approx(0.20 / 0.88)
    assert world.stationary[pair, 0] == pytest.approx((0.16 / 0.89) / (0.16 / 0.89 + 0.20 / 0.88))


def test_the_vocabulary_has_no_query_twice_and_survives_typing() -> None:
    texts = query_texts(9000)
    assert len(set(texts)) == 9000
    for text, typed in zip(np.repeat(texts[:300], 5), typed_texts(300), strict=True):
        assert " ".join(typed.lower().split()) == text


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


def test_the_hour_that_there_is_twice() -> None:
    calendar = CALENDARS["Europe/Amsterdam"]
    half_past_two = calendar.first_day * DAY + 26 * DAY + 2 * HOUR + HOUR // 2  # on 27 October 2019
    both = calendar.universal_us(np.array([half_past_two] * 2), np.array([False, True]))
    assert (both - FIRST - 26 * DAY).tolist() == [HOUR // 2, HOUR + HOUR // 2]


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


MANY = 4.5
"""Standard deviations; more than a thousand numbers are looked at."""

GAP_US = 1_800_000_000


class Drawn:
    def __init__(self, effects: Effects, visitors: int = 40_000) -> None:
        self.world = World.of(effects, Calendar("Europe/Amsterdam", 28), 1)
        visits = visits_of(self.world, np.arange(visitors))
        self.paths, self.sessions = visits.paths, visits.sessions
        self.known = self.sessions.take(self.sessions.known_page < NEVER)
        self.expected: dict[str, Any] = expected(self.world)


@pytest.fixture(scope="module")
def drawn(independent: Effects) -> Drawn:
    return Drawn(independent)


def agree(found: float, planted: float, n: float) -> bool:
    """Whether a share of n is what was planted."""
    return abs(found - planted) <= MANY * math.sqrt(planted * (1 - planted) / n) + 2 / n


def test_conversion_by_device_and_channel(drawn: Drawn) -> None:
    sessions, n = drawn.sessions, len(drawn.sessions)
    assert agree(sessions.purchase.mean(), drawn.expected["rate"], n)
    # visitors have several sessions on one device, so shares of devices scatter more
    for codes, names, what, each in (
        (sessions.device, THESIS_DEVICES, "devices", 6),
        (sessions.channel, THESIS_CHANNELS, "channels", 1),
    ):
        for place, name in enumerate(names):
            here, planted = codes == place, drawn.expected[what][name]
            assert agree(sessions.purchase[here].mean(), planted["rate"], here.sum()), name
            assert agree(here.mean(), planted["share"], n / each), name


def test_effects_are_log_odds_of_the_size_planted(drawn: Drawn) -> None:
    rates = {name: one["rate"] for name, one in drawn.expected["channels"].items()}

    def log_odds(channel: str) -> float:
        return math.log(rates[channel] / (1 - rates[channel]))

    for channel, effect in DEFAULT.channel.items():
        assert log_odds(channel) - log_odds("direct") == pytest.approx(
            effect - DEFAULT.channel["direct"], abs=0.02
        )


@pytest.mark.parametrize("name", ["week_days", "hours"])
def test_week_days_and_hours(drawn: Drawn, name: str) -> None:
    codes = getattr(drawn.sessions, name.removesuffix("s"))
    for purchase, of_class in enumerate(CLASSES):
        mine = codes[drawn.sessions.purchase == purchase]
        for place, planted in enumerate(drawn.expected[name][of_class]):
            assert agree((mine == place).mean(), planted, len(mine)), (of_class, place)


def test_device_transitions(drawn: Drawn) -> None:
    known = drawn.known
    bought = (known.person[1:] == known.person[:-1]) & known.purchase[1:]
    found = np.zeros((len(THESIS_DEVICES),) * 2)
    np.add.at(found, (known.device[:-1][bought], known.device[1:][bought]), 1)
    for before, row in drawn.expected["device_transitions"].items():
        counts = dict(zip(THESIS_DEVICES, found[THESIS_DEVICES.index(before)], strict=True))
        n = sum(counts.values())
        assert sum(row.values()) == pytest.approx(1)
        for after, share in row.items():  # some pairs are of one visitor
            assert n == 0 or agree(counts[after] / n, share, n / 2), (before, after)
            assert share > 0 or not counts[after]


def test_page_chains_and_dwell_times(drawn: Drawn) -> None:
    """Pages up to three before the confirmation are the buyers', all of other sessions the others'."""
    paths, sessions = drawn.paths, drawn.sessions
    to_go = sessions.confirmation[paths.session] - paths.position
    names = np.array([*PAGE_TYPES, CONFIRMATION])
    for purchase, inside in ((1, to_go >= 3), (0, sessions.confirmation[paths.session] == 0)):
        chain = drawn.world.chains[purchase]
        first = inside & (paths.position == 1)
        shares = np.bincount(paths.kind[first], minlength=8) / first.sum()
        for place, page in enumerate(PAGE_TYPES):
            assert agree(shares[place], chain[START, place], first.sum()), page
        follows = np.flatnonzero(inside[1:] & inside[:-1] & (paths.session[1:] == paths.session[:-1]))
        for place, before in enumerate(PAGE_TYPES):
            after = paths.kind[follows[paths.kind[follows] == place] + 1]
            for column, page in enumerate(PAGE_TYPES):
                planted = chain[place, column]
                assert agree((after == column).mean(), planted, len(after)), (purchase, before, page)
    last = np.append(paths.session[1:] != paths.session[:-1], True)
    for name, inside in (("purchase", to_go >= 0), ("other", to_go < 0)):
        for kind, page in enumerate(names):
            seconds = paths.dwell_us[inside & ~last & (paths.kind == kind)] / 1e6
            if len(seconds) < 100:
                continue
            planted = drawn.expected["dwell"][name][str(page)]
            spread = seconds.std() / math.sqrt(len(seconds))
            assert abs(seconds.mean() - planted["mean_seconds"]) < MANY * spread, (name, page)
            logs = np.log(seconds[seconds < 1800])
            assert np.median(logs) == pytest.approx(planted["log_mean"], abs=0.05 + 6 / math.sqrt(len(logs)))
    exact = (paths.dwell_us == GAP_US)[~last]
    assert agree(exact.mean(), DEFAULT.exact_gaps, len(exact))


def test_lengths_and_queries(drawn: Drawn) -> None:
    sessions, paths = drawn.sessions, drawn.paths
    queries = np.bincount(paths.session[paths.query != NO_QUERY], minlength=len(sessions))
    for place, device in enumerate(THESIS_DEVICES):
        for purchase, name in enumerate(CLASSES):
            here = (sessions.device == place) & (sessions.purchase == purchase)
            for least, planted in drawn.expected["pages_at_least"][name][device].items():
                assert agree((sessions.pages[here] >= int(least)).mean(), planted, here.sum()), (device, name)
            planted = drawn.expected["queries_per_session"][name][device]
            spread = math.sqrt(planted * (3 + 3 * planted) / here.sum())  # they come in bunches
            assert abs(queries[here].mean() - planted) < MANY * spread, (device, name)


def test_who_has_bought_buys_again_only_where_that_is_planted(drawn: Drawn) -> None:
    def ratio(of: Drawn) -> float:
        earlier = np.cumsum(of.known.purchase) - of.known.purchase  # of all visitors up to here …
        earlier -= earlier[np.searchsorted(of.known.person, of.known.person)]  # … of this one
        rate: float = of.known.purchase[earlier > 0].mean() / of.known.purchase[earlier == 0].mean()
        return rate

    assert ratio(drawn) == pytest.approx(1, abs=0.15)
    again = Drawn(DEFAULT)
    assert ratio(again) > 3
    # … and what a session's own device says stays as it is
    for place, device in enumerate(THESIS_DEVICES):
        here = again.sessions.device == place
        planted = again.expected["devices"][device]["rate"]
        assert agree(again.sessions.purchase[here].mean(), planted, here.sum() / 3), device
