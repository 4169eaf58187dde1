"""Training and serving cannot differ: raw events as sessions so far, against the table made of the same events."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import feature_oracle
import numpy as np
import pytest
from events import canonical, write_log
from feature_oracle import Session, sessions_of

from diptych.commerce.purchase_intent.features import FeatureTable, make_features
from diptych.commerce.purchase_intent.features.view import HISTORY_COLUMNS
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train
from diptych.commerce.purchase_intent.scoring.request import keep_history, kept_history
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.core.errors import DataError, StorageError

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


def test_a_kept_history_is_what_the_next_session_has(events: list[dict[str, Any]], tmp_path: Path) -> None:
    """The log, and one session more of every visitor and of a new one: its history from the log before."""
    events = events[:2500]
    before = write_log(tmp_path / "before", events)
    file = tmp_path / "history.parquet"
    visitors = [*(f"v{number}" for number in range(0, VISITORS, 5)), "somebody new"]
    next_ones = [
        {"client_id": f"next {name}", "visitor_id": name, "t": 20 * DAY + 30 * page, "device": "tablet"}
        for name in visitors
        for page in range(12)
    ]
    after = write_log(tmp_path / "after", [*events, *next_ones])
    kept = keep_history(sessionise(before), file)
    everyone = {one.visitor for one in sessions_of(canonical(events))} - {None}
    assert kept == len(everyone)
    features = make_features(sessionise(after), folder=tmp_path / "features")
    rows = np.flatnonzero(features.start_us == 20 * DAY * 1_000_000)
    assert len(rows) == len(visitors)
    ids = {one.session_id: one.visitor for one in sessions_of(canonical([*events, *next_ones]))}
    new = 0
    for row in rows:
        visitor = ids[int(features.session_ids[row])]
        assert visitor is not None
        found = kept_history(file, visitor)
        if visitor not in everyone:
            assert found is None
            new += 1
            continue
        assert found is not None
        columns, missing = found[0].columns(20 * DAY * 1_000_000, "tablet", features.about["since_us"])
        assert missing == []
        for name in HISTORY_COLUMNS:
            expected = features.view.columns[name][row]
            if isinstance(expected, str):
                assert columns[name] == expected, name
            else:
                assert columns[name] == pytest.approx(expected, nan_ok=True), name
    assert 0 < new < len(rows) - 10


def test_a_scorer_may_keep_the_history(
    events: list[dict[str, Any]], made: tuple[FeatureTable, Scorer], tmp_path: Path
) -> None:
    features, _ = made
    tables = sessionise(write_log(tmp_path / "log", events))
    options = TrainOptions(model="logistic-regression", samples=0, folds=2)
    scorer = train(
        features, tmp_path / "scorer", options=options, steps=[1], settings=["identified"], history=tables
    )
    assert "personal data" in (scorer.folder / "model_card.md").read_text(encoding="utf-8")
    page = {"t": 20 * DAY, "device": "pc", "channel": "paid", "page_type": "home"}
    everyone = sessions_of(canonical(events))
    later = Session([{**canonical([page])[0], "visitor_id": "v3"}])
    looked_up = scorer.score({"visitor_id": "v3", "events": [page]})
    given = scorer.score({"visitor_id": "v3", "events": [page], "history": history_of(later, everyone)})
    assert looked_up.p == pytest.approx(given.p, abs=1e-12)
    assert looked_up.notes == ("the history is that of the log the scorer was trained on",)
    new = scorer.score({"visitor_id": "nobody", "events": [page]})
    assert new.notes == ("the visitor is not in the kept history: taken as new",)
    assert new.p == scorer.score({"visitor_id": "nobody", "events": [page], "history": {"sessions": 0}}).p
    with pytest.raises(DataError, match="goes beyond the session's start"):
        scorer.score({"visitor_id": "v3", "events": [{**page, "t": DAY}]})
    (scorer.folder / "history.parquet").write_text("torn")
    with pytest.raises(StorageError, match="history.parquet cannot be read"):
        scorer.score({"visitor_id": "v3", "events": [page]})
