"""Training and serving cannot differ: raw events as sessions so far, against the table made of the same events."""

from __future__ import annotations

import random
from typing import Any

import feature_oracle
import numpy as np
import pytest
from events import canonical, write_log
from feature_oracle import Session, sessions_of

from diptych.commerce.purchase_intent.features import FeatureTable, make_features
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train
from diptych.commerce.purchase_intent.sessions import sessionise

DAY = 86_400


VISITORS = 120


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    """Two weeks: two clients per visitor that overlap now and then, log-ins on arrival, later and never, events
    of one second, unknown page types, and purchases that mostly come late."""
    draw = random.Random(4)
    events: list[dict[str, Any]] = []
    for _ in range(700):
        visitor = draw.randrange(VISITORS)
        t, length = draw.randrange(0, 14 * DAY, 300), draw.choice([5, 12, 14, 17])
        login = draw.choice([0, 0, None, None, draw.randrange(length)])
        bought = draw.choice([None, None, length - 1, length - 1, draw.randrange(length)])
        always = {
            "client_id": f"c{visitor}-{draw.randrange(2)}",
            "device": draw.choice(["pc", "tablet", "smartphone"]),
            "channel": draw.choice(["paid", "direct"]),
        }
        for number in range(length):
            always["visitor_id"] = f"v{visitor}" if login is not None and number >= login else None
            if draw.random() < 0.2:
                events.append({**always, "t": t, "action": draw.choice(["query", "other", "add"])})
            events.append({**always, "t": t, "page_type": draw.choice(["home", "product", "basket", None])})
            if bought == number:
                events.append({**always, "t": t, "action": "purchase", "is_purchase": True})
            t += draw.choice([0, 5, 60, 200])
    return events


@pytest.fixture(scope="module")
def made(
    events: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[FeatureTable, Scorer]:
    folder = tmp_path_factory.mktemp("same")
    tables = sessionise(write_log(folder / "log", events))
    features = make_features(tables, folder=folder / "features")
    options = TrainOptions(model="logistic-regression", samples=0, folds=2)
    return features, train(features, folder / "scorer", options=options)


def so_far(session: Session, step: int, everyone: list[Session]) -> dict[str, Any]:
    """What a shop knows of a session at a step: events up to its page, and the visitor's history."""
    first = session.events[0]
    said: dict[str, Any] = {
        "start": session.start / 1e6,
        "device": first["device"],
        "channel": first["channel"],
        "events": [],
    }
    if session.pages_before_visitor == 0:
        said["visitor_id"] = session.visitor
    for event in session.events if step else []:
        sent = {"t": event["t_us"] / 1e6}
        keys = ("action", "page_type", "device", "channel", "visitor_id", "is_purchase")
        said["events"].append(sent | {key: event[key] for key in keys})
        if event is session.pages[step - 1]:
            break
    if session.visitor is not None:
        said["history"] = history_of(session, everyone)
    return said


def history_of(session: Session, everyone: list[Session]) -> dict[str, Any]:
    """As a shop would send it."""
    found = feature_oracle.history_of(session, everyone)
    bought = {"last_purchase": found["last_purchase_us"] / 1e6} if found["orders"] else {}
    return {name: found[name] for name in ("sessions", "orders")} | {"devices": found["earlier"]} | bought


def test_every_step_of_every_kind_of_session(
    events: list[dict[str, Any]], made: tuple[FeatureTable, Scorer]
) -> None:
    features, scorer = made
    assert scorer.places == [(setting, step) for setting in features.settings for step in range(11)]
    everyone = sessions_of(canonical(events))
    by_id = {one.session_id: one for one in everyone}
    compared = 0
    with_history = np.zeros(2, dtype=int)
    for model, rows, probabilities in scorer.score_table(features):
        some = np.linspace(0, len(rows) - 1, 8).astype(int)
        for row, p in zip(rows[some], probabilities[some], strict=True):
            given = so_far(by_id[int(features.session_ids[row])], model.step, everyone)
            score = scorer.score(given, reasons=0)
            assert (score.setting, score.step) == (model.setting, model.step)
            assert score.p == pytest.approx(p, abs=1e-12)
            compared += 1
            if score.setting == "identified":
                with_history += np.array([given["history"]["orders"] > 0, given["history"]["sessions"] == 0])
    assert compared == 22 * 8
    assert (with_history > 0).all()  # of both kinds: who has bought, and who is new
