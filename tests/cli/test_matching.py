"""Evaluate with matching heads: re-ranking, and checkpoints of the authors of ALBEF and X-VLM."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from diptych.evaluation import Result
from diptych.metrics import Reranked


def test_both_stages_are_shown_stored_and_used_again(diptych, blip, scenes_folder, tmp_path):
    out = tmp_path / "out"
    done = diptych(f"evaluate {blip} --data {scenes_folder} --rerank 4 --samples 10 --out {out}")
    first, second = done.out.split("re-ranked: the best 4 of each query, scored again by the matching head")
    assert "contrastive: the first stage only" in first
    assert "re-ranked k_test" not in first
    assert "re-ranked k_test 4 by matching + contrastive score, unranked miss: " in second
    assert "t2i queries have no ranked positive, which rank after the gallery" in second
    for part in (first, second):
        for word in ("R@1", "R@10", "rsum", "chance", "16 images", "80 texts", "split test"):
            assert word in part, word
    reranked = Reranked.open(out / "embeddings" / "reranked")
    assert (reranked.k, reranked.adds_contrastive) == (4, True)
    one, two = Result.open(out / "evaluation"), Result.open(out / "evaluation-reranked-4-miss")
    assert one.protocol.reranking is None
    assert two.protocol.reranking is not None
    assert two.value("R@10", "i2t") == two.value("R@5", "i2t")  # nothing is ranked beyond the four
    assert (out / "evaluation-reranked-4-miss" / "i2t.run").is_file()
    # stored scores need no model, more of them do
    again = f"evaluate {out}/embeddings --rerank"
    moved = blip.rename(blip.with_name("elsewhere"))
    try:
        done = diptych(f"{again} 2 --unranked published --out {tmp_path}/e")
        done.shows("re-ranked k_test 2 by matching + contrastive score, unranked published: ")
        done.shows("ties compat; compat ties; compat unranked")
        done = diptych(f"{again} 4 --unranked contrastive --ties pessimistic")
        done.shows("unranked contrastive: ", "ties pessimistic")
        diptych(f"{again} 5", refused="which is not there any more")
    finally:
        moved.rename(blip)
    diptych(f"{again} 5 --samples 0").shows("k_test 5 ")
    assert Reranked.open(out / "embeddings" / "reranked").k == 5


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Tiny random checkpoints, each with its configuration and tokenizer beside it."""
    from tests.encoders.official.tiny_official import SWIN, TEXT, VIT, albef_state, xvlm_state
    from tests.encoders.tiny_pretrained import bert_tokenizer

    folder = tmp_path_factory.mktemp("models")
    states = {"albef": albef_state(), "albef-begun": albef_state(stage="pre-training"), "xvlm": xvlm_state()}
    for name, state in states.items():
        vision = SWIN if name == "xvlm" else VIT
        bert_tokenizer().save_pretrained(folder / name)
        torch.save({"model": state, "config": {"image_res": 48}}, folder / name / "tiny.pth")
        (folder / name / "config.json").write_text(json.dumps({"vision": vision, "text": TEXT}))
    return folder


@pytest.mark.parametrize("kind", ["albef", "xvlm"])
def test_evaluated_and_scored_again_from_another_folder(
    kind, diptych, models, scenes_folder, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    shutil.copytree(models / kind, home / "model")
    monkeypatch.chdir(home)
    line = f"evaluate {kind}:model/tiny.pth --data {scenes_folder} --rerank 3 --samples 0 --out out"
    printed = " ".join(diptych(line).out.split())
    assert "re-ranked k_test 3 by matching score" in printed
    assert "pre-training" not in printed  # fine-tuned, as it should be
    monkeypatch.chdir(tmp_path)  # the model was named by a path from where one stood
    again = "evaluate home/out/embeddings --samples 0 --rerank"
    assert "re-ranked k_test 5 by matching score" in " ".join(diptych(f"{again} 5").out.split())
    diptych(f"info {home}/out/embeddings/reranked").shows("reranked", "fingerprint")
    shutil.rmtree(home / "model")
    diptych(f"{again} 2")
    gone = f"{kind}:{home / 'model' / 'tiny.pth'}, which is not there any more"
    diptych(f"{again} 9", refused=gone)


def test_the_stage_of_a_checkpoint_is_named(diptych, models, scenes_folder, tmp_path):
    begun, other = models / "albef-begun" / "tiny.pth", models / "xvlm" / "tiny.pth"
    rest = f"--data {scenes_folder} --rerank 2 --samples 0 --out {tmp_path}/out"
    diptych(f"evaluate albef:{begun} {rest}", failed="not a fine-tuned checkpoint of ALBEF")
    done = diptych(f"evaluate albef:pretraining:{begun} {rest}")
    assert " ".join(done.out.split()).count("stage pre-training") == 2  # of both stages
    for found in tmp_path.glob("out/evaluation*/evaluation.json"):
        assert json.loads(found.read_text())["content"]["protocol"]["about"]["stage"] == "pre-training"
    diptych(f"info {begun}").shows("pre-training")
    diptych(f"info {other}").shows("an X-VLM checkpoint", "fine-tuned", "load it with")
    diptych(f"info xvlm:{other}").shows("squash", "gelu", "cleaning", "fingerprint", "limit")
    diptych("info encoders").shows("xvlm:FILE")
    file = models / "albef" / "tiny.pth"  # whose it is was not given
    for source in (file, file.parent):
        done = diptych(f"evaluate {source} --data nowhere", code=None)
        done.says(f"albef:{file}, xvlm:{file}, blip:{file}", f"diptych info {file}")
