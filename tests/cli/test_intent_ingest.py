"""``diptych intent ingest``."""

from __future__ import annotations

from pathlib import Path

from commands import Command
from imported import events_of

from diptych.data.logs import Log

LINES = """ts;cookie;what;ua
01.10.2019 10:00;a;Look;Firefox
01.10.2019 10:01;a;buy;Firefox
01.10.2019 10:01;a;buy;Firefox
01.10.2019 10:02;b;Look;Googlebot/2.1
01.10.2019 10:03;b;\x1b[31mzoom;Firefox
"""
MAPPING = '[columns]\nagent = "ua"\n[values.action]\npage = ["look"]\n'


def test_from_raw_lines_to_a_log_and_what_info_says_of_it(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(LINES)
    (tmp_path / "mapping.toml").write_text(MAPPING)
    done = diptych(
        *(
            "intent",
            "ingest",
            tmp_path / "shop.csv",
            "--out",
            tmp_path / "log",
            "--mapping",
            tmp_path / "mapping.toml",
        ),
        *("--column", "time=ts", "--column", "client=cookie", "--column", "action=what"),
        *("--time-format", "%d.%m.%Y %H:%M", "--times-in", "Europe/Amsterdam", "--zone", "Europe/Amsterdam"),
    )
    assert done.code == 0, done.err
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    for says in (
        "unknown action 1",
        "agent 1",
        "duplicate 1",
        "nothing was dropped by: unreadable row, unreadable time, no client, twin, too many events",
        "2 events kept, of 5 rows that were read",
    ):
        assert any(row.startswith(says) for row in rows), says
    assert "?[31mzoom 1" in done.out
    assert "\x1b" not in done.out
    assert "events by action: page 1, purchase 1" in rows
    assert "1 clients, 0 known visitors, 1 purchases" in rows
    assert "note: no device is known" in done.out
    assert rows[-1] == f"next: diptych intent describe {tmp_path / 'log'}"
    assert [event["t_us"] for event in events_of(Log.open(tmp_path / "log"))] == [
        1_569_916_800_000_000,
        1_569_916_860_000_000,
    ]
    info = diptych("info", tmp_path / "log")
    assert info.code == 0
    assert "shop log" in info.out
    assert "5, of which 3 were dropped" in info.out


def test_what_is_kept_is_chosen(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(
        "time,client,country,device\n"
        "2019-10-01,early,NL,pc\n2019-10-02,nl,NL,pc\n2019-10-02,be,BE,Desktop\n2019-10-02,de,DE,pc\n"
        "2019-10-02,nowhere,,pc\n2019-10-02,tv,NL,tv\n2019-10-03,late,NL,pc\n2019-10-02,nl,NL,pc\n"
    )
    options = [
        "--country",
        "nl,BE",
        "--country",
        "FR",
        "--device",
        "pc",
        "--since",
        "2019-10-02",
        "--until",
        "2019-10-03",
    ]
    diptych("intent", "ingest", tmp_path / "shop.csv", "--out", tmp_path / "log", *options)
    assert {event["client_id"] for event in events_of(Log.open(tmp_path / "log"))} == {"nl", "be"}
    more = [
        "--keep-missing-country",
        "--keep-duplicates",
        "--keep-bots",
        "--most-events",
        "1",
        "--name",
        "shop",
    ]
    done = diptych("intent", "ingest", tmp_path / "shop.csv", "--out", tmp_path / "log", *options, *more)
    assert {event["client_id"] for event in events_of(Log.open(tmp_path / "log"))} == {"be", "nowhere"}
    assert "nl 2" in done.out  # the client with too many events is named
    assert Log.open(tmp_path / "log").name == "shop"


def test_mistakes_exit_with_two_and_say_the_way_out(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text("when,who\n1,2\n")
    for options, says in (
        ([], "recognises shop.csv, with columns when, who"),
        (["--column", "who=who"], "targets: time (when, required); client"),
        (["--column", "time=when"], "columns of shop.csv: when, who"),
        (["--time-format", "iso"], "--time-format is of your own columns"),
        (["--country", " ,"], "--country names none"),
        (["--country", "NL,Holland"], "no country 'Holland'"),
        (["--format", "rees"], "did you mean 'rees46'?"),
        (
            ["--column", "time=when", "--column", "client=who", "--zone", "Europe/Amsterdm"],
            "did you mean Europe/Amsterdam",
        ),
    ):
        done = diptych("intent", "ingest", tmp_path / "shop.csv", "--out", tmp_path / "log", *options)
        assert (done.code, says in done.err) == (2, True), done.err
    done = diptych("intent", "ingest", tmp_path / "none.csv", "--out", tmp_path / "log")
    assert (done.code, "none.csv does not exist" in done.err) == (1, True)
    assert not (tmp_path / "log").exists()
