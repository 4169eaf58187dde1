"""``diptych audit`` on runs, on an encoder, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

from commands import Command

from diptych.analysis.information import Audit
from diptych.core.artifact import encode


def test_a_run(diptych: Command, run_folder: Path) -> None:
    done = diptych("audit", run_folder, "--samples", 20)
    assert done.code == 0, done.err
    for words in (
        "linear probe (95 %)",
        "mlp probe (95 %)",
        "bits there",
        "shared",
        "specific",
        "unstated",
        "task-relevant",
    ):
        assert words in done.out, words
    assert "images 48 to train probes, 16 to choose, 16 to test" in done.out
    assert "fewer than 50 training rows per class" in done.out
    assert "Only 16 validation images to choose penalties" in " ".join(done.out.split())
    assert "compare one kind between runs, not two kinds within one" in " ".join(done.out.split())
    assert f"next: open {run_folder / 'audit' / 'report.html'}" in done.out
    found = Audit.open(run_folder / "audit" / "audit.json")
    assert list(found.protocol.probes) == ["linear", "mlp"]
    shared = found.held("without", "image", "shared", "linear")
    assert shared is not None
    assert shared.show() in done.out


def test_several_runs_side_by_side(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run_folder, other)
    done = diptych(
        "audit",
        run_folder,
        other,
        "--probe",
        "linear",
        "--samples",
        0,
        "--seed",
        3,
        "--out",
        tmp_path / "out",
    )
    assert done.code == 0, done.err
    assert f"{run_folder.name} linear" in done.out
    assert "other linear" in done.out
    first, second = (
        Audit.open(tmp_path / "out" / name / "audit" / "audit.json") for name in (run_folder.name, "other")
    )
    assert encode(first, {}) == encode(second, {})
    assert first.protocol.seed == 3
    assert (tmp_path / "out" / "other" / "audit" / "report.html").is_file()


def test_an_encoder_on_data(diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path) -> None:
    done = diptych(
        "audit", run_folder / "best", "--data", scenes_folder, "--probe", "linear", "--samples", 0, "--most", 30,
        "--out", tmp_path,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "images 30 to train probes" in done.out
    assert Audit.open(tmp_path / "audit" / "audit.json").protocol.most == 30


def test_a_run_with_shortcuts_on_other_data(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    carrying = tmp_path / "carrying"
    shutil.copytree(run_folder, carrying, ignore=shutil.ignore_patterns("audit"))
    recipe = carrying / "recipe.toml"
    recipe.write_text(
        f'{recipe.read_text(encoding="utf-8")}\n[shortcuts]\nsetup = "unique"\ndigits = "drawn"\ndigit_size = 5\n',
        encoding="utf-8",
    )
    done = diptych("audit", carrying, "--data", scenes_folder, "--probe", "linear", "--samples", 5)
    assert done.code == 0, done.err
    assert not (carrying / "audit" / "audit.json").exists(), "that is of the run's own data"
    found = Audit.open(carrying / "audit" / scenes_folder.name / "audit.json")
    assert list(found.conditions) == ["without", "with"]
    assert found.held("with", "image", "shortcut", "linear") is not None


def test_what_is_refused(diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path) -> None:
    refused = diptych("audit", run_folder, "--probe", "tree")
    assert refused.code == 2
    assert "unknown probe 'tree'" in refused.err
    refused = diptych("audit", run_folder, "--data", scenes_folder, "--scenes")
    assert refused.code == 2
    assert "both --data and --scenes" in refused.err
    refused = diptych("audit", run_folder, run_folder)
    assert refused.code == 2
    assert "given twice" in refused.err
    refused = diptych("audit", run_folder / "best", "--out", tmp_path)
    assert refused.code == 2
    assert "no data given" in refused.err
    for option, value in (("--images", tmp_path), ("--reader", "folder"), ("--reader-option", "a=1")):
        refused = diptych("audit", run_folder, option, value)
        assert refused.code == 2
        assert f"{option} without --data" in refused.err
    refused = diptych("audit", run_folder, "--scenes", "--skip-bad-images")
    assert refused.code == 2
    assert "--skip-bad-images without --data" in refused.err
    refused = diptych("audit", tmp_path / "nothing", "--scenes")
    assert refused.code == 2
    assert "neither a folder nor a name with a known prefix" in refused.err
    refused = diptych("audit", "hf:nobody/nothing", "--scenes")
    assert refused.code == 2
    assert "nowhere to write" in refused.err
