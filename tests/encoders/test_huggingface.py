from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from diptych.core.errors import (
    MismatchError,
    NumericalError,
    StorageError,
    UsageError,
)
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.huggingface import HuggingFaceEncoder

from .tiny_pretrained import CAPTIONS, WORDS, pictures, transformers_model

KINDS = ["clip", "siglip", "siglip2", "altclip", "align", "groupvit", "chinese_clip", "metaclip_2"]
PADDED = {"siglip": 12, "siglip2": 64, "align": 64}
"""Kinds whose texts are always padded to a length."""


@pytest.fixture(scope="module")
def clip(sources: Callable[[str], Path]) -> HuggingFaceEncoder:
    return HuggingFaceEncoder.open(str(sources("clip")), device="cpu")


@pytest.fixture
def copied(sources: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(sources("clip"), tmp_path / "copied"))


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def unit(rows: torch.Tensor) -> np.ndarray:
    return torch.nn.functional.normalize(rows, dim=-1).detach().numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_library(kind: str, sources: Callable[[str], Path]) -> None:
    model, tokenizer, processor = transformers_model(kind)
    limit = PADDED.get(kind, 16)
    padding = "max_length" if kind in PADDED else True
    tokens = tokenizer(CAPTIONS, padding=padding, truncation=True, max_length=limit, return_tensors="pt")
    if kind.startswith("siglip"):
        tokens = {"input_ids": tokens["input_ids"]}
    with torch.no_grad():
        texts = unit(model.get_text_features(**tokens).pooler_output)
        pixels = processor(images=pictures(), return_tensors="pt")
        images = unit(model.get_image_features(**pixels).pooler_output)

    encoder = DualEncoder.load(sources(kind), device="cpu")
    assert isinstance(encoder, HuggingFaceEncoder)
    assert encoder.text_limit == limit
    got_images, got_texts = encoder.encode_images(pictures(), 2), encoder.encode_texts(CAPTIONS, 4)
    for got, expected in ((got_images, images), (got_texts, texts)):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, expected, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1.0, atol=1e-6)
        # Different inputs have different rows, or the comparison above would say nothing.
        assert (got @ got.T - np.eye(len(got))).max() < 0.999
    assert encoder.width == images.shape[1] == texts.shape[1]


def _change_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["visual_projection.weight"][0, 0] += 1e-3
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _change_statistics(folder: Path) -> None:
    edit(folder / "preprocessor_config.json", image_mean=[0.5, 0.5, 0.5])


