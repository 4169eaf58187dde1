"""Checkpoints of ALBEF's and X-VLM's authors on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from commands import Command


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny random checkpoints, each with its configuration and tokenizer beside it."""
    from tests.encoders.official.tiny_official import SWIN, TEXT, VIT, albef_state, xvlm_state
    from tests.encoders.tiny_pretrained import bert_tokenizer

    folder = tmp_path_factory.mktemp("models")
    for name, state, vision in (
        ("albef", albef_state(), VIT),
        ("albef-begun", albef_state(stage="pre-training"), VIT),
        ("xvlm", xvlm_state(), SWIN),
    ):
        bert_tokenizer().save_pretrained(folder / name)
        torch.save({"model": state, "config": {"image_res": 48}}, folder / name / "tiny.pth")
        (folder / name / "config.json").write_text(json.dumps({"vision": vision, "text": TEXT}))
    return folder


@pytest.mark.parametrize("kind", ["albef", "xvlm"])
def test_evaluated_and_scored_again_from_another_folder(
    kind: str,
    diptych: Command,
    models: Path,
    scenes_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "home"
    shutil.copytree(models / kind, home / "model")
    monkeypatch.chdir(home)
    told = ["--rerank", 3, "--samples", 0, "--out", "out"]
    done = diptych("evaluate", f"{kind}:model/tiny.pth", "--data", scenes_folder, *told)
    assert done.code == 0, done.err
    assert "re-ranked k_test 3 by matching score" in " ".join(done.out.split())
    assert "pre-training" not in done.out  # fine-tuned, as it should be
    monkeypatch.chdir(tmp_path)  # the model was named by a path from where one stood
    again = diptych("evaluate", "home/out/embeddings", "--rerank", 5, "--samples", 0)
    assert again.code == 0, again.err
    assert "re-ranked k_test 5 by matching score" in " ".join(again.out.split())
    shutil.rmtree(home / "model")
    fewer = diptych("evaluate", "home/out/embeddings", "--rerank", 2, "--samples", 0)
    assert fewer.code == 0, fewer.err
    more = diptych("evaluate", "home/out/embeddings", "--rerank", 9, "--samples", 0)
    assert more.code == 2
    assert f"{kind}:{home / 'model' / 'tiny.pth'}, which is not there any more" in more.err


def test_a_checkpoint_of_pre_training_says_so_with_every_number(
    diptych: Command, models: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    file = models / "albef-begun" / "tiny.pth"
    told = ["--data", scenes_folder, "--rerank", 2, "--samples", 0, "--out", tmp_path / "out"]
    done = diptych("evaluate", f"albef:{file}", *told)
    assert done.code != 0
    assert "an ALBEF checkpoint of pre-training" in done.err
    done = diptych("evaluate", f"albef:pretraining:{file}", *told)
    assert done.code == 0, done.err
    assert " ".join(done.out.split()).count("stage pre-training") == 2  # of both stages
    for found in tmp_path.glob("out/evaluation*/evaluation.json"):
        assert json.loads(found.read_text())["protocol"]["about"]["stage"] == "pre-training"


def test_info_looks_into_checkpoints(
    diptych: Command, models: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    file = models / "xvlm" / "tiny.pth"
    done = diptych("info", file)
    assert done.code == 0, done.err
    assert "an X-VLM checkpoint" in done.out
    assert "fine-tuned" in done.out
    assert "load it with" in done.out
    assert "pre-training" in diptych("info", models / "albef-begun" / "tiny.pth").out
    done = diptych("info", f"xvlm:{file}")
    assert done.code == 0, done.err
    for word in ("squash", "gelu", "cleaning", "fingerprint", "limit"):
        assert word in done.out
    listed = diptych("info").out
    assert "xvlm:FILE" in listed
    out = tmp_path / "out"
    told = ["--data", scenes_folder, "--rerank", 2, "--samples", 0, "--out", out]
    assert diptych("evaluate", f"xvlm:{file}", *told).code == 0
    done = diptych("info", out / "embeddings" / "reranked")
    assert "re-ranked candidates" in done.out
    assert "the best 2 of each of 16 pictures" in done.out


def test_a_checkpoint_that_is_not_said_to_be_whose(diptych: Command, models: Path) -> None:
    file = models / "albef" / "tiny.pth"
    for source in (file, file.parent):
        done = diptych("evaluate", source, "--data", "nowhere")
        assert done.code != 0
        assert f"albef:{file}, xvlm:{file}, blip:{file}" in done.err
        assert f"diptych info {file}" in done.err
    assert diptych("info", "nothing:there").code == 2
    assert "an encoder's name" in diptych("info", "nothing").err
