from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import Command
from events import write_log

from diptych.commerce.purchase_intent.statistics import Description
from diptych.data.logs import Log


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
    done = diptych("intent", "describe", log.folder, "--out", out)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    (row,) = [line for line in lines if line.lstrip().startswith("purchase sessions ")]
    assert row.split() == ["purchase", "sessions", "4"]
    # A name from the log is printed as it is, not read as markup.
    assert any(line.lstrip().startswith("[bold]<b>x") for line in lines)
    (protocol,) = [line for line in lines if line.startswith("log (")]
    assert "12 sessions by client, ended by more than 30 minutes" in protocol
    assert lines[-1].startswith(f"next: diptych intent features {log.folder} --out ")
    assert Description.open(out).about["options"]["ddof"] == 0
    assert (out / "tables" / "channels.csv").read_text().splitlines()[0].startswith("channel,sessions,")
    assert "[bold]&lt;b&gt;x" in (out / "report.html").read_text()


def test_some_statistics_and_other_sessions(log: Log, tmp_path: Path, diptych: Command) -> None:
    options = (
        "--gap",
        "0.05",
        "--by",
        "visitor",
        "--ddof",
        "1",
        "--journey",
        "journey",
        "--memory-limit",
        "300MB",
    )
    wanted = ("--statistic", "devices", "--statistic", "device-transitions")
    done = diptych("intent", "describe", log.folder, "--out", tmp_path / "d", *options, *wanted)
    assert done.code == 0, done.err
    found = Description.open(tmp_path / "d")
    said = {"about": found.about, "tables": found.tables}
    assert sorted(said["tables"]) == ["device-transitions", "devices"]
    assert said["about"]["session_options"]["gap_minutes"] == 0.05
    assert said["about"]["options"] == said["about"]["options"] | {"ddof": 1, "journey": "journey"}
    # With three seconds between them, a purchase is a session of its own.
    assert "20 sessions by visitor" in done.out
    assert "transitions by journey" in done.out
    assert "queries" not in [line.split()[0] for line in done.out.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--by", "home"), 2, "unknown session key 'home'"),
        (("--engine", "sparc"), 2, "did you mean 'spark'?"),
        (("--journey", "trip"), 2, "unknown journey 'trip'"),
        (("--ddof", "3"), 2, "ddof is 3"),
        (("--gap", "0"), 2, "gap is 0 minutes"),
        (("--statistic", "chanels"), 2, "did you mean 'channels'?"),
        (("--memory-limit", "lots"), 2, "memory limit is 'lots'"),
        (("--by", "given"), 2, "brings no sessions of its own"),
    ],
)
def test_what_cannot_be(
    log: Log, tmp_path: Path, diptych: Command, options: tuple[str, ...], code: int, said: str
) -> None:
    done = diptych("intent", "describe", log.folder, "--out", tmp_path / "d", *options)
    assert done.code == code
    assert said in done.err
    assert not (tmp_path / "d").exists()


def test_no_log_and_no_room(log: Log, tmp_path: Path, diptych: Command) -> None:
    done = diptych("intent", "describe", tmp_path, "--out", tmp_path / "d")
    assert (done.code, "holds no log" in done.err) == (1, True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    done = diptych("intent", "describe", log.folder, "--out", tmp_path / "mine")
    assert (done.code, "holds other things" in done.err) == (2, True)
    done = diptych("intent", "describe", log.folder, "--out", log.folder / "description")
    assert (done.code, "which the next import replaces" in done.err) == (2, True)
    assert not (log.folder / "description").exists()


def test_a_log_without_visitors_has_no_empty_table(tmp_path: Path, diptych: Command) -> None:
    log = write_log(tmp_path / "log", [{"t": 0, "device": "\x1b[31mred"}])
    done = diptych("intent", "describe", log.folder, "--out", tmp_path / "d")
    assert done.code == 0, done.err
    headers = [line.split()[0] for line in done.out.splitlines() if line.strip()]
    assert "visitors" not in headers
    assert {"what", "channel", "device", "sessions"} <= set(headers)
    assert "no visitor is known anywhere" in done.out
    assert "\x1b" not in done.out


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
