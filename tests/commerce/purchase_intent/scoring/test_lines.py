"""Sessions and events as lines of JSON: an answer each, also of what cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.commerce.purchase_intent.scoring.table_scores import (
    RunningSessions,
    score_events,
    score_sessions,
)
from diptych.core.errors import UsageError

START = 20 * 86_400
FIRST = {"t": START, "page_type": "home", "device": "pc", "channel": "paid"}
SECOND = {"t": START + 30, "page_type": "basket"}


def test_every_line_has_an_answer(scorer: Scorer) -> None:
    good = {"id": "a", "events": [FIRST]}
    lines = [
        json.dumps(good),
        "",
        "{",
        '{"events": []}',
        '{"id": 7, "events": [{"t": "x"}]}',
        "7" * 5000,
        "[1]",
    ]
    answers = list(score_sessions(scorer, lines))
    assert [answer["line"] for answer in answers] == [1, 3, 4, 5, 6, 7]
    assert answers[0] == {"line": 1, "id": "a", **scorer.score(good).to_dict()}
    assert "not JSON" in answers[1]["error"]
    assert answers[2] | {"fix": ""} == {"line": 3 + 1, "error": "the session so far has no event", "fix": ""}
    assert (answers[3]["id"], answers[3]["error"]) == (7, "event 1 has the time 'x'")
    assert "not JSON" in answers[4]["error"]
    assert "is list, not an object" in answers[5]["error"]
    assert json.loads(json.dumps(answers)) == answers


def test_nothing_is_read_before_it_is_needed(scorer: Scorer) -> None:
    def endless() -> Any:
        while True:
            yield json.dumps({"events": [FIRST]})

    answers = score_sessions(scorer, endless(), reasons=0)
    assert [next(answers)["line"] for _ in range(3)] == [1, 2, 3]


def test_events_of_clients_are_kept_apart(scorer: Scorer) -> None:
    events = [
        {**FIRST, "client_id": "a"},
        {**FIRST, "client_id": 5, "device": "tablet"},
        {**SECOND, "client_id": "a"},
        {**SECOND, "client_id": "a", "action": "query"},
        {**SECOND, "client_id": 5, "t": START - 1},
        {**SECOND, "client_id": 5},
        {**SECOND},
        {**FIRST, "t": START + 9000, "client_id": "a"},
    ]
    answers = list(score_events(scorer, map(json.dumps, events), reasons=0))
    assert [(answer["line"], answer.get("client_id"), answer.get("step")) for answer in answers] == [
        (1, "a", 1),
        (2, 5, 1),
        (3, "a", 2),
        (5, 5, None),
        (6, 5, 2),
        (7, None, None),
        (8, "a", 1),
    ]
    assert answers[2]["p"] == scorer.score({"events": [FIRST, SECOND]}, reasons=0).p
    assert answers[4]["p"] == scorer.score({"events": [{**FIRST, "device": "tablet"}, SECOND]}, reasons=0).p
    assert "event 2 is 1 s earlier" in answers[3]["error"]
    assert "client_id None" in answers[5]["error"]
    assert "begins a new session" in answers[6]["notes"][0]


def test_only_so_many_sessions_are_held(scorer: Scorer) -> None:
    running = RunningSessions(scorer, 0, most=2)
    first = running.of("a")
    running.of("b")
    assert running.of("a") is first
    running.of("c")  # b was asked for longest ago
    assert len(running) == 2
    assert running.of("a") is first


def test_a_scorer_of_whole_sessions_has_no_lines(scorer: Scorer) -> None:
    from dataclasses import replace

    whole = replace(scorer, about={**scorer.about, "kind": "whole"})
    with pytest.raises(UsageError, match="columns are known when they are over"):
        list(score_sessions(whole, ['{"events": []}']))
