"""A shop's log to a probability: ingest, describe, features, evaluate, audit, train, score, drift, report."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from commands import Command
from events import write_log
from feature_tables import small_features
from imported import events_of
from intent_logs import random_events
from intent_rows import cells_of, evaluation
from uci_sessions import made_up_table

from diptych.commerce.logs import Log
from diptych.commerce.purchase_intent.auditing import LeakAudit
from diptych.commerce.purchase_intent.drift import Drift
from diptych.commerce.purchase_intent.evaluation import Evaluation
from diptych.commerce.purchase_intent.features import FeatureTable, open_features
from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.commerce.purchase_intent.scoring.training import ScoredTable
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.commerce.purchase_intent.statistics import Description, describe

LINES = """ts;cookie;what;ua
01.10.2019 10:00;a;Look;Firefox
01.10.2019 10:01;a;buy;Firefox
01.10.2019 10:01;a;buy;Firefox
01.10.2019 10:02;b;Look;Googlebot/2.1
01.10.2019 10:03;b;\x1b[31mzoom;Firefox
"""
MAPPING = '[columns]\nagent = "ua"\n[values.action]\npage = ["look"]\n'


def test_raw_lines_become_a_log(diptych: Command, tmp_path: Path) -> None:
    shop, log = tmp_path / "shop.csv", tmp_path / "log"
    shop.write_text(LINES)
    (tmp_path / "mapping.toml").write_text(MAPPING)
    columns = "--column time=ts --column client=cookie --column action=what --time-format '%d.%m.%Y %H:%M'"
    zones = f"--mapping {tmp_path}/mapping.toml --times-in Europe/Amsterdam --zone Europe/Amsterdam"
    done = diptych(f"intent ingest {shop} --out {log} {columns} {zones}")
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    kept = "2 events kept, of 5 rows that were read"
    for words in ("unknown action 1", "agent 1", "duplicate 1", kept):
        assert any(row.startswith(words) for row in rows), words
    assert "x1b[31mzoom 1" in done.out
    done.hides("\x1b")
    assert "events by action: page 1, purchase 1" in rows
    assert "1 clients, 0 known visitors, 1 purchases" in rows
    done.shows("note: no device is known")
    assert rows[-1] == f"next: diptych intent describe {log} --out {tmp_path}/description"
    times = [event["t_us"] for event in events_of(Log.open(log))]
    assert times == [1_569_916_800_000_000, 1_569_916_860_000_000]
    diptych(f"info {log}").shows("rows_read", "purchases", "buckets")


def test_what_is_kept_is_chosen(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(
        "time,client,country,device\n"
        "2019-10-01,early,NL,pc\n2019-10-02,nl,NL,pc\n2019-10-02,be,BE,Desktop\n2019-10-02,de,DE,pc\n"
        "2019-10-02,nowhere,,pc\n2019-10-02,tv,NL,tv\n2019-10-03,late,NL,pc\n2019-10-02,nl,NL,pc\n"
    )
    chosen = "--country nl,BE --country FR --device pc --since 2019-10-02 --until 2019-10-03"
    line = f"intent ingest {tmp_path}/shop.csv --out {tmp_path}/log {chosen}"
    diptych(line)
    assert {event["client_id"] for event in events_of(Log.open(tmp_path / "log"))} == {"nl", "be"}
    more = "--keep-missing-country --keep-duplicates --keep-bots --most-events 1 --name shop"
    diptych(f"{line} {more}").shows("nl 2")  # the client with too many events is named
    assert {event["client_id"] for event in events_of(Log.open(tmp_path / "log"))} == {"be", "nowhere"}
    assert Log.open(tmp_path / "log").name == "shop"


def test_a_log_is_described(tmp_path: Path, diptych: Command) -> None:
    """Three visitors, two of whom buy; one comes from a channel whose name is made to hurt."""
    events: list[dict[str, Any]] = []
    for number, (visitor, channel) in enumerate(
        [("ann", "direct"), ("bob", "paid"), ("eve", "[bold]<b>x")] * 4
    ):
        start = number * 90_000.0
        of = {"client_id": f"{visitor}-{number % 2}", "visitor_id": visitor, "channel": channel}
        of["device"] = "pc" if number % 2 else "tv"
        events += [{"t": start + place, **of, "page_type": "home"} for place in range(3)]
        events.append({"t": start + 5, **of, "action": "query", "query": "Shoes"})
        if visitor != "eve":
            events.append({"t": start + 9, **of, "action": "purchase", "is_purchase": number > 5})
    log, out = write_log(tmp_path / "log", events).folder, tmp_path / "description"
    lines = diptych(f"intent describe {log} --out {out}").out.splitlines()
    (row,) = [line for line in lines if line.lstrip().startswith("purchase sessions ")]
    assert row.split() == ["purchase", "sessions", "<", "5"]
    assert any(line.lstrip().startswith("[bold]<b>x") for line in lines)
    (protocol,) = [line for line in lines if line.startswith("log: log, ")]
    assert "12 sessions by client, ended by more than 30 minutes" in protocol
    assert lines[-1].startswith(f"next: diptych intent features {log} --out ")
    assert Description.open(out).about["options"]["ddof"] == 0
    assert (out / "tables" / "channels.csv").read_text().splitlines()[0].startswith("channel,sessions,")
    assert "[bold]&lt;b&gt;x" in (out / "report.html").read_text()
    some = "--gap 0.05 --by visitor --ddof 1 --journey journey --memory-limit 300MB"
    chosen = "--statistic devices --statistic device-transitions"
    done = diptych(f"intent describe {log} --out {tmp_path}/d {some} {chosen}")
    done.shows("20 sessions by visitor", "transitions: by journey")
    found = Description.open(tmp_path / "d")
    assert sorted(found.unprotected) == ["device-transitions", "devices"]
    assert found.about["session_options"]["gap_minutes"] == 0.05
    assert (found.about["options"]["ddof"], found.about["options"]["journey"]) == (1, "journey")


def test_a_description_is_not_there_before_its_page(tmp_path: Path) -> None:
    def killed(inside: Path) -> None:
        (inside / "report.html").write_text("half")
        raise KeyboardInterrupt

    described = Description({}, {})
    with pytest.raises(KeyboardInterrupt):
        described.save(tmp_path / "out", also=killed)
    assert list(tmp_path.iterdir()) == []
    described.save(tmp_path / "out", also=lambda inside: (inside / "report.html").write_text("whole"))
    assert (tmp_path / "out" / "report.html").read_text() == "whole"


def test_rates_are_hidden_on_request(diptych: Command, tmp_path: Path) -> None:
    events = [
        {"t": 90_000 * session + 60 * page, "client_id": f"c{session % 7}", "device": "pc" if session % 2 else "tv",
         "action": "page", "is_purchase": page == 3 and session % 3 == 0}
        for session in range(40)
        for page in range(4)
    ]  # fmt: skip
    log, folder = write_log(tmp_path / "log", events), tmp_path / "description"
    describe(sessionise(log), names=["overview", "channels"]).save(folder)
    diptych(f"intent report {folder} --log {log.folder}")
    page = (folder / "report.html").read_text("utf-8")
    assert '<dd class="value">40</dd><dd class="note">of 160 events</dd>' in page
    assert "35.00 %" in page
    assert "160 of 160 rows are events of the log." in page
    for option, rates in (("", True), ("--hide-rates", False)):  # the verb prints what its page shows
        some = "--statistic overview --statistic channels"
        done = diptych(f"intent describe {log.folder} --out {tmp_path}/described {some} {option}")
        assert ("Rate, %" in done.out) is rates
        assert ("35.00 %" in (tmp_path / "described" / "report.html").read_text("utf-8")) is rates
        assert ("0.35" in (tmp_path / "described" / "tables" / "channels.csv").read_text()) is rates
    # an evaluation has nothing to hide
    found = evaluation(cells_of(("anonymous",), ("extended",), (5,), {"random-forest": "RF"}), "shop")
    folder = tmp_path / "evaluation"
    folder.mkdir()
    found.save(folder / Evaluation.marker())
    for option in ("--hide-rates", "--least-count 9", "--log log"):
        diptych(f"intent report {folder} {option}", refused="has results.json")
        assert not (folder / "report.html").exists()
    done = diptych(f"intent report {folder}")
    done.shows(f"open {folder / 'report.html'}", "MB, no other files needed")
    assert ">Predicting purchases: shop</h1>" in (folder / "report.html").read_text("utf-8")


def test_a_log_becomes_features(diptych: Command, shop_log: Path, tmp_path: Path) -> None:
    out = tmp_path / "my features"
    done = diptych(f"intent features {shop_log} --out '{out}' --export --csv --feature previous-device")
    table = open_features(out)
    counts = table.about["counts"]
    done.shows(f"shop: {len(table)} sessions, 11 steps, {table.labels.mean():.1%} with a purchase")
    done.shows(f"{counts['too_short']} of {counts['sessions']} sessions are too short")
    (row,) = (line.split() for line in done.out.splitlines() if line.split()[:1] == ["10"])
    few, some = (len(table.population(setting, 10)) for setting in table.settings)
    assert few < 5 <= some
    assert row == f"10 < 5 – < 5 {some} 0.0 {int(table.identified(10).sum()) - some}".split()
    done.shows(f"next: diptych intent evaluate '{out}' --out '{out}-evaluation'")
    assert (out / "steps.parquet").is_file()
    lines = (out / "steps.csv").read_text("utf-8").splitlines()
    assert lines[0].startswith('"session_id","setting","step","label","page_type","channel"')
    sizes = [len(table.population(one, step)) for one in table.settings for step in table.steps]
    assert len(lines) == 1 + sum(sizes)
    assert "previous-device" in [one.name for one in table.features("identified", "extended", 3)]
    done = diptych(f"intent features {shop_log} -o {tmp_path}/published --compat published --gap 60")
    done.shows("as published: none is left out")
    table = open_features(tmp_path / "published")
    assert (table.compat, table.about["session_options"]["gap_minutes"]) == ("published", 60)


def test_a_log_without_visitors_or_purchases(diptych: Command, tmp_path: Path) -> None:
    pages = [{"t": 10 * number, "page_type": "home", "device": "\x1b[31mred"} for number in range(12)]
    folder = write_log(tmp_path / "log", pages).folder
    done = diptych(f"intent describe {folder} --out {tmp_path}/d")
    headers = [line.split()[0] for line in done.out.splitlines() if line.strip()]
    assert "visitors" not in headers  # no empty table
    assert {"What", "Channel", "Device"} <= set(headers)
    done.hides("\x1b")
    done = diptych(f"intent features {folder} --out {tmp_path}/out")
    done.shows("no session ends in a purchase", "log: 1 sessions, 11 steps, 0.0% with a purchase")


def test_a_small_grid(diptych: Command, features: FeatureTable, tmp_path: Path) -> None:
    out = tmp_path / "evaluation"
    grid = "--model logistic-regression --setting anonymous --step 0 --step 5 --folds 2 --samples 20"
    line = f"intent evaluate {features.folder} --out {out} {grid}"
    done = diptych(line)
    found = Evaluation.open(out)
    cell = next(one for one in found.cells if (one["set"], one["step"]) == ("extended", 5))
    done.shows(f"{cell['f1']:.4f}", f"{cell['average_precision']:.4f}", f"{cell['always_buy_f1']:.3f}")
    gain, low, high = (f"{cell[f'average_precision_gain{end}']:.4f}" for end in ("", "_low", "_high"))
    done.shows(f"{gain} ({low} to {high})")
    done.shows("anonymous, by permutation: average precision lost", found.line())
    assert found.line() in str(found)
    done.shows("one visitor may be in training and test", f"open {out / 'report.html'}")
    assert "average precision" in (out / "report.html").read_text(encoding="utf-8")
    diptych(f"{line} --no-balance", failed="balanced True, requested False")


def test_audit_train_and_score(diptych: Command, tmp_path: Path) -> None:
    """A scorer prints the same measures of other sessions everywhere."""
    features, later = small_features(tmp_path / "f", n=600), small_features(tmp_path / "l", n=120, seed=7)
    model, checks = "--model logistic-regression", "--check permuted-labels --check single-column --strict"
    done = diptych(f"intent audit {features.folder} {model} --step 3 --repeats 2 {checks}")
    found, out = LeakAudit.open(features.folder / "audit"), tmp_path / "scorer"
    done.shows(found.line(), f"next: diptych intent train {features.folder}")
    some = "--setting anonymous --step 5 --folds 2 --missed-cost 9"
    done = diptych(f"intent train {features.folder} --out {out} {model} {some}")
    opened = Scorer.open(out)
    done.shows("by cost", *(f"{cell['holdout']['average_precision']:.3f}" for cell in opened.about["cells"]))
    done.shows(f"next: diptych intent score {out} {out / 'example.json'}")
    card = (out / "model_card.md").read_text(encoding="utf-8")
    assert f"{len(found.findings)} findings, 0 alarms" in card
    done = diptych(f"intent score {out} {out}/example.json --out {tmp_path}/one.json")
    score = opened.score(json.loads((out / "example.json").read_text(encoding="utf-8")))
    done.shows(score.line(), score.reasons[0].label)
    assert json.loads((tmp_path / "one.json").read_text(encoding="utf-8")) == score.model_dump(mode="json")
    evaluated = diptych(f"intent evaluate {later.folder} --scorer {out} --out {tmp_path}/out --samples 0")
    scored = diptych(f"intent score {out} {later.folder} --out {tmp_path}/scores")
    scored.shows(f"every score in {tmp_path / 'scores' / 'scores.csv'}; the page is")
    (cell,), (other,) = (ScoredTable.open(tmp_path / name).about["cells"] for name in ("out", "scores"))
    lines = (tmp_path / "scores" / "scores.csv").read_text(encoding="utf-8").splitlines()
    assert cell["scored"] == len(later.population("anonymous", 5)) == len(lines) - 1
    assert cell["measures"]["f1_low"] is None
    for name in ("f1", "roc_auc", "average_precision", "brier", "cost"):
        assert cell["measures"][name] == other["measures"][name]
        for printed in (evaluated, scored):
            printed.shows(f"{cell['measures'][name]:.{4 if name == 'brier' else 3}f}")
    assert "F1" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    diptych(f"intent report {tmp_path}/scores")
    assert "nothing is fitted" in (tmp_path / "scores" / "report.html").read_text(encoding="utf-8")


PAGE = {"t": 1_728_000, "page_type": "home", "device": "pc", "channel": "paid"}


def test_lines_in_and_lines_out(
    diptych: Command, scorer: Scorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [{"id": "a", "events": [PAGE]}, {"id": "b", "start": 0, "device": "pc", "channel": "paid"}]
    lines = "".join(json.dumps(one) + "\n" for one in sessions)
    (tmp_path / "sessions.jsonl").write_text(lines, encoding="utf-8")
    done = diptych(f"intent score {scorer.folder} {tmp_path}/sessions.jsonl")
    answers = [json.loads(line) for line in done.out.splitlines()]
    expected = [(one["id"], scorer.score(one).p) for one in sessions]
    assert [(answer["id"], answer["p"]) for answer in answers] == expected
    monkeypatch.setattr("sys.stdin", io.StringIO(lines + "{\n"))
    out = tmp_path / "scores.jsonl"
    line = f"intent score {scorer.folder} -"
    done = diptych(f"{line} --out {out} --reasons 0", failed="1 of 3 answers are errors")
    done.shows("2 scores, 1 errors")
    written = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [answer.get("id") for answer in written] == ["a", "b", None]
    assert "not JSON" in written[2]["error"]
    events = [{**PAGE, "client_id": client} for client in "xyxx"]
    events[2] |= {"t": 1_728_005, "action": "query"}
    events[3] |= {"t": 1_728_009}
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(json.dumps(one) + "\n" for one in events)))
    answers = [json.loads(answer) for answer in diptych(f"{line} --stream").out.splitlines()]
    assert [(answer["client_id"], answer["line"]) for answer in answers] == [("x", 1), ("y", 2), ("x", 4)]
    assert "pages opened: 1; the model of step 0" in answers[0]["notes"][0]


def test_drift(diptych: Command, scorer: Scorer, features: FeatureTable, tmp_path: Path) -> None:
    later, out = small_features(tmp_path / "later", n=400, seed=9), tmp_path / "drift"
    line = f"intent drift {features.folder} {later.folder} --out {out}"
    done = diptych(f"{line} --scorer {scorer.folder}")
    found = Drift.open(out)
    done.shows(*found.lines(), "The scorer on the new sessions", "purchase")
    assert found.lines()[0] in (out / "report.html").read_text(encoding="utf-8")
    diptych(f"{line} --step 11", code=None)
    logs = [
        write_log(tmp_path / name, random_events(seed, visitors=9, sessions=90)).folder
        for seed, name in enumerate(("log", "later-log"))
    ]
    done = diptych("intent drift", *logs, "--step", 5, "--out", tmp_path / "logs")
    for log, name in zip(logs, ("old", "new"), strict=True):
        diptych(f"intent features {log} --out {tmp_path / name}")
        done.shows(f"{name}: {open_features(tmp_path / name).describe()}")
    diptych(f"intent drift {tmp_path}/old {tmp_path}/new --step 5 --out {tmp_path}/again")
    rows = Drift.open(tmp_path / "logs").rows
    assert Drift.open(tmp_path / "again").rows == rows
    assert {row["setting"] for row in rows} == {"anonymous", "identified"}


def test_whole_sessions_and_a_column_that_knows_the_outcome(diptych: Command, tmp_path: Path) -> None:
    table, features, scorer = (
        made_up_table(tmp_path / "uci.csv", 500),
        tmp_path / "features",
        tmp_path / "scorer",
    )
    line, model = f"intent features {table} --out {features}", "--model logistic-regression"
    done = diptych(line)
    assert done.err == ""
    rate = open_features(features).labels.mean()
    done.shows(f"uci-shoppers: 500 sessions, whole sessions, {rate:.1%} with a purchase")
    done.shows("left out: the column PageValues: it is the value of transactions", "rows are whole sessions")
    diptych(f"{line} --export", refused="whole sessions, without steps")
    diptych(f"{line} --keep-leaking").shows("warning: PageValues is computed from the outcome")
    audit = f"intent audit {features} {model} --repeats 2"
    diptych(f"{audit} --strict --out {tmp_path}/audit", failed="alarms")
    assert {(one.check, one.where) for one in LeakAudit.open(tmp_path / "audit").alarms} == {
        ("known-columns", "PageValues"),
        ("single-column", "all, step whole, PageValues"),
    }
    assert diptych(audit).out.count("ALARM") == 2
    diptych(f"intent train {features} --out {scorer} {model} --samples 0")
    card = (scorer / "model_card.md").read_text(encoding="utf-8")
    assert "alarm of the leak audit, known-columns PageValues" in card
    assert "| Month | at its start |" in card
    assert "| ExitRates | when it is over |" in card
    assert (Scorer.open(scorer).places, "no times" in card) == ([("all", -1)], True)
    done = diptych(f"intent score {scorer} {table} --out {tmp_path}/scores")
    done.shows("the last part, by models fitted without it")
    (tmp_path / "session.json").write_text('{"events": [{"t": 0}]}', encoding="utf-8")
    diptych(f"intent score {scorer} {tmp_path}/session.json", refused="this scorer is of whole sessions")
    other = made_up_table(tmp_path / "new.csv", 200, seed=1)
    diptych(f"intent drift {table} {other} --out {tmp_path}/whole").shows("at the session's end")
