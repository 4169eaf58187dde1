"""The oracle's probabilities: right by a computation from the files alone, calibrated, better than any one feature."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from raw_shop_logs import raw_rows, sessions_of

from diptych.data.scenes.shop_log import DEFAULT, make_shop_log
from diptych.data.scenes.shop_log.chance import Calendar
from diptych.data.scenes.shop_log.oracle import chance_with_history
from diptych.data.scenes.shop_log.sessions import visits_of
from diptych.data.scenes.shop_log.world import World

PAGES = ("home", "category", "search", "product", "basket", "checkout", "account", "service", "confirmation")


def columns_of(folder: Path) -> dict[str, np.ndarray]:
    table = pq.read_table(folder / "oracle.parquet")
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """The oracle of 20,000 visitors: about 5,500 sessions with at least 12 pages."""
    folder = tmp_path_factory.mktemp("made") / "many"
    return columns_of(make_shop_log(folder, visitors=20_000, seed=2, format="parquet"))


def likelihood_of_a_dwell(effects: dict[str, Any], purchase: bool, page: str, seconds: float) -> float:
    chain = effects["buyers" if purchase else "others"]
    mean, spread = chain["dwell"][PAGES.index(page)], chain["spread"]

    def below(limit: float) -> float:
        return math.erfc((mean - math.log(limit)) / spread / math.sqrt(2)) / 2

    density = math.exp(-(((math.log(seconds) - mean) / spread) ** 2) / 2) / spread
    return density / (below(1800) - below(1))


def geometric_tail(parts: list[tuple[float, float]], least: int, from_one: bool) -> float:
    """Share of a mixture at ``least`` or more."""
    if from_one:
        return sum(share * (1 - 1 / mean) ** (least - 1) for share, mean in parts)
    return sum(share * (mean / (1 + mean)) ** max(least, 0) for share, mean in parts)


def likelihood_of_the_length(effects: dict[str, Any], purchase: bool, device: str, step: int) -> float:
    """That a session has 12 pages or more, and no confirmation before page ``step`` + 3."""
    pages = effects["pages"][device]
    if not purchase:
        return geometric_tail(pages["others"], 12, from_one=True)
    total = 0.0
    for confirmation in range(step + 3, 400):
        here = geometric_tail(pages["until_basket"], confirmation - 4, from_one=False)
        here -= geometric_tail(pages["until_basket"], confirmation - 3, from_one=False)
        missing = 12 - confirmation
        goes_on = effects["continued"] * (1 - 1 / effects["pages_after"]) ** (missing - 1)
        total += here * (1.0 if missing <= 0 else goes_on) if confirmation > 3 else 0.0
    return total


def probability_of(effects: dict[str, Any], session: dict[str, Any], step: int) -> float:
    odds = math.exp(
        effects["base"]
        + effects["device"][session["device"]]
        + effects["channel"][session["channel"]]
        + effects["week_day"][session["week_day"]]
        + effects["hour"][session["hour"]]
    )
    pages = [page["page"] for page in session["pages"]]
    times = [page["t_us"] for page in session["pages"]]
    likelihoods = []
    for purchase in (True, False):
        chain = effects["buyers" if purchase else "others"]
        value = likelihood_of_the_length(effects, purchase, session["device"], step)
        for place in range(step):
            row = chain["next"][PAGES.index(pages[place - 1])] if place else chain["start"]
            value *= row[PAGES.index(pages[place])]
        for place in range(step - 1):
            seconds = (times[place + 1] - times[place]) / 1e6
            if seconds != 1800:
                value *= likelihood_of_a_dwell(effects, purchase, pages[place], seconds)
        likelihoods.append(value)
    odds *= likelihoods[0] / likelihoods[1]
    return odds / (1 + odds)


def test_it_follows_from_the_files_and_the_planted_parameters(shop: Path) -> None:
    effects = json.loads((shop / "truth.json").read_text())["effects"]
    rows = pq.read_table(shop / "oracle.parquet").to_pylist()
    sessions = {(one["client"], one["start_us"]): one for one in sessions_of(raw_rows(shop))}
    for row in rows:
        session = sessions[row["client"], row["start_us"]]
        assert row["label"] == session["purchase"]
        known = [event["customer"] is not None for event in session["events"]]
        pages_before = sum(
            event["action"] == "page"
            for event in session["events"][: known.index(True) if any(known) else len(known)]
        )
        assert row["identified"] == (any(known) and (pages_before == 0 or pages_before < row["step"]))
    for row in rows[::29]:
        session = sessions[row["client"], row["start_us"]]
        assert row["probability"] == pytest.approx(probability_of(effects, session, row["step"]), rel=1e-6)


def test_its_rows_are_the_population_of_each_step(shop: Path) -> None:
    expected = set()
    for one in sessions_of(raw_rows(shop)):
        pages = [page["page"] for page in one["pages"]]
        before = pages.index("confirmation") if one["purchase"] else None
        if len(pages) >= 12:
            steps = [step for step in range(11) if before is None or before >= step + 2]
            expected |= {(one["client"], one["start_us"], step) for step in steps}
    rows = pq.read_table(shop / "oracle.parquet").to_pylist()
    assert {(row["client"], row["start_us"], row["step"]) for row in rows} == expected
    assert len(rows) == len(expected) > 1000


@pytest.mark.parametrize("name", ["probability", "probability_with_history"])
@pytest.mark.parametrize("step", [0, 4, 10])
def test_it_is_calibrated(many: dict[str, np.ndarray], name: str, step: int) -> None:
    here = many["step"] == step
    told, label = many[name][here], many["label"][here]
    for part in np.array_split(np.argsort(told, kind="stable"), 6):
        spread = np.sqrt((told[part] * (1 - told[part])).sum()) / len(part)
        assert abs(label[part].mean() - told[part].mean()) < 4 * spread


@pytest.mark.parametrize("identified", [True, False])
def test_it_is_calibrated_whether_or_not_the_customer_is_known(
    many: dict[str, np.ndarray], identified: bool
) -> None:
    here = (many["identified"] == identified) & (many["step"] == 6)
    for name in ("probability", "probability_with_history"):
        told = many[name][here]
        spread = np.sqrt((told * (1 - told)).sum()) / len(told)
        assert abs(many["label"][here].mean() - told.mean()) < 4 * spread


def log_loss(told: np.ndarray, label: np.ndarray) -> float:
    return float(-np.log(np.where(label, told, 1 - told)).mean())


def test_it_gets_better_with_every_page(many: dict[str, np.ndarray]) -> None:
    sessions, rows = np.unique(many["start_us"], return_counts=True)
    whole = np.isin(many["start_us"], sessions[rows == 11])  # those that are in the population of all steps
    assert whole.mean() > 0.8

    def losses(name: str) -> list[float]:
        steps = (whole & (many["step"] == step) for step in range(11))
        return [log_loss(many[name][here], many["label"][here]) for here in steps]

    alone, with_history = losses("probability"), losses("probability_with_history")
    assert alone == sorted(alone, reverse=True)
    assert all(known < unknown for known, unknown in zip(with_history, alone, strict=True))


def test_it_beats_every_single_feature(tmp_path: Path) -> None:
    folder = make_shop_log(tmp_path / "log", visitors=2500, seed=2)
    oracle = {
        (row["client"], row["start_us"]): row
        for row in pq.read_table(folder / "oracle.parquet").to_pylist()
        if row["step"] == 6
    }
    sessions = [one for one in sessions_of(raw_rows(folder)) if (one["client"], one["start_us"]) in oracle]
    rows = [oracle[one["client"], one["start_us"]] for one in sessions]
    label = np.array([row["label"] for row in rows])
    best = log_loss(np.array([row["probability"] for row in rows]), label)
    times = np.array([[page["t_us"] for page in one["pages"][:6]] for one in sessions]) / 1e6
    features = {
        "device": [one["device"] for one in sessions],
        "channel": [one["channel"] for one in sessions],
        "hour": [one["hour"] for one in sessions],
        "week day": [one["week_day"] for one in sessions],
        "product pages": [sum(page["page"] == "product" for page in one["pages"][:6]) for one in sessions],
        "baskets": [sum(page["page"] == "basket" for page in one["pages"][:6]) for one in sessions],
        "dwell mean": np.digitize(np.log(np.diff(times).mean(axis=1)), np.arange(1, 6, 0.5)).tolist(),
    }
    for name, values in features.items():
        rates = {value: label[[other == value for other in values]].mean() for value in set(values)}
        told = np.clip([rates[value] for value in values], 1e-9, 1 - 1e-9)  # fitted on the very sessions
        assert best < log_loss(told, label) - 0.02, name


def test_history_says_nothing_where_intents_are_independent() -> None:
    world = World.of(replace(DEFAULT, repeat=0.0), Calendar("UTC", 28), 3)
    visits = visits_of(world, np.arange(500))
    assert chance_with_history(world, visits) == pytest.approx(visits.sessions.chance, rel=1e-12)


def test_history_by_a_plain_sum_over_propensities() -> None:
    world = World.of(replace(DEFAULT, base=-1.0), Calendar("UTC", 28), 3)
    visits = visits_of(world, np.arange(120))
    told = chance_with_history(world, visits)
    grid = np.linspace(-8, 8, 4001)
    normal = np.vectorize(lambda value: math.erfc(-value / math.sqrt(2)) / 2)
    for person in np.flatnonzero(visits.people.sessions > 4)[:6]:
        weights = np.exp(-(grid**2) / 2)
        for row in np.flatnonzero(visits.sessions.person == person):
            limit = world.latent_chance.flat[np.abs(world.chance - visits.sessions.chance[row]).argmin()]
            buys = normal((limit - math.sqrt(0.5) * grid) / math.sqrt(0.5))
            assert told[row] == pytest.approx(np.average(buys, weights=weights), rel=1e-6)
            weights *= buys if visits.sessions.purchase[row] else 1 - buys
