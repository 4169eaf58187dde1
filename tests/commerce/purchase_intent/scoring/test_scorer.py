"""Sessions as they run: which model answers, why, and that streaming changes nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train
from diptych.commerce.purchase_intent.scoring import scorer as scorer_module
from diptych.core.errors import DataError, StorageError, UsageError

HISTORY = {"sessions": 2, "devices": ["pc", "tablet"], "orders": 1, "days_since_purchase": 3.0, "since": 0}

START = 20 * 86_400 + 3600 * 10


def pages(n: int, every: float = 40.0) -> list[dict[str, Any]]:
    types = ("home", "product", "search", "basket")
    return [{"t": START + every * number, "page_type": types[number % 4]} for number in range(n)]


def session(n: int, **said: Any) -> dict[str, Any]:
    return {"device": "pc", "channel": "paid", "events": pages(n), **said}


def test_streaming_changes_nothing(scorer: Scorer) -> None:
    events = [
        {"t": START - 9000, "page_type": "home", "device": "tv", "channel": "direct"},  # a session before
        *pages(2),
        {"t": START + 50, "action": "other", "visitor_id": "v"},
        {"t": START + 60, "action": "query"},
        *[{**event, "t": event["t"] + 100} for event in pages(12)],
    ]
    stream = scorer.stream({"device": "pc", "history": HISTORY})
    for number, event in enumerate(events, 1):
        score = stream.add(event)
        whole = scorer.score({"device": "pc", "history": HISTORY, "events": events[:number]})
        assert stream.score() == whole
        assert score == (whole if event.get("action", "page") == "page" else None)
    assert (whole.setting, whole.step) == ("identified", 10)
    first, second, third = pages(3)  # a bad event can be left out
    stream = scorer.stream({"device": "pc", "channel": "paid"})
    stream.add(first)
    for bad in ({"t": "soon"}, {"t": 5}, "page"):
        with pytest.raises(DataError, match=r"event [234]"):
            stream.add(bad)  # type: ignore[arg-type]
    stream.add(second)
    assert stream.add(third) == scorer.score(session(3))


def test_reasons_of_a_linear_model_are_coefficient_times_difference(scorer: Scorer) -> None:
    """Before calibration to the last digits; its slope is a factor of all of them."""
    cell = scorer.model("identified", 5)
    imputer, scaler, model = (step for _, step in cell.model.pipeline.steps)
    names = cell.features.names
    # Without missing values, and near the mean, where no probability is cut off.
    background = np.where(np.isnan(cell.background), 0.0, cell.background)
    background = background.mean(axis=0) + 0.3 * (background - background.mean(axis=0))
    row, means = background[7], background.mean(axis=0)
    _, found = replace(cell, background=background).effects(row)
    weights = model.coef_[0] / scaler.scale_
    of = dict(zip(imputer.get_feature_names_out(list(names)), weights, strict=True))
    expected: dict[str, float] = {}
    for name, owner, value, mean in zip(names, cell.features.owners, row, means, strict=True):
        expected[owner] = expected.get(owner, 0.0) + cell.calibration.slope * of[name] * (value - mean)
    assert found == pytest.approx(expected, abs=1e-6)
    assert found["pages"] == 0.0  # the same of all sessions at a step
    assert any(abs(effect) > 0.05 for effect in found.values())
    said = scorer.score(session(5, visitor_id="v", history=HISTORY), reasons=20).reasons
    assert [abs(one.effect) for one in said] == sorted((abs(one.effect) for one in said), reverse=True)
    (orders,) = (one.text for one in said if one.feature == "orders")
    assert orders.startswith("number of orders: 1, typically 0; ")


def test_which_model_answers_and_what_it_says(scorer: Scorer) -> None:
    cases: Any = [
        (session(10), 10, "anonymous", []),
        (session(13), 10, "anonymous", ["pages opened: 13; the model of step 10 looks at the first 10"]),
        (session(2, visitor_id="v", history=HISTORY), 2, "identified", []),
        (session(2, history=HISTORY), 2, "anonymous", []),
        (
            session(2, visitor_id="v"),
            2,
            "identified",
            ["the history does not say: sessions, devices, orders"],
        ),
        (
            session(1, events=[*pages(1), {"t": START + 9, "action": "other", "visitor_id": "v"}]),
            1,
            "anonymous",
            [],
        ),
        (
            session(1, device="fridge"),
            1,
            "anonymous",
            ["not seen in training, counts as another: device 'fridge'"],
        ),
        (session(1, events=[{"t": START, "page_type": "moon"}]), 1, "anonymous", ["page types ['moon']"]),
        (session(0, events=[*pages(3)[::-1]]), 3, "anonymous", []),
        (
            session(0, events=[{"t": 0, "page_type": "home"}, *pages(2)]),
            2,
            "anonymous",
            ["begins a new session"],
        ),
        (session(0, events=[{"t": START, "page_type": "home", "device": None}]), 1, "anonymous", []),
    ]
    for given, step, setting, notes in cases:
        score = scorer.score(given)
        assert (score.step, score.setting) == (step, setting)
        assert len(score.notes) == len(notes), score.notes
        for said, expected in zip(score.notes, notes, strict=True):
            assert expected in said


def test_after_a_purchase_there_is_nothing_left(scorer: Scorer) -> None:
    bought = {"t": START + 70, "action": "purchase"}
    score = scorer.score(session(2, events=[*pages(2), bought]))
    assert (score.p, score.bought, score.reasons) == (1.0, True, ())
    assert "something was bought with event 3: there is nothing left to predict" in score.notes
    assert score.model_dump(mode="json")["bought"] is True


def test_hours_and_week_days_are_of_the_scorers_zone(scorer: Scorer) -> None:
    late = datetime(2019, 10, 6, 22, 30, tzinfo=UTC).timestamp()  # Sunday; Monday 00:30 in Amsterdam
    given = {"start": late, "device": "pc", "channel": "paid"}

    def at(zone: str) -> tuple[str, str]:
        there = replace(scorer, about={**scorer.about, "zone": zone})
        object.__setattr__(there, "folder", scorer.folder)
        said = {reason.feature: reason.value for reason in there.score(given, reasons=20).reasons}
        return said["start-hour"], said["week-day"]

    assert (at("UTC"), at("Europe/Amsterdam")) == (("22", "sunday"), ("0", "monday"))
    with pytest.raises(DataError, match="Mars/Olympus"):
        at("Mars/Olympus")


def test_some_steps_and_one_setting(features: FeatureTable, tmp_path: Path, options: TrainOptions) -> None:
    found = train(features, tmp_path / "s", options=options, steps=[2, 5], settings=["anonymous"])
    score = found.score(session(4, visitor_id="v", history=HISTORY))
    assert (score.step, score.setting) == (2, "anonymous")
    assert score.notes == ("pages opened: 4; the model of step 2 looks at the first 2",)
    with pytest.raises(UsageError, match="no model for anonymous sessions .pages opened: 1"):
        found.score(session(1))
    with pytest.raises(StorageError, match="identified-5 does not exist"):
        found.model("identified", 5)


FIRST = {"t": START, "page_type": "home", "device": "pc", "channel": "paid"}
SECOND = {"t": START + 30, "page_type": "basket"}


def test_every_line_has_an_answer(scorer: Scorer) -> None:
    good = {"id": "a", "events": [FIRST]}
    bad = ["", "{", '{"events": []}', '{"id": 7, "events": [{"t": "x"}]}', "7" * 5000, "[1]"]
    answers = list(scorer.answers([json.dumps(good), *bad]))
    assert [answer["line"] for answer in answers] == [1, 3, 4, 5, 6, 7]
    assert answers[0] == {"line": 1, "id": "a", **scorer.score(good).model_dump(mode="json")}
    said = ["not JSON", "session so far has no event", "events.0.t: ", "not JSON", "valid dictionary"]
    assert all(words in answer["error"] for words, answer in zip(said, answers[1:], strict=True))
    assert answers[3]["id"] == 7
    assert json.loads(json.dumps(answers)) == answers
    answer, schema = scorer.answer(json.dumps(good)), scorer_module.Score.model_json_schema()
    assert set(answer) == {"id", *schema["properties"]}


def test_events_of_clients_are_kept_apart(scorer: Scorer) -> None:
    lines = [
        ({**FIRST, "client_id": "a"}, (1, "a", 1)),
        ({**FIRST, "client_id": 5, "device": "tablet"}, (2, 5, 1)),
        ({**SECOND, "client_id": "a"}, (3, "a", 2)),
        ({**SECOND, "client_id": "a", "action": "query"}, None),
        ({**SECOND, "client_id": 5, "t": START - 1}, (5, 5, None)),
        ({**SECOND, "client_id": 5}, (6, 5, 2)),
        ({**SECOND}, (7, None, None)),
        ({**FIRST, "t": START + 9000, "client_id": "a"}, (8, "a", 1)),
    ]
    answers = list(scorer.answers((json.dumps(event) for event, _ in lines), 0, stream=True))
    found = [(answer["line"], answer.get("client_id"), answer.get("step")) for answer in answers]
    assert found == [expected for _, expected in lines if expected]
    assert answers[2]["p"] == scorer.score({"events": [FIRST, SECOND]}, reasons=0).p
    assert answers[4]["p"] == scorer.score({"events": [{**FIRST, "device": "tablet"}, SECOND]}, reasons=0).p
    assert "event 2 is 1 s earlier" in answers[3]["error"]
    assert "client_id: Field required" in answers[5]["error"]
    assert "begins a new session" in answers[6]["notes"][0]


def test_long_words_are_shown_in_short(scorer: Scorer) -> None:
    long = "x" * 10**5
    events = [{"t": 0, "page_type": long}] * 2
    answer = scorer.score({"visitor_id": "v", "device": long, "channel": long, "events": events})
    assert len(str(answer.model_dump(mode="json"))) < 5000
    for given in ({long: 1}, {"events": [{"t": long}]}, {"events": [{"t": 0, "action": long}]},
                  {"history": {"devices": [[1]] * 10**5}}, dict.fromkeys(map(str, range(10**4)))):  # fmt: skip
        with pytest.raises(DataError) as refused:
            scorer.score(given)
        assert len(refused.value.message) < 400


def test_a_pipeline_gives_the_probabilities_without_the_scorer(
    scorer: Scorer, features: FeatureTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example of the documentation as it stands."""
    text = (Path(__file__).parents[4] / "docs" / "explanation" / "purchase-intent.md").read_text(
        encoding="utf-8"
    )
    (code,) = [one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "skops" in one]
    (tmp_path / "scorer").symlink_to(scorer.folder)
    (tmp_path / "features").symlink_to(features.folder)
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(code, found)
    rows = features.population("anonymous", 5)
    assert found["p"] == pytest.approx(scorer.model("anonymous", 5).probabilities(features.at(rows, 5)))
