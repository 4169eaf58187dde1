"""A pretrained model by the command line: fine-tuned, evaluated, reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command

from diptych.training.run import Run

from ..encoders.tiny_pretrained import transformers_folder


def test_from_a_folder_to_a_report(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    clip, run = transformers_folder("clip", tmp_path / "clip", limit=48), tmp_path / "run"
    settings = (f"fine_tune={clip}", "batches.size=24", "stages.0.epochs=1", "stages.0.warmup=2")
    chosen = [part for setting in settings for part in ("--set", setting)]
    done = diptych("train", "clip", "--data", scenes_folder, "--out", run, "--accelerator", "cpu", *chosen)
    assert done.code == 0, done.err
    assert "best validation rsum" in done.out
    done = diptych("evaluate", run)
    assert done.code == 0, done.err
    for word in ("R@1", "rsum", "16 images", "80 texts", "split test"):
        assert word in done.out, word
    done = diptych("info", run)
    assert done.code == 0, done.err
    assert "fine-tuned from" in done.out
    assert "resnet" not in done.out
    done = diptych("report", run)
    assert done.code == 0, done.err
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "fine_tune" in page
    # The encoder is a folder of transformers: others read it without us.
    from transformers import CLIPModel

    assert CLIPModel.from_pretrained(run / "best").config.projection_dim == 24
    zero_shot = next(line for line in Run.open(run).metrics() if "validation" in line)
    assert zero_shot["epoch"] == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.width=8", "leave the section [model] out"),
        ("stages.0.train=['image.head.*', 'vision_model.*']", "fits no parameter"),
        ("fine_tune=nowhere", "'nowhere' is neither a folder nor a name"),
    ],
)
def test_what_cannot_be_is_a_usage_error(
    diptych: Command, scenes_folder: Path, tmp_path: Path, setting: str, message: str
) -> None:
    clip = transformers_folder("clip", tmp_path / "clip")
    done = diptych(
        *("train", "clip", "--data", scenes_folder, "--out", tmp_path / "run", "--accelerator", "cpu"),
        *("--set", f"fine_tune={clip}", "--set", "batches.size=24", "--set", setting),
    )
    assert done.code == 2
    assert message in done.err.replace("\n", " ")
