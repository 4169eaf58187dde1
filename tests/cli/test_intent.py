"""A shop's log: ingest, describe, features, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import Command
from events import write_log
from imported import events_of
from intent_rows import cells_of, evaluation
from uci_sessions import made_up_table

from diptych.commerce.logs import Log
from diptych.commerce.purchase_intent.described import Description
from diptych.commerce.purchase_intent.features import open_features

LINES = """ts;cookie;what;ua
01.10.2019 10:00;a;Look;Firefox
01.10.2019 10:01;a;buy;Firefox
01.10.2019 10:01;a;buy;Firefox
01.10.2019 10:02;b;Look;Googlebot/2.1
01.10.2019 10:03;b;\x1b[31mzoom;Firefox
"""
MAPPING = '[columns]\nagent = "ua"\n[values.action]\npage = ["look"]\n'


def test_from_raw_lines_to_a_log_and_its_info(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(LINES)
    (tmp_path / "mapping.toml").write_text(MAPPING)
    done = diptych(
        f"intent ingest {tmp_path}/shop.csv --out {tmp_path}/log --mapping "
        f"{tmp_path}/mapping.toml --column time=ts --column client=cookie --column action=what "
        "--time-format '%d.%m.%Y %H:%M' --times-in Europe/Amsterdam --zone Europe/Amsterdam"
    )
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    kept = "2 events kept, of 5 rows that were read"
    for words in ("unknown action 1", "agent 1", "duplicate 1", kept):
        assert any(row.startswith(words) for row in rows), words
    assert "x1b[31mzoom 1" in done.out
    assert "\x1b" not in done.out
    assert "events by action: page 1, purchase 1" in rows
    assert "1 clients, 0 known visitors, 1 purchases" in rows
    assert "note: no device is known" in done.out
    assert rows[-1] == f"next: diptych intent describe {tmp_path}/log --out {tmp_path}/description"
    assert [event["t_us"] for event in events_of(Log.open(tmp_path / "log"))] == [
        1_569_916_800_000_000,
        1_569_916_860_000_000,
    ]
    info = diptych(f"info {tmp_path}/log")
    info.shows("rows_read", "purchases", "buckets")


def test_what_is_kept_is_chosen(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(
        "time,client,country,device\n"
        "2019-10-01,early,NL,pc\n2019-10-02,nl,NL,pc\n2019-10-02,be,BE,Desktop\n2019-10-02,de,DE,pc\n"
        "2019-10-02,nowhere,,pc\n2019-10-02,tv,NL,tv\n2019-10-03,late,NL,pc\n2019-10-02,nl,NL,pc\n"
    )
    chosen = "--country nl,BE --country FR --device pc --since 2019-10-02 --until 2019-10-03"
    diptych(f"intent ingest {tmp_path}/shop.csv --out {tmp_path}/log {chosen}")
    assert {event["client_id"] for event in events_of(Log.open(tmp_path / "log"))} == {"nl", "be"}
    more = "--keep-missing-country --keep-duplicates --keep-bots --most-events 1 --name shop"
    done = diptych(f"intent ingest {tmp_path}/shop.csv --out {tmp_path}/log {chosen} {more}")
    assert {event["client_id"] for event in events_of(Log.open(tmp_path / "log"))} == {"be", "nowhere"}
    assert "nl 2" in done.out  # the client with too many events is named
    assert Log.open(tmp_path / "log").name == "shop"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
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
    return write_log(tmp_path_factory.mktemp("described") / "log", events)


def test_tables_lines_and_what_to_do_next(log: Log, tmp_path: Path, diptych: Command) -> None:
    out = tmp_path / "description"
    done = diptych(f"intent describe {log.folder} --out {out}")
    lines = done.out.splitlines()
    (row,) = [line for line in lines if line.lstrip().startswith("purchase sessions ")]
    assert row.split() == ["purchase", "sessions", "<", "5"]
    assert any(line.lstrip().startswith("[bold]<b>x") for line in lines)
    (protocol,) = [line for line in lines if line.startswith("log: log, ")]
    assert "12 sessions by client, ended by more than 30 minutes" in protocol
    assert lines[-1].startswith(f"next: diptych intent features {log.folder} --out ")
    assert Description.open(out).about["options"]["ddof"] == 0
    assert (out / "tables" / "channels.csv").read_text().splitlines()[0].startswith("channel,sessions,")
    assert "[bold]&lt;b&gt;x" in (out / "report.html").read_text()


def test_some_statistics_and_other_sessions(log: Log, tmp_path: Path, diptych: Command) -> None:
    done = diptych(
        f"intent describe {log.folder} --out {tmp_path}/d --gap 0.05 --by visitor --ddof 1 --journey journey "
        "--memory-limit 300MB --statistic devices --statistic device-transitions"
    )
    found = Description.open(tmp_path / "d")
    assert sorted(found.unprotected) == ["device-transitions", "devices"]
    assert found.about["session_options"]["gap_minutes"] == 0.05
    assert (found.about["options"]["ddof"], found.about["options"]["journey"]) == (1, "journey")
    done.shows("20 sessions by visitor", "transitions: by journey")
    assert "queries" not in [line.split()[0] for line in done.out.splitlines() if line.strip()]


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


def test_from_a_log_to_features(diptych: Command, shop_log: Path, tmp_path: Path) -> None:
    out = tmp_path / "my features"
    done = diptych(f"intent features {shop_log} --out '{out}' --export --csv --feature previous-device")
    table = open_features(out)
    counts = table.about["counts"]
    done.shows(f"shop: {len(table)} sessions, 11 steps, {table.labels.mean():.1%} with a purchase")
    done.shows(f"{counts['too_short']} of {counts['sessions']} sessions are too short")
    rows = [line.split() for line in done.out.splitlines() if line.split()[:1] == ["10"]]
    few, some = (len(table.population(setting, 10)) for setting in table.settings)
    assert few < 5 <= some
    assert rows == [
        ["10", "<", "5", "–", "<", "5", str(some), "0.0", str(int(table.identified(10).sum()) - some)]
    ]
    assert f"next: diptych intent evaluate '{out}' --out '{out}-evaluation'" in done.out
    assert (out / "steps.parquet").is_file()
    lines = (out / "steps.csv").read_text("utf-8").splitlines()
    assert lines[0].startswith('"session_id","setting","step","label","page_type","channel"')
    assert len(lines) == 1 + sum(
        len(table.population(one, step)) for one in table.settings for step in table.steps
    )
    assert "previous-device" in [one.name for one in table.features("identified", "extended", 3)]
    done = diptych(f"intent features {shop_log} -o {tmp_path}/published --compat published --gap 60")
    done.shows("as published: none is left out")
    table = open_features(tmp_path / "published")
    assert table.compat == "published"
    assert table.about["session_options"]["gap_minutes"] == 60


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


def test_whole_sessions(diptych: Command, tmp_path: Path) -> None:
    file = made_up_table(tmp_path / "online.csv", 10)
    done = diptych(f"intent features {file} --out {tmp_path}/out")
    assert done.err == ""
    rate = open_features(tmp_path / "out").labels.mean()
    done.shows(f"uci-shoppers: 10 sessions, whole sessions, {rate:.1%} with a purchase")
    done.shows("left out: the column PageValues: it is the value of transactions")
    done.shows("rows are whole sessions")
    done = diptych(f"intent features {file} --out {tmp_path}/out --keep-leaking")
    assert "warning: PageValues is computed from the outcome" in done.out
    diptych(f"intent features {file} --out {tmp_path}/out --export", refused="whole sessions, without steps")


def test_an_evaluation_is_known_by_its_marker_and_has_nothing_to_hide(
    diptych: Command, tmp_path: Path
) -> None:
    found = evaluation(cells_of(("anonymous",), ("extended",), (5,), {"random-forest": "RF"}), "shop")
    folder = tmp_path / "evaluation"
    found.save(folder)
    for option in ("--hide-rates", "--least-count 9", "--log log"):
        diptych(f"intent report {folder} {option}", refused="has results.json")
        assert not (folder / "report.html").exists()
    done = diptych(f"intent report {folder}")
    done.shows(f"open {folder / 'report.html'}", "MB, no other files needed")
    assert ">Predicting purchases: shop</h1>" in (folder / "report.html").read_text("utf-8")


def test_a_description_with_its_log(diptych: Command, tmp_path: Path) -> None:
    from diptych.commerce.purchase_intent.described import describe
    from diptych.commerce.purchase_intent.sessions import sessionise

    events = [
        {"t": 90_000 * session + 60 * page, "client_id": f"c{session % 7}", "device": "pc" if session % 2 else "tv",
         "action": "page", "is_purchase": page == 3 and session % 3 == 0}
        for session in range(40)
        for page in range(4)
    ]  # fmt: skip
    log = write_log(tmp_path / "log", events)
    folder = tmp_path / "description"
    describe(sessionise(log), names=["overview", "channels"]).save(folder)
    diptych(f"intent report {folder} --log {log.folder}")
    page = (folder / "report.html").read_text("utf-8")
    assert '<dd class="value">40</dd><dd class="note">of 160 events</dd>' in page
    assert "35.00 %" in page
    assert "160 of 160 rows are events of the log." in page
    hidden = tmp_path / "hidden.html"
    diptych(f"intent report {folder} --hide-rates --out {hidden}")
    assert "35.00 %" not in hidden.read_text("utf-8")
    for option, rates in (("", True), ("--hide-rates", False)):  # the verb prints what its page shows
        done = diptych(f"intent describe {log.folder} --out {tmp_path}/described {option}")
        assert ("Rate, %" in done.out) is rates
        assert ("35.00 %" in (tmp_path / "described" / "report.html").read_text("utf-8")) is rates
        assert ("0.35" in (tmp_path / "described" / "tables" / "channels.csv").read_text()) is rates
