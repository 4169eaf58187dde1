"""``diptych intent audit``, ``train`` and ``score``: from features to a probability and its reasons."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from commands import Command
from feature_tables import small_features
from uci_sessions import made_up_table

from diptych.commerce.purchase_intent.auditing import LeakAudit
from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.commerce.purchase_intent.scoring.table_scores import ScoredTable

FAST = ("--model", "logistic-regression", "--samples", 0, "--step", 0, "--step", 3)
PAGE = {"t": 1_728_000, "page_type": "home", "device": "pc", "channel": "paid"}


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("features") / "shop", n=600)


@pytest.fixture(scope="module")
def scorer(features: FeatureTable, tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    from diptych.commerce.purchase_intent.scoring import TrainOptions, train

    options = TrainOptions(model="logistic-regression", samples=0)
    return train(features, tmp_path_factory.mktemp("scorer") / "shop", options=options, steps=[0, 3])


def test_audit_train_and_score(diptych: Command, tmp_path: Path) -> None:
    features = small_features(tmp_path / "features", n=600)
    done = diptych(
        "intent", "audit", features.folder, "--model", "logistic-regression", "--step", 3, "--repeats", 2,
        "--check", "permuted-labels", "--check", "single-column", "--strict",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = LeakAudit.open(features.folder / "audit")
    assert found.line() in done.out
    assert f"next: diptych intent train {features.folder}" in done.out

    out = tmp_path / "scorer"
    done = diptych("intent", "train", features.folder, "--out", out, *FAST)
    assert done.code == 0, done.err
    opened = Scorer.open(out)
    for cell in opened.about["cells"]:
        assert f"{cell['holdout']['average_precision']:.3f}" in done.out
    assert f"next: diptych intent score {out} {out / 'example.json'}" in done.out
    card = (out / "model_card.md").read_text(encoding="utf-8")
    assert f"{len(found.findings)} findings, 0 alarms" in card

    done = diptych("intent", "score", out, out / "example.json", "--out", tmp_path / "one.json")
    assert done.code == 0, done.err
    score = opened.score(json.loads((out / "example.json").read_text(encoding="utf-8")))
    assert score.line() in done.out
    assert score.reasons[0].label in done.out
    assert json.loads((tmp_path / "one.json").read_text(encoding="utf-8")) == score.to_dict()


def test_lines_in_and_lines_out(
    diptych: Command, scorer: Scorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [{"id": "a", "events": [PAGE]}, {"id": "b", "start": 0, "device": "pc", "channel": "paid"}]
    lines = "".join(json.dumps(one) + "\n" for one in sessions)
    (tmp_path / "sessions.jsonl").write_text(lines, encoding="utf-8")
    done = diptych("intent", "score", scorer.folder, tmp_path / "sessions.jsonl")
    assert done.code == 0, done.err
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [(answer["id"], answer["p"]) for answer in answers] == [
        (one["id"], scorer.score(one).p) for one in sessions
    ]

    monkeypatch.setattr("sys.stdin", io.StringIO(lines + "{\n"))
    out = tmp_path / "scores.jsonl"
    done = diptych("intent", "score", scorer.folder, "-", "--out", out, "--reasons", 0)
    assert done.code == 1
    assert "1 of 3 answers are errors" in done.err
    assert "2 scores, 1 errors" in done.out
    written = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [answer.get("id") for answer in written] == ["a", "b", None]
    assert "not JSON" in written[2]["error"]


def test_a_stream_of_events(diptych: Command, scorer: Scorer, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        {**PAGE, "client_id": "x"},
        {**PAGE, "client_id": "y"},
        {**PAGE, "client_id": "x", "t": PAGE["t"] + 5, "action": "query"},  # type: ignore[operator]
        {**PAGE, "client_id": "x", "t": PAGE["t"] + 9},  # type: ignore[operator]
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(json.dumps(one) + "\n" for one in events)))
    done = diptych("intent", "score", scorer.folder, "-", "--stream")
    assert done.code == 0, done.err
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [(answer["client_id"], answer["line"]) for answer in answers] == [("x", 1), ("y", 2), ("x", 4)]
    assert "1 page is open: the model of step 0" in answers[0]["notes"][0]


def test_a_table(diptych: Command, scorer: Scorer, tmp_path: Path) -> None:
    later = small_features(tmp_path / "later", n=200, seed=9)
    done = diptych("intent", "score", scorer.folder, later.folder, "--out", tmp_path / "scores")
    assert done.code == 0, done.err
    about = ScoredTable.open(tmp_path / "scores").about
    for cell in about["cells"]:
        assert f"{cell['measures']['roc_auc']:.3f}" in done.out
    lines = (tmp_path / "scores" / "scores.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + sum(cell["scored"] for cell in about["cells"])
    assert f"next: head {tmp_path / 'scores' / 'scores.csv'}" in done.out
    done = diptych("intent", "score", scorer.folder, later.folder)
    assert (done.code, "nowhere to write" in done.err) == (2, True)


def test_whole_sessions_and_a_column_that_knows_the_outcome(diptych: Command, tmp_path: Path) -> None:
    table = made_up_table(tmp_path / "uci.csv", 500)
    features = tmp_path / "features"
    done = diptych("intent", "features", table, "--out", features, "--keep-leaking")
    assert done.code == 0, done.err
    fast = ("--model", "logistic-regression", "--repeats", 2)
    done = diptych("intent", "audit", features, *fast, "--strict", "--out", tmp_path / "audit")
    assert (done.code, "alarms" in done.err) == (1, True), done.err
    found = LeakAudit.open(tmp_path / "audit")
    assert {(one.check, one.where) for one in found.alarms} == {
        ("known-columns", "PageValues"),
        ("single-column", "all, whole sessions, PageValues"),
    }
    done = diptych("intent", "audit", features, *fast)
    assert done.code == 0, done.err
    assert done.out.count("ALARM") == 2
    scorer = tmp_path / "scorer"
    done = diptych(
        "intent", "train", features, "--out", scorer, "--model", "logistic-regression", "--samples", 0
    )
    assert done.code == 0, done.err
    assert "known-columns PageValues" in (scorer / "model_card.md").read_text(encoding="utf-8")
    done = diptych("intent", "score", scorer, table, "--out", tmp_path / "scores")
    assert done.code == 0, done.err
    assert "the last part, of which the scorer has learned nothing" in done.out
    (tmp_path / "session.json").write_text('{"events": [{"t": 0}]}', encoding="utf-8")
    done = diptych("intent", "score", scorer, tmp_path / "session.json")
    assert (done.code, "this scorer is of whole sessions" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("train", "{features}", "--out", "{out}", "--model", "hist-gradient"), 2, "hist-gradient-boosting"),
        (("train", "{features}", "--out", "{out}", "--step", "11"), 2, "unknown step"),
        (("train", "{features}", "--out", "{out}", "--audit", "{out}"), 1, "holds no leak_audit"),
        (("train", "{out}", "--out", "{out}"), 1, "holds no features"),
        (("audit", "{features}", "--check", "drfit"), 2, "did you mean 'drift'"),
        (("score", "{out}", "-"), 1, "holds no scorer"),
        (("score", "{scorer}", "nothing.jsonl"), 1, "does not exist"),
        (("score", "{scorer}", "{scorer}"), 1, "holds no features"),
        (("score", "{scorer}", "{features}", "--stream"), 2, "has no lines of events"),
    ],
)
def test_what_cannot_be_is_said(
    diptych: Command,
    features: FeatureTable,
    scorer: Scorer,
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    places: dict[str, Any] = {"features": features.folder, "scorer": scorer.folder, "out": tmp_path / "out"}
    done = diptych("intent", *(argument.format(**places) for argument in arguments))
    assert (done.code, message in done.err) == (code, True), done.err