def _change_activation(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["hidden_act"] = "gelu"
    (folder / "config.json").write_text(json.dumps(config))


def _change_merges(folder: Path) -> None:
    rules = json.loads((folder / "tokenizer.json").read_text())
    rules["model"]["merges"].pop()
    (folder / "tokenizer.json").write_text(json.dumps(rules))


def _change_limit(folder: Path) -> None:
    edit(folder / "tokenizer_config.json", model_max_length=12)


@pytest.mark.parametrize(
    "change", [_change_weight, _change_statistics, _change_activation, _change_merges, _change_limit]
)
def test_fingerprint_sees(change: Callable[[Path], None], clip: HuggingFaceEncoder, copied: Path) -> None:
    change(copied)
    assert HuggingFaceEncoder.open(str(copied), device="cpu").fingerprint != clip.fingerprint


def test_fingerprint_does_not_see_where_it_was_written(clip: HuggingFaceEncoder, copied: Path) -> None:
    edit(copied / "config.json", transformers_version="4.1.0", _name_or_path="elsewhere", dtype="float16")
    assert HuggingFaceEncoder.open(str(copied), device="cpu").fingerprint == clip.fingerprint


def test_folder_of_a_whole_processor(
    sources: Callable[[str], Path], clip: HuggingFaceEncoder, tmp_path: Path
) -> None:
    """transformers 5 writes the image preprocessing into processor_config.json."""
    from transformers import CLIPProcessor

    model, tokenizer, processor = transformers_model("clip")
    model.save_pretrained(tmp_path)
    CLIPProcessor(processor, tokenizer).save_pretrained(tmp_path)
    assert not (tmp_path / "preprocessor_config.json").exists()
    assert DualEncoder.load(tmp_path, device="cpu").fingerprint == clip.fingerprint


def test_half_precision_files_are_computed_in_float32(copied: Path, clip: HuggingFaceEncoder) -> None:
    weights = load_file(copied / "model.safetensors")
    half = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
    save_file(half, copied / "model.safetensors", metadata={"format": "pt"})
    edit(copied / "config.json", dtype="float16")
    encoder = HuggingFaceEncoder.open(str(copied), device="cpu")
    assert {value.dtype for value in encoder.model.parameters()} == {torch.float32}
    np.testing.assert_allclose(encoder.encode_texts(CAPTIONS), clip.encode_texts(CAPTIONS), atol=1e-2)


def test_a_row_that_is_not_finite_is_named(sources: Callable[[str], Path]) -> None:
    encoder = DualEncoder.load(sources("siglip"), device="cpu")
    assert isinstance(encoder, HuggingFaceEncoder)
    cat = encoder.tokenizer.convert_tokens_to_ids("cat")
    encoder.model.text_model.embeddings.token_embedding.weight.data[cat] = float("nan")
    assert np.isfinite(encoder.encode_texts(["a dog", "ball"])).all()
    with pytest.raises(NumericalError, match="text 3 is not finite"):
        encoder.encode_texts(["a dog and a ball", "ball", "a dog", "the cat", "a ball"], 2)
    encoder.model.vision_model.embeddings.patch_embedding.weight.data[0] = float("inf")
    with pytest.raises(NumericalError, match="image 0 is not finite"):
        encoder.encode_images(pictures(2))


class _Evil:
    """Creates a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_bin_files_are_read_without_running_code(copied: Path, clip: HuggingFaceEncoder) -> None:
    weights = load_file(copied / "model.safetensors")
    (copied / "model.safetensors").unlink()
    torch.save(weights, copied / "pytorch_model.bin")
    assert DualEncoder.load(copied, device="cpu").fingerprint == clip.fingerprint

    touched = copied / "touched"
    torch.save({**weights, "more": _Evil(touched)}, copied / "pytorch_model.bin")
    with pytest.raises(StorageError, match="more than tensors"):
        DualEncoder.load(copied, device="cpu")
    (copied / "pytorch_model.bin").write_bytes(pickle.dumps(_Evil(touched), protocol=2))
    with pytest.raises(StorageError):
        DualEncoder.load(copied, device="cpu")
    assert not touched.exists()


def test_code_that_comes_with_a_model_is_not_run(copied: Path, clip: HuggingFaceEncoder) -> None:
    touched = copied / "touched"
    (copied / "own.py").write_text(f"import pathlib\npathlib.Path({str(touched)!r}).touch()\n")
    edit(copied / "config.json", auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"})
    edit(copied / "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Tokenizer", None]})
    edit(copied / "preprocessor_config.json", auto_map={"AutoImageProcessor": "own.Processor"})
    assert DualEncoder.load(copied, device="cpu").fingerprint == clip.fingerprint
    assert not touched.exists()


def test_missing_weights_are_an_error_not_random_numbers(
    copied: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = load_file(copied / "model.safetensors")
    del weights["text_projection.weight"]
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(StorageError, match=r"lacks 1 of the model's weights.*text_projection\.weight"):
        DualEncoder.load(copied, device="cpu")
    assert capfd.readouterr() == ("", "")  # the library's own report is not printed beside it


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.safetensors", "neither model.safetensors nor pytorch_model.bin"),
        ("tokenizer.json", "holds no tokenizer"),
        ("preprocessor_config.json", "preprocessor_config.json|image processor"),
    ],
)
def test_missing_files(name: str, message: str, copied: Path) -> None:
    (copied / name).unlink()
    with pytest.raises(StorageError, match=message):
        DualEncoder.load(copied, device="cpu")


def test_another_models_tokenizer(copied: Path, tmp_path: Path) -> None:
    from transformers import BertTokenizer

    names = [f"word{place}" for place in range(600)] + WORDS.split()
    BertTokenizer(vocab={name: place for place, name in enumerate(names)}).save_pretrained(copied)
    encoder = DualEncoder.load(copied, device="cpu")
    with pytest.raises(MismatchError, match="the model knows 517"):
        encoder.encode_texts(["a dog"])


def test_a_model_of_one_side(copied: Path) -> None:
    edit(copied / "config.json", model_type="bert")
    with pytest.raises(StorageError, match="holds no encoder that is known"):
        DualEncoder.load(copied)
    with pytest.raises(UsageError, match="'bert' model, not an image–text"):
        DualEncoder.load(copied, family="huggingface")


def test_a_hub_out_of_reach(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="could not be loaded, neither from its hub") as caught:
        DualEncoder.load("hf:nobody/no-such-model")
    assert "hf download nobody/no-such-model --local-dir FOLDER" in caught.value.fix
    with pytest.raises(UsageError):
        DualEncoder.load("hf:not a name!")
