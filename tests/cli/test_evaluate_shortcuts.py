"""A run with shortcuts through the command line: trained, evaluated in both conditions, reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Command

SHORTCUTS = ("--set", "shortcuts.setup=unique", "--set", "shortcuts.digit_size=5")


def save_digits(file: Path, shade: int) -> None:
    """A file of ten digits, one picture each."""
    pictures = np.full((10, 28, 28), shade, dtype=np.uint8)
    pictures[:, ::3] = 255
    np.savez(file, x_train=pictures, y_train=np.arange(10))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a file of digits in it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    save_digits(tmp_path / "here" / "digits.npz", 100)
    return tmp_path / "here"


def test_both_conditions_from_anywhere(
    diptych: Command, recipe_file: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = diptych("train", recipe_file, "--out", "run", *SHORTCUTS, "--set", "shortcuts.digits=digits.npz")
    assert done.code == 0, done.err
    assert diptych("report", "run").code == 0
    assert "rsum with shortcuts" not in (folder / "run" / "report.html").read_text()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")  # the file of digits was named by a relative path
    done = diptych("evaluate", "../here/run", "--samples", 0)
    assert done.code == 0, done.err
    assert "with the shortcuts of training: a unique number on every image" in done.out
    assert (folder / "run" / "evaluation" / "scenes-test-with-shortcuts" / "evaluation.json").is_file()
    assert diptych("report", "../here/run").code == 0
    assert "rsum with shortcuts" in (folder / "run" / "report.html").read_text()


def test_out_holds_everything(diptych: Command, recipe_file: Path, folder: Path) -> None:
    assert diptych("train", recipe_file, "--out", "run", *SHORTCUTS).code == 0
    before = {path for path in folder.iterdir()}
    assert diptych("evaluate", "run", "--out", "out", "--samples", 0).code == 0
    assert {path for path in folder.iterdir()} - before == {folder / "out"}
    assert {path.name for path in (folder / "out").iterdir()} == {"embeddings", "evaluation"}


def test_other_digits_than_those_of_training_are_refused(
    diptych: Command, recipe_file: Path, folder: Path
) -> None:
    named = ("--set", "shortcuts.digits=digits.npz")
    assert diptych("train", recipe_file, "--out", "run", *SHORTCUTS, *named).code == 0
    save_digits(folder / "digits.npz", 50)
    done = diptych("evaluate", "run", "--samples", 0)
    assert done.code == 1
    assert "the run was trained on digits" in done.err
    assert "rsum" in done.out, "what needs no digits is measured and said first"
    done = diptych("audit", "run", "--probe", "linear", "--samples", 0)
    assert done.code == 1
    assert "the run was trained on digits" in done.err


def test_a_run_without_shortcuts_has_one_table(diptych: Command, run_folder: Path) -> None:
    done = diptych("evaluate", run_folder, "--samples", 0)
    assert done.code == 0, done.err
    assert "shortcuts" not in done.out


def test_a_section_is_taken_out_by_an_empty_value(diptych: Command, recipe_file: Path, folder: Path) -> None:
    (folder / "cached.toml").write_text(
        recipe_file.read_text().replace('train = ["*"]', "") + "\n[features]\nviews = 0\n"
    )
    refused = diptych("train", "cached.toml", "--out", "run", *SHORTCUTS)
    assert "leave [features] out" in refused.err
    done = diptych("train", "cached.toml", "--out", "run", *SHORTCUTS, "--set", "features=")
    assert done.code == 0, done.err


def test_counts_say_that_they_are_without_shortcuts(
    diptych: Command, recipe_file: Path, folder: Path
) -> None:
    assert diptych("train", recipe_file, "--out", "run", *SHORTCUTS).code == 0
    assert "shortcuts none, trained with unique" in diptych("cocos", "run").out
