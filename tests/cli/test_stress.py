"""``diptych stress``: from a run to a table, a folder and a page; and the page once more."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from commands import Command

from diptych.evaluation.stress import StressResult

QUICK = ("--seeds", 2, "--samples", 50, "--flips", 99)


def test_a_run_is_stressed_and_goes_on(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "stressed"
    some = ("stress", run_folder, "--perturb", "typos,word order", "--perturb", "blur", *QUICK, "--out", out)
    done = diptych(*some)
    assert done.code == 0, done.err
    for text in (
        "typos: a slip of the keyboard",
        "word order: the same words in another order",
        "character-swap",
        "difference (95 %)",
        "80 over a gallery of 16 pictures of the split",
        "seeds 0, 1; compat none; language scenes",
        "Holm over",
        f"next: open {out / 'report.html'}",
    ):
        assert text in done.out
    found = StressResult.open(out)
    assert found.row("blur").direction == "i2t"
    assert found.row("shuffle-all-words").queries == 80
    assert found.left_out == {}
    with gzip.open(out / "conditions" / "character-swap-0.jsonl.gz", "rt") as lines:
        first = json.loads(next(lines))
    assert set(first) == {"id", "text"}
    before = (out / "report.html").read_bytes()
    again = diptych(*some)
    assert again.code == 0, again.err
    opened = f"{out} held this run, finished, of the same content: opened, not run again\n"
    assert opened in again.out
    assert again.out.replace(opened, "") == done.out
    assert (out / "report.html").read_bytes() == before


def test_the_page_is_made_once_more(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "stressed"
    done = diptych("stress", run_folder, "--perturb", "character-swap", *QUICK, "--out", out)
    assert done.code == 0, done.err
    before = (out / "report.html").read_bytes()
    (out / "report.html").unlink()
    done = diptych("report", out)
    assert done.code == 0, done.err
    assert (out / "report.html").read_bytes() == before
    assert diptych("report", out, "--split", "val").code == 2


def test_what_needs_a_language_is_left_out_with_a_line_or_refused(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "stressed"
    none = ("--language", "none", *QUICK, "--out", out)
    done = diptych("stress", run_folder, "--perturb", "synonyms,distraction", *none)
    assert done.code == 0, done.err
    assert "left out synonym-noun: " in done.out
    assert "left out synonym-adjective: " in done.out
    assert "synonym-noun" in (out / "report.html").read_text()
    done = diptych("stress", run_folder, "--perturb", "synonym-noun", *none)
    assert done.code == 2
    assert "synonym-noun needs a" in done.err


def test_other_data_by_its_place_and_options_by_name(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "stressed"
    done = diptych(
        *("stress", run_folder / "best", scenes_folder, "--split", "val", "--perturb", "occlusion,blur"),
        *("--set", "blur.severity=1", "--gallery", "all", *QUICK, "--out", out),
    )
    assert done.code == 0, done.err
    assert "80 over a gallery of 80 pictures of the whole collection" in done.out
    found = StressResult.open(out)
    assert found.protocol["split"] == "val"
    assert found.row("blur").options["severity"] == 1
    assert found.row("occlusion").queries == 16


def test_without_out_a_run_holds_its_own(diptych: Command, run_folder: Path) -> None:
    done = diptych("stress", run_folder, "--perturb", "distraction-true", *QUICK)
    assert done.code == 0, done.err
    folders = list((run_folder / "stress").iterdir())
    assert [folder.name.rpartition("-")[2] for folder in folders] == ["test"]
    assert (folders[0] / "report.html").is_file()
    assert not (folders[0] / "embeddings").exists()  # those of the run's evaluation


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--perturb", "nonsense"), "unknown perturbation 'nonsense'"),
        (("--perturb", ","), "no perturbation was asked for"),
        (("--set", "blur=1"), "is not NAME.KEY=VALUE"),
        (("--perturb", "typos", "--set", "blur.radius=1"), "unknown perturbation with options 'blur'"),
        (("--gallery", "none"), "gallery is 'none'"),
        (("--compat", "old"), "compat is 'old'"),
        (("--measure", "medr"), "medr is no mean"),
        (("--split", "nowhere"), "'nowhere'"),
        (("--language", "dutch"), "unknown language 'dutch'"),
        (("COLLECTION", "--data", "DATA"), "both COLLECTION and --data DATA"),
    ],
)
def test_usage_errors(
    options: tuple[str, ...], message: str, diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    done = diptych("stress", run_folder, *options, "--out", tmp_path / "out")
    assert done.code == 2
    assert message in done.err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_a_name_needs_somewhere_to_write(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    done = diptych("stress", "hf:some/model", "--data", scenes_folder)
    assert done.code == 2
    (tmp_path / "stress.json").write_text('{"format": 2, "state": "running"}')
    done = diptych("report", tmp_path)
    assert done.code == 1
    assert "not finished" in done.err
