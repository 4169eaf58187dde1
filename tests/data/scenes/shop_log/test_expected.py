"""What is planted is found in the sessions that were drawn, within what chance allows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from planted_logs import expected

from diptych.data.logs.schema import THESIS_CHANNELS, THESIS_DEVICES
from diptych.data.scenes.shop_log import DEFAULT, Effects
from diptych.data.scenes.shop_log.chance import Calendar
from diptych.data.scenes.shop_log.effects import CLASSES, CONFIRMATION, PAGE_TYPES
from diptych.data.scenes.shop_log.sessions import NEVER, NO_QUERY, visits_of
from diptych.data.scenes.shop_log.world import START, World

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
