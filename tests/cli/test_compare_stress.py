"""``diptych compare`` of folders of ``diptych stress``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import Command
from stressed import LAST_WORD, REVERSED, Reader, painted

from diptych.analysis.perturbations import choose_perturbations
from diptych.evaluation.stress import stress

QUICK = ("--samples", 50, "--flips", 199)


@pytest.fixture(scope="module")
def stressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stressed")
    some: dict[str, Any] = {"samples": 20, "flips": 99, "split": "test", "seeds": (0, 1)}
    chosen = [LAST_WORD, REVERSED, *choose_perturbations(["brightness"])]
    stress(Reader("letters"), painted(), folder / "letters", perturbations=chosen, **some)
    stress(Reader("words"), painted(), folder / "words", perturbations=chosen[:2], **some)
    return folder


def test_two_models(diptych: Command, stressed: Path, tmp_path: Path) -> None:
    out = tmp_path / "comparison.json"
    some = ("compare", stressed / "letters", stressed / "words", *QUICK, "--out", out)
    done = diptych(*some)
    assert done.code == 0, done.err
    for text in (
        "rsum: words against letters",
        "nDCG_CM@10: words against letters",
        "difference (95 %)",
        "left out brightness (words: not run)",
        "words does not see reversed",
        "seeds 0, 1; compat none",
        "Holm over 4 comparisons",
        f"next: open {tmp_path / 'stress-comparison.html'}",
    ):
        assert text in done.out, text
    line = next(line for line in done.out.splitlines() if line.strip().startswith("reversed"))
    written = json.loads(out.read_text())
    row = next(row for row in written["rows"] if (row["name"], row["measure"]) == ("reversed", "rsum"))
    one = row["differences"]["words"]
    assert f"{one['first']['clean']:.1f} {one['first']['difference']:+.1f}" in line
    assert f"{one['difference']:+.1f} (0 to {one['high']:+.1f})" in line
    assert one["low"] == 0
    assert one["second"]["difference"] == 0
    page = (tmp_path / "stress-comparison.html").read_bytes()
    again = diptych(*some)
    assert again.out == done.out
    assert (tmp_path / "stress-comparison.html").read_bytes() == page


def test_measures_baseline_and_correction(diptych: Command, stressed: Path, tmp_path: Path) -> None:
    done = diptych(
        *("compare", stressed / "letters", stressed / "words", "--measures", "R@1,R@5", "--baseline", 1),
        *("--samples", 0, "--flips", 99, "--correction", "none", "--seed", 3, "--out", tmp_path / "c.json"),
    )
    assert done.code == 0, done.err
    assert "R@1: letters against words" in done.out
    assert "(95 %)" not in done.out
    assert "Holm" not in done.out
    written = json.loads((tmp_path / "c.json").read_text())
    assert written["baseline"] == "words"
    assert {row["measure"] for row in written["rows"]} == {"R@1", "R@5"}
    assert (tmp_path / "stress-c.html").is_file()


def test_a_model_against_itself(diptych: Command, stressed: Path, tmp_path: Path) -> None:
    shutil.copytree(stressed / "words", tmp_path / "twin")
    done = diptych(
        "compare", stressed / "words", tmp_path / "twin", *QUICK, "--out", tmp_path / "comparison.json"
    )
    assert done.code == 0, done.err
    rows = json.loads((tmp_path / "comparison.json").read_text())["rows"]
    assert {(row["differences"]["twin"]["difference"], row["differences"]["twin"]["p"]) for row in rows} == {
        (0, 1)
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--test", "t"), "compared by randomisation, not by t"),
        (("--evaluation", "test"), "--evaluation test is given for stress runs"),
        (("--measures", "MRR"), "letters was not stressed by MRR"),
        (("--baseline", 5), "baseline 5 of 2 runs"),
        (("--correction", "sidak"), "unknown correction 'sidak'"),
    ],
)
def test_usage_errors(
    options: tuple[object, ...], message: str, diptych: Command, stressed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "comparison.json"
    done = diptych("compare", stressed / "letters", stressed / "words", *options, "--out", out)
    assert done.code == 2
    assert message in done.err
    assert not list(tmp_path.iterdir())


def test_all_or_none_are_stress_runs(diptych: Command, stressed: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    out = ("--out", tmp_path / "comparison.json")
    done = diptych("compare", stressed / "letters", tmp_path / "run", *out)
    assert done.code == 2
    assert "is a stress run and" in done.err
    assert f"diptych stress {tmp_path / 'run'}" in done.err.replace("\n", " ")
    shutil.copytree(stressed / "words", tmp_path / "run" / "stress" / "painted-test")
    done = diptych("compare", stressed / "letters", tmp_path / "run", *out)
    assert f"give {tmp_path / 'run' / 'stress' / 'painted-test'}" in done.err.replace("\n", " ")
    alone = diptych("compare", stressed / "letters", *out)
    assert alone.code == 2
    assert "at least two" in alone.err


def test_help_has_an_example(diptych: Command) -> None:
    done = diptych("compare", "--help")
    assert done.code == 0
    assert "diptych compare stress/gru stress/bag-of-words" in done.out
