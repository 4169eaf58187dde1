"""What is planted is found in the sessions that were drawn, within what chance allows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from diptych.data.scenes.shop_log import DEFAULT, Effects
from diptych.data.scenes.shop_log.chance import Calendar
from diptych.data.scenes.shop_log.counts import Counts
from diptych.data.scenes.shop_log.effects import CONFIRMATION, PAGE_TYPES
from diptych.data.scenes.shop_log.make import expected
from diptych.data.scenes.shop_log.sessions import Visits, visits_of
from diptych.data.scenes.shop_log.statistics import bought_before, statistics_of
from diptych.data.scenes.shop_log.world import World

VISITORS = 40_000
MANY = 4.5
"""Standard deviations; more than a thousand numbers are looked at."""

GAP_US = 1_800_000_000


class Drawn:
    def __init__(self, effects: Effects) -> None:
        world = World.of(effects, Calendar("Europe/Amsterdam", 28), 1)
        self.visits: Visits = visits_of(world, np.arange(VISITORS))
        counts = Counts(effects.queries)
        counts.add(self.visits)
        self.statistics = statistics_of(counts)
        self.bought_before = bought_before(counts)
        self.expected: dict[str, Any] = expected(world)

    def total(self, what: str) -> int:
        return next(row["total"] for row in self.statistics["overview"] if row["what"] == what)


@pytest.fixture(scope="module")
def drawn(independent: Effects) -> Drawn:
    return Drawn(independent)


def agree(found: float, planted: float, n: float) -> bool:
    """Whether a share of n is what was planted."""
    return abs(found - planted) <= MANY * math.sqrt(planted * (1 - planted) / n) + 2 / n


def test_conversion_by_device_and_channel(drawn: Drawn) -> None:
    sessions = drawn.total("sessions")
    assert agree(drawn.total("purchase sessions") / sessions, drawn.expected["rate"], sessions)
    for name, column in (("devices", "device"), ("channels", "channel")):
        assert {row[column] for row in drawn.statistics[name]} == set(drawn.expected[name])
        for row in drawn.statistics[name]:
            planted = drawn.expected[name][row[column]]
            assert agree(row["rate"], planted["rate"], row["sessions"]), row
            # visitors have several sessions on one device, so shares of devices scatter more
            assert agree(
                row["sessions"] / sessions, planted["share"], sessions / (6 if column == "device" else 1)
            )


def test_effects_are_log_odds_of_the_size_planted(drawn: Drawn) -> None:
    rates = {name: one["rate"] for name, one in drawn.expected["channels"].items()}

    def log_odds(channel: str) -> float:
        return math.log(rates[channel] / (1 - rates[channel]))

    for channel, effect in DEFAULT.channel.items():
        assert log_odds(channel) - log_odds("direct") == pytest.approx(
            effect - DEFAULT.channel["direct"], abs=0.02
        )


@pytest.mark.parametrize(("name", "column"), [("week_days", "week_day"), ("hours", "hour")])
def test_week_days_and_hours(drawn: Drawn, name: str, column: str) -> None:
    n = {True: drawn.total("purchase sessions")}
    n[False] = drawn.total("sessions") - n[True]
    for row in drawn.statistics[name.replace("_", "-")]:
        planted = drawn.expected[name]["purchase" if row["purchase"] else "other"][row[column]]
        assert agree(row["share"], planted, n[row["purchase"]]), row


def test_device_transitions(drawn: Drawn) -> None:
    planted = drawn.expected["device_transitions"]
    assert all(sum(row.values()) == pytest.approx(1) for row in planted.values())
    found = {(row["from_device"], row["to_device"]): row for row in drawn.statistics["device-transitions"]}
    for before, row in planted.items():
        n = sum(one["transitions"] for (device, _), one in found.items() if device == before)
        for after, share in row.items():
            seen = found.get((before, after), {"transitions": 0})["transitions"]
            assert n == 0 or agree(seen / n, share, n / 2), (before, after)  # some pairs are of one visitor
            assert share > 0 or not seen


def test_page_chains_and_dwell_times(drawn: Drawn) -> None:
    """Pages up to three before the confirmation are the buyers', all of other sessions the others'."""
    paths, sessions = drawn.visits.paths, drawn.visits.sessions
    to_go = sessions.confirmation[paths.session] - paths.position
    names = np.array([*PAGE_TYPES, CONFIRMATION])
    for name, inside in (
        ("purchase", to_go >= 3),
        ("other", sessions.confirmation[paths.session] == 0),
    ):
        first = inside & (paths.position == 1)
        shares = np.bincount(paths.kind[first], minlength=8) / first.sum()
        for place, page in enumerate(PAGE_TYPES):
            assert agree(shares[place], drawn.expected["page_chains"][name]["start"][page], first.sum())
        follows = np.flatnonzero(inside[1:] & inside[:-1] & (paths.session[1:] == paths.session[:-1]))
        for place, before in enumerate(PAGE_TYPES):
            after = paths.kind[follows[paths.kind[follows] == place] + 1]
            for column, page in enumerate(PAGE_TYPES):
                planted = drawn.expected["page_chains"][name]["next"][before][page]
                assert agree((after == column).mean(), planted, len(after)), (name, before, page)
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
    sessions = drawn.visits.sessions
    for place, device in enumerate(("smartphone", "pc", "tablet", "game console", "tv")):
        for name, purchase in (("other", False), ("purchase", True)):
            pages = sessions.pages[(sessions.device == place) & (sessions.purchase == purchase)]
            for least, planted in drawn.expected["pages_at_least"][name][device].items():
                assert agree((pages >= int(least)).mean(), planted, len(pages)), (device, name, least)
    for row in drawn.statistics["queries"]:
        if row["device"] != "all":
            planted = drawn.expected["queries_per_session"]["purchase" if row["purchase"] else "other"][
                row["device"]
            ]
            spread = math.sqrt(planted * (3 + 3 * planted) / row["sessions"])  # they come in bunches
            assert abs(row["per_session"] - planted) < MANY * spread, row


def test_who_has_bought_buys_again_only_where_that_is_planted(drawn: Drawn) -> None:
    def ratio(of: Drawn) -> float:
        rates = {row["bought_before"]: row["purchase_sessions"] / row["sessions"] for row in of.bought_before}
        return rates[True] / rates[False]

    assert ratio(drawn) == pytest.approx(1, abs=0.15)
    again = Drawn(DEFAULT)
    assert ratio(again) > 3
    # … and what a session's own device says stays as it is
    for row in again.statistics["devices"]:
        assert agree(row["rate"], again.expected["devices"][row["device"]]["rate"], row["sessions"] / 3), row
