"""The papers' tables from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command

SMALL = (
    "model.width=16",
    "model.image.preprocessing={size = 32, resize = 32}",
    "model.text.word_width=8",
    "model.text.min_count=1",
    "batches.size=16",
    "stages.0.epochs=1",
    "stages.0.warmup=0",
)


def test_list_names_every_study(diptych: Command) -> None:
    from diptych.studies import STUDIES

    done = diptych("study", "list")
    assert done.code == 0
    for study in STUDIES:
        assert study.name in done.out
    assert "next: diptych study show" in done.out


def test_show_prints_the_table_and_judges_the_paper(
    diptych: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    done = diptych("study", "show", "convse.table-3")
    assert done.code == 0
    assert "483.6" in done.out
    assert "12 of 14 comparisons hold" in done.out
    assert "--rows" in done.out
    assert "note: The text at hand has no page numbers." in done.out
    assert "diptych study run convse.table-3 --quick" in done.out


def test_a_study_is_run_and_judged_on_other_data(
    diptych: Command, scenes_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    out = tmp_path / "out"
    settings = [part for value in SMALL for part in ("--set", value)]
    done = diptych(
        "study", "run", "metric-learning.table-1", "--data", scenes_folder, "--setting", "quick",
        "--rows", "1.1,1.3", "--seeds", "0", "--accelerator", "cpu", "--out", out, *settings,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "row 2 of 2: VSE++, NT-Xent: training" in done.out
    assert "Not a reproduction: on scenes" in done.out
    assert "353.8±1.6" in done.out  # printed beside ours
    assert f"next: diptych study verdict {out}" in done.out
    page = (out / "report.html").read_text()
    assert "Not a reproduction" in page
    assert "--rows 1.1,1.3" in page

    again = diptych("study", "verdict", out)
    assert again.code == 0
    assert "rightly counted" in again.out
    assert "(2)" in again.out
    one = diptych(
        "study", "verdict", out / "rows" / "vsepp-triplet" / "seed-0", "--out", tmp_path / "one.html"
    )
    assert one.code == 0
    assert (tmp_path / "one.html").is_file()

    counted = diptych(
        "study", "run", "metric-learning.table-2", "--data", scenes_folder, "--setting", "quick",
        "--rows", "1.1", "--seeds", "0", "--accelerator", "cpu", *settings,
        "--out", tmp_path / "metric-learning.table-2",
    )  # fmt: skip
    assert counted.code == 0, counted.err
    assert (tmp_path / "metric-learning.table-1" / "rows" / "vsepp-triplet" / "seed-0").is_dir()
    assert "C^B" in counted.out


@pytest.mark.parametrize("columns", ["80", "160"])
def test_no_number_is_cut(diptych: Command, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """Ten columns have no room on a narrow line: the rest of them follow below."""
    monkeypatch.setenv("COLUMNS", columns)
    done = diptych("study", "show", "d2s.table-3.6")
    assert done.code == 0, done.err
    for number in ("13277", "9739", "183.42", "193.46", ">700.00", "D2S, HNSW"):
        assert number in done.out
    assert "search.engine" in " ".join(done.out.split()) or columns == "80"  # what sets a row apart
    assert max(len(line) for line in done.out.splitlines() if "13277" in line) <= int(columns)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "metric-learning.table-9"), "unknown study"),
        (("run", "metric-learning.table-1"), "no data given"),
        (("run", "metric-learning.table-1", "--quick", "--setting", "paper"), "--quick and --setting paper"),
        (("run", "metric-learning.table-1", "--quick", "--rows", "9.9"), "unknown row"),
        (("run", "metric-learning.table-1", "--quick", "--seeds", "a"), "are not whole numbers"),
        (("run", "metric-learning.table-1", "--quick", "--seeds", "-1"), "numbers from 0"),
        (("verdict", "nowhere"), "holds nothing that a study has measured"),
    ],
)
def test_bad_input_is_a_usage_error(
    diptych: Command, arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = diptych("study", *arguments)
    assert done.code == 2
    assert said in done.err.replace("\n", " ")
