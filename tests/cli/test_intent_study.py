"""Studies of a shop's log from the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from commands import Command

from diptych.studies import intent_rows

pytest.importorskip("duckdb")


def test_a_quick_study_of_a_generated_log(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    small = replace(intent_rows.COUNTING["quick"], log={"visitors": 150})
    monkeypatch.setitem(intent_rows.COUNTING, "quick", small)
    done = diptych("study", "run", "intent.table-6.2", "--quick")
    assert done.code == 0, done.err
    assert "scenes: importing events" in done.out
    assert "Not a reproduction: on scenes" in done.out
    assert "71.07" in done.out  # printed beside ours
    assert "seeds" not in done.out
    assert "by hand: diptych intent describe" in done.out
    assert "next: diptych study verdict studies/intent.table-6.2" in done.out
    page = Path("studies/intent.table-6.2/report.html").read_text()
    assert "diptych study run intent.table-6.2 --quick" in page
    assert "48.27" not in page

    beside = diptych("study", "run", "intent.figure-6.3", "--quick")
    assert beside.code == 0, beside.err
    assert "scenes: " not in beside.out.replace("on scenes: ", "")  # nothing was made again

    again = diptych("study", "verdict", "studies/intent.table-6.2")
    assert again.code == 0
    assert "paid and organic" in again.out


def test_raw_events_are_imported_first(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diptych.data.scenes import make_shop_log

    monkeypatch.setenv("COLUMNS", "160")
    raw = make_shop_log(tmp_path / "raw", visitors=60)
    done = diptych(
        "study", "run", "intent.table-6.1", "--data", raw, "--reader", "shop-log", "--reader-option", "name=mine",
        "--reader-option", "zone=UTC", "--set", "measure.gap=20", "--out", tmp_path / "studies" / "here",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "on mine: " in done.out
    assert "(UTC)" in done.out
    assert "ended by more than 20 minutes" in done.out
    assert (tmp_path / "studies" / "intent.logs").is_dir()


def test_features_are_held_against_the_thesis_at_once(diptych: Command, tmp_path: Path) -> None:
    done = diptych("study", "run", "intent.table-6.7", "--out", tmp_path / "here")
    assert done.code == 0, done.err
    assert "cells: 45 reproduced" in done.out
    shown = diptych("study", "show", "intent.table-6.7")
    assert (
        "next: diptych study run intent.table-6.7 --quick, or: diptych study run intent.table-6.7\n"
        in shown.out
    )


def test_a_figure_without_numbers_is_no_table(diptych: Command) -> None:
    shown = diptych("study", "show", "intent.figure-6.7")
    assert shown.code == 0, shown.err
    said = " ".join(shown.out.split())
    assert (
        "no number is printed (thesis-shop anonymous sessions of 12 pages and more: 22,982 sessions" in said
    )
    assert "F1@10" not in said
    assert "6.74 % more for k-nearest neighbours at step 0" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a log with --data"),
        (("--data", "a", "--data", "b"), "is of one log"),
        (("--data", "a", "--images", "b"), "--images: intent.table-6.1 is of a shop's log"),
        (("--data", "a", "--skip-bad-images"), "leave --skip-bad-images out"),
        (("--data", "nowhere"), "nowhere is not there"),
        (("--data", ".", "--reader-option", "colour=red"), "unknown option of an import 'colour'"),
        (("--quick", "--regions", "a.npy"), "--regions"),
        (("--quick", "--set", "model.width=3"), "about a training"),
    ],
)
def test_what_a_log_does_not_have(
    diptych: Command, arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = diptych("study", "run", "intent.table-6.1", *arguments)
    assert done.code in (1, 2)
    assert said in done.err.replace("\n", " ")
