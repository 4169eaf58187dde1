"""Features to a probability: evaluate, audit, train, score."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from commands import Command
from events import write_log
from feature_tables import small_features
from intent_logs import random_events
from uci_sessions import made_up_table

from diptych.commerce.purchase_intent.auditing import LeakAudit
from diptych.commerce.purchase_intent.drift import Drift
from diptych.commerce.purchase_intent.evaluation import Evaluation
from diptych.commerce.purchase_intent.features import FeatureTable, open_features
from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.commerce.purchase_intent.scoring.training import ScoredTable

GRID = "--model logistic-regression --setting anonymous --step 0 --step 5 --folds 2 --samples 20"  # fmt: skip


def test_a_small_grid(diptych: Command, features: FeatureTable, tmp_path: Path) -> None:
    out = tmp_path / "evaluation"
    done = diptych(f"intent evaluate {features.folder} --out {out} {GRID}")
    found = Evaluation.open(out)
    cell = next(one for one in found.cells if (one["set"], one["step"]) == ("extended", 5))
    done.shows(f"{cell['f1']:.4f}", f"{cell['average_precision']:.4f}", f"{cell['always_buy_f1']:.3f}")
    gain, low, high = (f"{cell[f'average_precision_gain{end}']:.4f}" for end in ("", "_low", "_high"))
    done.shows(f"{gain} ({low} to {high})")
    done.shows("anonymous, by permutation: average precision lost", found.line())
    done.shows("one visitor may be in training and test", f"open {out / 'report.html'}")
    assert "average precision" in (out / "report.html").read_text(encoding="utf-8")
    again = f"intent evaluate {features.folder} --out {out} {GRID} --no-balance"
    diptych(again, failed="balanced True, asked for False")


def test_a_scorer_on_other_sessions_prints_one_f1_everywhere(diptych: Command, tmp_path: Path) -> None:
    scorer, earlier = tmp_path / "scorer", small_features(tmp_path / "earlier", n=600)
    later = small_features(tmp_path / "later", n=120, seed=7)
    model = "--model logistic-regression --setting anonymous --step 5 --folds 2 --missed-cost 9"
    trained = diptych(f"intent train {earlier.folder} --out {scorer} {model}")
    trained.shows("by cost")
    evaluated = diptych(f"intent evaluate {later.folder} --scorer {scorer} --out {tmp_path}/out --samples 0")
    scored = diptych(f"intent score {scorer} {later.folder} --out {tmp_path}/scores")
    scored.shows(f"every score in {tmp_path / 'scores' / 'scores.csv'}; the page is")
    (cell,), (other,) = (ScoredTable.open(tmp_path / name).about["cells"] for name in ("out", "scores"))
    lines = (tmp_path / "scores" / "scores.csv").read_text(encoding="utf-8").splitlines()
    assert cell["scored"] == len(later.population("anonymous", 5)) == len(lines) - 1
    assert cell["measures"]["f1_low"] is None
    for name in ("f1", "roc_auc", "average_precision", "brier", "cost"):
        assert cell["measures"][name] == other["measures"][name]
        shown = f"{cell['measures'][name]:.{4 if name == 'brier' else 3}f}"
        evaluated.shows(shown)
        scored.shows(shown)
    assert "F1" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    diptych(f"intent report {tmp_path}/scores")
    assert "nothing is fitted" in (tmp_path / "scores" / "report.html").read_text(encoding="utf-8")


FAST = "--model logistic-regression --samples 0 --folds 2 --step 0 --step 3"
PAGE = {"t": 1_728_000, "page_type": "home", "device": "pc", "channel": "paid"}


def test_audit_train_and_score(diptych: Command, tmp_path: Path) -> None:
    features = small_features(tmp_path / "features", n=600)
    done = diptych(
        f"intent audit {features.folder} --model logistic-regression --step 3 --repeats 2 --check "
        "permuted-labels --check single-column --strict"
    )
    found = LeakAudit.open(features.folder / "audit")
    done.shows(found.line(), f"next: diptych intent train {features.folder}")
    out = tmp_path / "scorer"
    done = diptych(f"intent train {features.folder} --out {out} {FAST}")
    opened = Scorer.open(out)
    for cell in opened.about["cells"]:
        assert f"{cell['holdout']['average_precision']:.3f}" in done.out
    assert f"next: diptych intent score {out} {out / 'example.json'}" in done.out
    card = (out / "model_card.md").read_text(encoding="utf-8")
    assert f"{len(found.findings)} findings, 0 alarms" in card
    done = diptych(f"intent score {out} {out}/example.json --out {tmp_path}/one.json")
    score = opened.score(json.loads((out / "example.json").read_text(encoding="utf-8")))
    done.shows(score.line(), score.reasons[0].label)
    assert json.loads((tmp_path / "one.json").read_text(encoding="utf-8")) == score.model_dump(mode="json")


def test_lines_in_and_lines_out(
    diptych: Command, scorer: Scorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [{"id": "a", "events": [PAGE]}, {"id": "b", "start": 0, "device": "pc", "channel": "paid"}]
    lines = "".join(json.dumps(one) + "\n" for one in sessions)
    (tmp_path / "sessions.jsonl").write_text(lines, encoding="utf-8")
    done = diptych(f"intent score {scorer.folder} {tmp_path}/sessions.jsonl")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [(answer["id"], answer["p"]) for answer in answers] == [
        (one["id"], scorer.score(one).p) for one in sessions
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO(lines + "{\n"))
    out = tmp_path / "scores.jsonl"
    done = diptych(
        f"intent score {scorer.folder} - --out {out} --reasons 0", failed="1 of 3 answers are errors"
    )
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
    done = diptych(f"intent score {scorer.folder} - --stream")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [(answer["client_id"], answer["line"]) for answer in answers] == [("x", 1), ("y", 2), ("x", 4)]
    assert "pages opened: 1; the model of step 0" in answers[0]["notes"][0]


def test_drift(diptych: Command, scorer: Scorer, features: FeatureTable, tmp_path: Path) -> None:
    later, out = small_features(tmp_path / "later", n=400, seed=9), tmp_path / "drift"
    done = diptych(f"intent drift {features.folder} {later.folder} --scorer {scorer.folder} --out {out}")
    found = Drift.open(out)
    done.shows(*found.lines(), "The scorer on the new sessions", "purchase")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert found.lines()[0] in page
    diptych(f"intent drift {features.folder} {later.folder} --step 11 --out {out}", code=None)
    csv = [
        made_up_table(tmp_path / f"{name}.csv", 200, seed=seed) for seed, name in enumerate(("old", "new"))
    ]
    done = diptych("intent drift", *csv, "--out", tmp_path / "whole")
    done.shows("at the session's end", f"open {tmp_path / 'whole' / 'report.html'}")


def test_drift_between_two_logs(diptych: Command, tmp_path: Path) -> None:
    logs = [
        write_log(tmp_path / name, random_events(seed, visitors=9, sessions=90)).folder
        for seed, name in enumerate(("log", "later-log"))
    ]
    done = diptych("intent drift", *logs, "--step", 5, "--out", tmp_path / "drift")
    for log, name in zip(logs, ("old", "new"), strict=True):
        diptych(f"intent features {log} --out {tmp_path / name}")
        done.shows(f"{name}: {open_features(tmp_path / name).describe()}")
    diptych(f"intent drift {tmp_path}/old {tmp_path}/new --step 5 --out {tmp_path}/again")
    assert Drift.open(tmp_path / "again").rows == Drift.open(tmp_path / "drift").rows
    assert {row["setting"] for row in Drift.open(tmp_path / "drift").rows} == {"anonymous", "identified"}


def test_whole_sessions_and_a_column_that_knows_the_outcome(diptych: Command, tmp_path: Path) -> None:
    table = made_up_table(tmp_path / "uci.csv", 500)
    features = tmp_path / "features"
    diptych(f"intent features {table} --out {features} --keep-leaking")
    fast = ("--model", "logistic-regression", "--repeats", 2)
    diptych(f"intent audit {features}", *fast, "--strict", "--out", tmp_path / "audit", failed="alarms")
    found = LeakAudit.open(tmp_path / "audit")
    assert {(one.check, one.where) for one in found.alarms} == {
        ("known-columns", "PageValues"),
        ("single-column", "all, step whole, PageValues"),
    }
    done = diptych(f"intent audit {features}", *fast)
    assert done.out.count("ALARM") == 2
    scorer = tmp_path / "scorer"
    diptych(f"intent train {features} --out {scorer} --model logistic-regression --samples 0")
    assert "alarm of the leak audit, known-columns PageValues" in (scorer / "model_card.md").read_text(
        encoding="utf-8"
    )
    done = diptych(f"intent score {scorer} {table} --out {tmp_path}/scores")
    assert "the last part, by models fitted without it" in done.out
    (tmp_path / "session.json").write_text('{"events": [{"t": 0}]}', encoding="utf-8")
    diptych(f"intent score {scorer} {tmp_path}/session.json", refused="this scorer is of whole sessions")
