"""``diptych granularity``: one collection, two in pairs, files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command

from diptych.analysis.granularity import Granularity, compare_granularity
from diptych.analysis.granularity.result import GranularityComparison


def test_two_collections_are_compared(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = diptych(
        "granularity", f"coarse={scenes_folder}", f"finer={scenes_folder}",
        "--reader-option", "finer.finer=2", "--out", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    coarse, finer = (Granularity.open(out / name) for name in ("coarse", "finer"))
    assert list(coarse.image_ids) == list(finer.image_ids)
    assert GranularityComparison.open(out / "comparison.json") == compare_granularity(coarse, finer)
    said = json.loads((out / "comparison.json").read_text(encoding="utf-8"))["content"]
    assert said["paired"] == 16
    words = next(one for one in said["differences"] if one["name"] == "words")
    assert words["difference"]["value"] == pytest.approx(
        finer.column("words").mean() - coarse.column("words").mean()
    )
    assert words["difference"]["low"] > 0
    assert "finer less coarse" in done.out
    assert "paired: 16 images with the captions of both" in done.out
    assert f"{finer.feature('words').mean:.2f}" in done.out
    assert "language scenes: scenes tagger" in done.out
    assert f"next: open {out / 'report.html'}" in done.out
    assert "<h1>Granularity of coarse and finer</h1>" in (out / "report.html").read_text(encoding="utf-8")


def test_one_collection_as_published(diptych: Command, scenes_folder: Path) -> None:
    done = diptych(
        "granularity", scenes_folder, "--compat", "published", "--feature", "words", "--samples", 0
    )
    assert done.code == 0, done.err
    assert "what lies between single blanks" in done.out
    assert "as published" in done.out
    assert "adjectives" not in done.out
    assert "least granular" in done.out
    assert "scenes test: 16 images, 80 captions" in done.out
    assert "no intervals" in done.out
    assert "--out FOLDER" in done.out


def test_all_splits_and_first_captions(diptych: Command, scenes_folder: Path) -> None:
    done = diptych(
        "granularity",
        scenes_folder,
        "--split",
        "all",
        "--captions",
        "first",
        "--feature",
        "characters",
        "-n",
        0,
    )
    assert done.code == 0, done.err
    assert "scenes all: 80 images, 80 captions" in done.out
    assert "least granular" not in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--feature", "wrods"), 2, "did you mean 'words'"),
        (("--compat", "publish"), 2, "unknown compat"),
        (("--language", "none"), 2, "needs a part-of-speech tagger"),
        (("--split", "tset"), 2, "did you mean 'test'"),
        (("--captions", "last"), 2, "last"),
    ],
)
def test_what_cannot_be_is_said(
    diptych: Command, scenes_folder: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = diptych("granularity", scenes_folder, *arguments)
    assert done.code == code
    assert message in done.err


def test_which_collections(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    done = diptych("granularity", scenes_folder, scenes_folder)
    assert (done.code, "both collections are called 'scenes'" in done.err) == (2, True)
    done = diptych("granularity", *(f"{name}={scenes_folder}" for name in "abc"))
    assert (done.code, "3 collections are given" in done.err) == (2, True)
    done = diptych("granularity", f"a={scenes_folder}", f"b={scenes_folder}", "--pairing", "captions")
    assert (done.code, "unknown pairing" in done.err) == (2, True)
    (tmp_path / "out" / "scenes").mkdir(parents=True)
    (tmp_path / "out" / "scenes" / "thesis.txt").write_text("years of work")
    done = diptych("granularity", scenes_folder, "--out", tmp_path / "out")
    assert (done.code, "holds other things" in done.err) == (2, True)


def test_the_study_of_table_5_1(diptych: Command, tmp_path: Path, scenes_folder: Path) -> None:
    done = diptych(
        "study", "run", "brittleness.table-5.1", "--data", f"a={scenes_folder}", "--data", f"a-fg={scenes_folder}",
        "--reader-option", "a-fg.finer=1", "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "a-fg less a" in done.out
    assert "Fine-grained captions have more" in done.out
