"""Sessions so far as a shop sends them; training and serving cannot differ: against the table of the same events."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import feature_oracle
import numpy as np
import pytest
from events import canonical, write_log
from feature_oracle import Session, sessions_of
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.features import FeatureTable, make_features
from diptych.commerce.purchase_intent.features.fitting import EARLIER_DEVICES, HISTORY_COLUMNS
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train
from diptych.commerce.purchase_intent.scoring.request import (
    DAY_US,
    Event,
    History,
    SessionSoFar,
    SessionStream,
)
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.core.errors import DataError

NOON = 1_569_931_200  # 2019-10-01T12:00:00Z
GAP_US = 30 * 60 * 1_000_000
START = 100 * DAY_US


def so_far(given: Any, pages: int = 10) -> SessionSoFar:
    found = SessionStream(lambda *_: None, GAP_US, pages, given)  # type: ignore[arg-type, return-value]
    found.score()
    assert found.so_far is not None
    return found.so_far


def columns(history: Any, device: str = "pc") -> tuple[dict[str, float | str], list[str]]:
    return History.read(history, "history", DataError).columns(START, device, 40 * DAY_US)


def test_an_event_is_read_in_the_words_of_logs() -> None:
    words = {"page_type": " home ", "device": "Desktop", "channel": "Paid", "visitor_id": 17, "basket": [1]}
    found = Event.read({"t": NOON, "action": "View", **words}, "event 1")
    assert (found.action, found.page_type, found.device, found.channel) == ("page", "home", "pc", "paid")
    assert (found.t, found.visitor_id, found.is_purchase) == (NOON * 1_000_000, "17", None)
    session = so_far({"visitor_id": "null", "events": [{"t": 0, "device": None, "action": None}]})
    assert (session.visitor_id, session.device, session.n_pages) == (None, "unknown", 1)
    given = {"device": "tv", "visitor_id": "v", "events": [{"t": 0, "device": "pc"}, {"t": 9000}]}
    session = so_far(given)  # what is given once is of all events that do not give it
    assert (session.device, session.visitor_id, session.is_identified) == ("tv", "v", True)
    assert "begins a new session" in session.notes[0]
    found = so_far({"events": [{"t": t, "visitor_id": name} for t, name in enumerate("vvwx")]})
    assert found.visitor_id == "v"


def test_times() -> None:
    cases: Any = [
        (NOON + 0.25, NOON + 0.25),
        ("2019-10-01T14:00:00+02:00", NOON),
        ("2019-10-01 12:00:00", NOON),
        ("2019-10-01T12:00:00.000001+00:00", NOON + 0.000001),
    ]
    for time, seconds in cases:
        assert so_far({"start": time}).start_us == round(seconds * 1_000_000)


REFUSED = [
    ("event", "page", "event 4: .*dictionary"),
    ("event", {"t": "yesterday"}, "event 4: t: .*valid datetime"),
    ("event", {"t": float("nan")}, "NaN"),
    ("event", {"t": -1}, "before the year 1970"),
    ("event", {"t": NOON * 1000}, "dates after 9999"),  # milliseconds
    ("event", {"t": 0, "action": "dance"}, "event 4: action: no known action, which are page, query"),
    ("event", {"t": 0, "is_purchase": "yes"}, "event 4: is_purchase: .*valid boolean"),
    ("history", {"order": 1}, "history: unknown key 'order'"),
    ("history", {"sessions": 10**400}, "history: sessions: .*less than"),
    ("history", {"sessions": 2, "devices": ["pc"]}, "1 devices of 2 sessions"),
    ("history", {"orders": 0, "sessions": 3, "days_since_purchase": 4}, "no orders, and a purchase"),
    ("history", {"orders": 1, "days_since_purchase": -0.5}, "days_since_purchase: .*greater than"),
    ("history", {"orders": 1, "last_purchase": 101 * 86_400}, "1 days after this session's start"),
    ("history", {"orders": 1, "last_purchase": 1, "days_since_purchase": 1}, "last_purchase and days_since"),
    ("session", {"events": []}, "has no event"),
    ("session", {"events": [{"t": 0}, {"t": "x"}]}, "a session so far: events.1.t: "),
    ("session", {"events": [{"t": 0}], "history": {"order": 1}}, "unknown key 'history.order'"),
    ("session", {"start": 10, "events": [{"t": 20}, {"t": 9}]}, "event 1 is 1 s earlier than the start"),
]


def test_what_is_refused() -> None:
    for what, value, message in REFUSED:
        readers = {
            "event": lambda one: Event.read(one, "event 4", DataError),
            "history": columns,
            "session": so_far,
        }
        with pytest.raises(DataError, match=message):
            readers[what](value)


def test_a_whole_history() -> None:
    given = {"sessions": 6, "devices": ["TV", "pc", "pc", "tablet", "pc", "tv"], "orders": 2,
             "last_purchase": "1970-04-09T12:00:00Z"}  # fmt: skip
    found, missing = columns(given, "smartphone")
    assert missing == []
    assert set(found) == set(HISTORY_COLUMNS)
    expected = {
        "sessions": 6,
        "orders": 2,
        "days_since_purchase": 1.5,
        "devices": 4,
        "switches": 4,
        "pairs": 5,
    }
    earlier = dict(zip(EARLIER_DEVICES, ("tv", "pc", "tablet", "pc"), strict=True))
    assert found == expected | {"history_days": 60.0} | earlier


def test_what_nobody_says_is_missing_and_named() -> None:
    found, missing = History().columns(START, "pc", None)
    assert missing == ["sessions", "devices", "orders"]
    assert all(value == "" or math.isnan(float(value)) for value in found.values())
    found, missing = columns({"orders": 3, "sessions": 4, "since": 90 * 86_400})
    assert missing == ["devices", "last_purchase"]
    assert (found["orders"], found["sessions"], found["history_days"]) == (3.0, 4.0, 10.0)
    assert math.isnan(float(found["devices"]))


EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "wait": st.sampled_from([0, 5, 60, 1799, 1800, 1801, 4000]),
            "action": st.sampled_from(["page", "page", "page", "query", "other", "purchase"]),
            "page_type": st.sampled_from([None, "home", "product"]),
            "device": st.sampled_from(["pc", "tv"]),
            "visitor_id": st.sampled_from([None, None, "v", "w"]),
        }
    ),
    min_size=1,
    max_size=25,
)


@given(EVENTS)
def test_it_is_the_last_session_of_a_log(drawn: list[dict[str, Any]]) -> None:
    times = itertools.accumulate(event["wait"] for event in drawn)
    events = [
        {**event, "t": t, "is_purchase": event["action"] == "purchase"}
        for event, t in zip(drawn, times, strict=True)
    ]
    events = [{key: value for key, value in event.items() if key != "wait"} for event in events]
    expected = sessions_of(canonical(events))[-1]
    found = so_far({"events": events}, pages=3)
    assert found.start_us == expected.start
    assert found.device == expected.device
    assert found.visitor_id == expected.visitor
    assert found.pages_before_identified == expected.pages_before_visitor
    assert found.n_pages == len(expected.pages)
    assert found.page_types == [page["page_type"] or "unknown" for page in expected.pages[:3]]
    assert found.page_times == [page["t_us"] for page in expected.pages[:3]]
    assert (found.bought_at is None) == (expected.bought is None)
    if expected.bought is not None and found.bought_at is not None:
        assert found.bought_at == expected.bought["event_id"] + 1


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


def sent_by_shop(session: Session, step: int, everyone: list[Session]) -> dict[str, Any]:
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
            given = sent_by_shop(by_id[int(features.session_ids[row])], model.step, everyone)
            score = scorer.score(given, reasons=0)
            assert (score.setting, score.step) == (model.setting, model.step)
            assert score.p == pytest.approx(p, abs=1e-12)
            compared += 1
            if score.setting == "identified":
                with_history += np.array([given["history"]["orders"] > 0, given["history"]["sessions"] == 0])
    assert compared == 22 * 8
    assert (with_history > 0).all()  # of both kinds: who has bought, and who is new
