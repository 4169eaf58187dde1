"""Evaluate with matching heads: re-ranking, and checkpoints of the authors of ALBEF and X-VLM."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import Command, command

from diptych.evaluation import Result
from diptych.metrics import Reranked


@pytest.fixture(scope="module")
def evaluated(blip: Path, scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """What the command wrote, and what it printed."""
    import contextlib
    import io

    out, printed = tmp_path_factory.mktemp("evaluated") / "blip", io.StringIO()
    with contextlib.redirect_stdout(printed):
        command(f"evaluate {blip} --data {scenes_folder} --rerank 4 --samples 10 --out {out}")
    return out, printed.getvalue()


def test_both_stages_are_shown_and_stored(evaluated: tuple[Path, str]) -> None:
    out, printed = evaluated
    first, second = printed.split("re-ranked: the best 4 of each query, scored again by the matching head")
    assert "contrastive: the first stage alone" in first
    assert "re-ranked k_test" not in first
    assert "re-ranked k_test 4 by matching + contrastive score, unranked miss: " in second
    assert "i2t and" in second
    assert "t2i queries have no ranked positive, which rank after the gallery" in second
    for part in (first, second):
        for word in ("R@1", "R@10", "rsum", "chance", "16 images", "80 texts", "split test"):
            assert word in part, word
    reranked = Reranked.open(out / "embeddings" / "reranked")
    assert reranked.k == 4
    assert reranked.adds_contrastive
    one, two = Result.open(out / "evaluation"), Result.open(out / "evaluation-reranked-4-miss")
    assert one.protocol.reranking is None
    assert two.protocol.reranking is not None
    assert two.value("R@10", "i2t") == two.value("R@5", "i2t")  # nothing is ranked beyond the four
    assert (out / "evaluation-reranked-4-miss" / "i2t.run").is_file()


def test_stored_scores_need_no_model(
    diptych: Command, evaluated: tuple[Path, str], blip: Path, tmp_path: Path
) -> None:
    out, _ = evaluated
    copied = Path(shutil.copytree(out / "embeddings", tmp_path / "embeddings"))
    moved = blip.rename(blip.with_name("elsewhere"))
    try:
        done = diptych(f"evaluate {copied} --rerank 2 --unranked published --out {tmp_path}/e")
        done.shows("re-ranked k_test 2 by matching + contrastive score, unranked published: ")
        done.shows("ties compat; compat ties; compat unranked")
        done = diptych(f"evaluate {copied} --rerank 4 --unranked contrastive --ties pessimistic")
        done.shows("unranked contrastive: ", "ties pessimistic")
        diptych(f"evaluate {copied} --rerank 5", refused="which is not there any more")
    finally:
        moved.rename(blip)
    done = diptych(f"evaluate {copied} --rerank 5 --samples 0")
    assert "k_test 5 " in done.out
    assert Reranked.open(copied / "reranked").k == 5


def test_published_recalls_are_those_of_the_matrix(evaluated: tuple[Path, str]) -> None:
    """Through the command and back: what argsort makes of -100 in every cell that was not scored."""
    from diptych.encoders.embeddings import EncodedCollection
    from diptych.evaluation.evaluate_encoder import evaluate_encoded

    out, _ = evaluated
    encoded = EncodedCollection.open(out / "embeddings")
    reranked = Reranked.open(out / "embeddings" / "reranked")
    result = evaluate_encoded(encoded, reranked=reranked, k=2, unranked="published", samples=0)
    matrix = reranked.first(2).matrix("t2i")
    order = np.argsort(matrix, axis=1, kind="stable")[:, ::-1]
    hits = order == np.asarray(encoded.caption_image)[:, None]
    for k in (1, 5, 10):
        assert result.value(f"R@{k}", "t2i") == pytest.approx(hits[:, :k].any(axis=1).mean())


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
    done = diptych(f"evaluate {kind}:model/tiny.pth --data {scenes_folder}", *told)
    assert "re-ranked k_test 3 by matching score" in " ".join(done.out.split())
    assert "pre-training" not in done.out  # fine-tuned, as it should be
    monkeypatch.chdir(tmp_path)  # the model was named by a path from where one stood
    again = diptych("evaluate home/out/embeddings --rerank 5 --samples 0")
    assert "re-ranked k_test 5 by matching score" in " ".join(again.out.split())
    shutil.rmtree(home / "model")
    diptych("evaluate home/out/embeddings --rerank 2 --samples 0")
    diptych(
        "evaluate home/out/embeddings --rerank 9 --samples 0",
        refused=f"{kind}:{home / 'model' / 'tiny.pth'}, which is not there any more",
    )


def test_a_checkpoint_of_pre_training_says_so_with_every_number(
    diptych: Command, models: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    file = models / "albef-begun" / "tiny.pth"
    told = f"--data {scenes_folder} --rerank 2 --samples 0 --out {tmp_path}/out"
    diptych(f"evaluate albef:{file} {told}", failed="not a fine-tuned checkpoint of ALBEF")
    done = diptych(f"evaluate albef:pretraining:{file} {told}")
    assert " ".join(done.out.split()).count("stage pre-training") == 2  # of both stages
    for found in tmp_path.glob("out/evaluation*/evaluation.json"):
        assert json.loads(found.read_text())["content"]["protocol"]["about"]["stage"] == "pre-training"


def test_info_looks_into_checkpoints(
    diptych: Command, models: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    file = models / "xvlm" / "tiny.pth"
    done = diptych(f"info {file}")
    done.shows("an X-VLM checkpoint", "fine-tuned", "load it with")
    assert "pre-training" in diptych(f"info {models}/albef-begun/tiny.pth").out
    done = diptych(f"info xvlm:{file}")
    done.shows("squash", "gelu", "cleaning", "fingerprint", "limit")
    diptych("info encoders").shows("xvlm:FILE")
    out = tmp_path / "out"
    diptych(f"evaluate xvlm:{file} --data {scenes_folder} --rerank 2 --samples 0 --out {out}")
    done = diptych(f"info {out}/embeddings/reranked")
    done.shows("reranked", "fingerprint")


def test_a_checkpoint_that_is_not_said_to_be_whose(diptych: Command, models: Path) -> None:
    file = models / "albef" / "tiny.pth"
    for source in (file, file.parent):
        done = diptych(f"evaluate {source} --data nowhere", code=None)
        done.says(f"albef:{file}, xvlm:{file}, blip:{file}", f"diptych info {file}")
