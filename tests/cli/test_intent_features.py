from __future__ import annotations

import csv
from pathlib import Path

import pytest
from commands import Command
from events import write_log
from intent_logs import random_events

from diptych.commerce.purchase_intent.features import open_features


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("cli") / "shop", random_events(0)).folder


def test_from_a_log_to_features(diptych: Command, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "my features"
    done = diptych("intent", "features", log, "--out", out, "--export", "--feature", "previous-device")
    assert (done.code, done.err) == (0, "")
    table = open_features(out)
    counts = table.about["counts"]
    assert f"shop: {len(table)} sessions, 11 steps, {table.labels.mean():.1%} with a purchase" in done.out
    assert (
        f"of {counts['sessions']} sessions {counts['too_short']} are too short (fewer than 12 pages); "
        f"{len(table)} are left" in done.out
    )
    rows = [line.split() for line in done.out.splitlines() if line.split()[:1] == ["10"]]
    cells = {row["setting"]: row for row in table.about["populations"] if row["step"] == 10}
    assert rows == [
        [
            "10",
            *(
                text
                for one in (cells["anonymous"], cells["identified"])
                for text in (
                    str(one["sessions"]),
                    f"{one['purchases'] / one['sessions']:.1%}",
                    str(one["bought_too_early"]),
                )
            ),
        ]
    ]
    assert f"next: diptych intent evaluate '{out}' --out '{out}-evaluation'" in done.out
    assert (out / "steps.parquet").is_file()
    assert "previous-device" in [one.name for one in table.features("identified", "extended", 3)]


def test_as_published(diptych: Command, log: Path, tmp_path: Path) -> None:
    done = diptych("intent", "features", log, "-o", tmp_path / "out", "--compat", "published", "--gap", "60")
    assert done.code == 0
    assert "as published: nobody is left out" in done.out
    table = open_features(tmp_path / "out")
    assert table.compat == "published"
    assert table.about["session_options"]["gap_minutes"] == 60


def test_a_log_without_a_purchase(diptych: Command, tmp_path: Path) -> None:
    folder = write_log(
        tmp_path / "log", [{"t": 10 * number, "page_type": "home"} for number in range(12)]
    ).folder
    done = diptych("intent", "features", folder, "--out", tmp_path / "out")
    assert done.code == 0
    assert "no session ends in a purchase" in done.out
    assert "log: 1 sessions, 11 steps, 0.0% with a purchase" in done.out


def test_whole_sessions(diptych: Command, tmp_path: Path) -> None:
    from diptych.commerce.purchase_intent.features.whole import UCI_SHOPPERS

    file = tmp_path / "online.csv"
    columns = [*UCI_SHOPPERS.columns, UCI_SHOPPERS.label]
    with open(file, "w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows([["1"] * len(columns), ["0"] * len(columns)])
    done = diptych("intent", "features", file, "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    assert "uci-shoppers: 2 sessions, whole sessions, 50.0% with a purchase" in done.out
    assert "the column PageValues is left out: it is the value of transactions" in done.out
    assert "note: rows are whole sessions" in done.out
    done = diptych("intent", "features", file, "--out", tmp_path / "out", "--keep-leaking")
    assert "warning: PageValues is kept" in done.out
    done = diptych("intent", "features", file, "--out", tmp_path / "out", "--export")
    assert done.code == 2
    assert "whole sessions, without steps" in done.err


def test_what_cannot_be_asked_for(diptych: Command, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments, code, said in (
        ((tmp_path / "nowhere",), 1, "holds no log"),
        ((log, "--keep-leaking"), 2, "is for tables of whole sessions"),
        ((log, "--compat", "thesis"), 2, "unknown compat 'thesis'"),
        ((log, "--feature", "colour"), 2, "unknown feature 'colour'"),
        ((log, "--engine", "pandas"), 2, "unknown engine 'pandas'"),
        ((log, "--by", "household"), 2, "household"),
    ):
        done = diptych("intent", "features", *arguments, "--out", out)
        assert (done.code, said in done.err) == (code, True), (arguments, done)
    assert not out.exists()
