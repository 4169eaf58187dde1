from __future__ import annotations

import json
import logging
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from safetensors.torch import load_file, save_file

from diptych.core.errors import (
    MissingExtraError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.openclip import OpenClipEncoder

from .tiny_pretrained import (
    CAPTIONS,
    OPEN_CLIP_CONFIG,
    bert_tokenizer,
    open_clip_folder,
    pictures,
    transformers_folder,
)

WEIGHTS, CONFIG = "open_clip_model.safetensors", "open_clip_config.json"

WITH_WORDS = {
    "custom_text": True,
    "text_cfg": {**OPEN_CLIP_CONFIG["text_cfg"], "vocab_size": 90, "hf_tokenizer_name": "words"},
}
"""Changes that give a model another library's tokenizer, which its folder then holds."""


@pytest.fixture(scope="module")
def folder(sources: Callable[[str], Path]) -> Path:
    return sources("open_clip")


@pytest.fixture(scope="module")
def encoder(encoders: Callable[[str], Any]) -> OpenClipEncoder:
    return encoders("open_clip")  # type: ignore[no-any-return]


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copied"))


def test_rows_are_those_of_the_library(folder: Path) -> None:
    model, preprocess = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    model.eval()
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    with torch.no_grad():
        pixels = torch.stack([preprocess(picture) for picture in pictures()])
        images = model.encode_image(pixels, normalize=True).numpy()
        texts = model.encode_text(tokenizer(CAPTIONS), normalize=True).numpy()
    encoder = DualEncoder.load(folder, device="cpu")
    assert isinstance(encoder, OpenClipEncoder)
    got_images, got_texts = encoder.encode_images(pictures(), 2), encoder.encode_texts(CAPTIONS, 4)
    for got, expected in ((got_images, images), (got_texts, texts)):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, expected, atol=1e-5)
        assert (got @ got.T - np.eye(len(got))).max() < 0.9999
    assert encoder.width == 24
    assert encoder.encode_images([]).shape == encoder.encode_texts([]).shape == (0, 24)


def test_another_librarys_tokenizer(tmp_path: Path) -> None:
    source = open_clip_folder(tmp_path / "words", **WITH_WORDS)
    with pytest.raises(StorageError, match="tokenizer"):
        DualEncoder.load(source, device="cpu")
    bert_tokenizer().save_pretrained(source)
    encoder = DualEncoder.load(source, device="cpu")
    assert isinstance(encoder, OpenClipEncoder)
    model, _ = open_clip.create_model_from_pretrained(f"local-dir:{source}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{source}")
    with torch.no_grad():
        expected = model.eval().encode_text(tokenizer(CAPTIONS), normalize=True).numpy()
    np.testing.assert_allclose(encoder.encode_texts(CAPTIONS), expected, atol=1e-5)
    encoder.encode_texts(["dog " * 14, "dog " * 15])  # 16 and 17 tokens with start and end
    assert encoder.texts_cut == 1
    again = DualEncoder.load(encoder.save(tmp_path / "saved"), device="cpu")
    assert again.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(again.encode_texts(CAPTIONS), encoder.encode_texts(CAPTIONS))


def test_long_texts_are_cut_counted_and_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoder = DualEncoder.load(folder, device="cpu")
    assert isinstance(encoder, OpenClipEncoder)
    fits = " ".join(["dog"] * 14)  # with start and end exactly 16 tokens
    # The fourth would take the library's tokenizer minutes if it were shown all of it.
    texts = ["dog " * 25_000, "a dog", fits, "qzx" * 33_000, fits + " dog", " " * 5_000 + "a dog"]
    with caplog.at_level(logging.WARNING):
        rows = encoder.encode_texts(texts)
    assert (encoder.texts_seen, encoder.texts_cut) == (6, 3)
    assert "3 of 6 texts were longer than 16 tokens" in caplog.text
    np.testing.assert_allclose(rows[0], rows[2], atol=1e-6)
    np.testing.assert_allclose(rows[4], rows[2], atol=1e-6)
    np.testing.assert_allclose(rows[5], rows[1], atol=1e-6)


def test_fingerprint_is_of_content(encoder: OpenClipEncoder, copied: Path) -> None:
    before = encoder.fingerprint
    encoder.encode_texts(CAPTIONS)
    assert OpenClipEncoder.open(str(copied), device="cpu").fingerprint == before == encoder.fingerprint

    content = json.loads((copied / CONFIG).read_text())
    changed = {**content, "preprocess_cfg": {**content["preprocess_cfg"], "interpolation": "bilinear"}}
    (copied / CONFIG).write_text(json.dumps(changed))
    assert OpenClipEncoder.open(str(copied), device="cpu").fingerprint != before

    changed = {**content, "model_cfg": {**content["model_cfg"], "quick_gelu": True}}
    (copied / CONFIG).write_text(json.dumps(changed))
    assert OpenClipEncoder.open(str(copied), device="cpu").fingerprint != before

    (copied / CONFIG).write_text(json.dumps(content))
    weights = load_file(copied / WEIGHTS)
    weights["visual.proj"][0, 0] += 1e-3
    save_file(weights, copied / WEIGHTS)
    assert OpenClipEncoder.open(str(copied), device="cpu").fingerprint != before


def test_files_with_code_are_refused(copied: Path, encoder: OpenClipEncoder) -> None:
    weights = load_file(copied / WEIGHTS)
    (copied / WEIGHTS).unlink()
    torch.save(weights, copied / "open_clip_pytorch_model.bin")
    assert DualEncoder.load(copied, device="cpu").fingerprint == encoder.fingerprint

    touched = copied / "touched"

    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (touched,)

    torch.save({**weights, "more": Evil()}, copied / "open_clip_pytorch_model.bin")
    with pytest.raises(StorageError, match="more than tensors"):
        DualEncoder.load(copied, device="cpu")
    assert not touched.exists()


def test_missing_weights(copied: Path) -> None:
    weights = load_file(copied / WEIGHTS)
    del weights["text_projection"]
    save_file(weights, copied / WEIGHTS)
    with pytest.raises(StorageError, match="cannot be read"):
        DualEncoder.load(copied, device="cpu")
    (copied / WEIGHTS).unlink()
    with pytest.raises(StorageError, match="weights"):
        DualEncoder.load(copied, device="cpu")


def test_names() -> None:
    with pytest.raises(UsageError, match="no architecture 'ViT-B-33'") as caught:
        DualEncoder.load("open_clip:ViT-B-33/openai")
    assert "ViT-B-32" in caught.value.fix
    with pytest.raises(UnknownNameError, match="laion2b_s34b_b79k"):
        DualEncoder.load("open_clip:ViT-B-32/laion2b")
    with pytest.raises(UnknownNameError, match="unknown pretrained tag of open_clip:ViT-B-32"):
        DualEncoder.load("open_clip:ViT-B-32")


def test_the_wrong_activation_is_an_error() -> None:
    """The library only warns, and the rows are silently worse."""
    with pytest.raises(UsageError, match="trained with QuickGELU") as caught:
        DualEncoder.load("open_clip:ViT-B-32/openai")
    assert caught.value.fix == "use open_clip:ViT-B-32-quickgelu/openai"


def test_a_hub_out_of_reach(capfd: pytest.CaptureFixture[str]) -> None:
    for source in ("hf-hub:nobody/no-such-model", "ViT-B-32-quickgelu/openai"):
        with pytest.raises(UsageError, match=f"{source} could not be loaded") as caught:
            DualEncoder.load(f"open_clip:{source}")
        assert "save(FOLDER)" in caught.value.fix
    assert capfd.readouterr() == ("", "")


def test_the_library_is_an_extra(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(MissingExtraError) as caught:
        DualEncoder.load(folder)
    assert caught.value.fix == "pip install 'diptych[open-clip]'"


def test_a_folder_in_both_layouts(copied: Path) -> None:
    transformers_folder("clip", copied)
    assert DualEncoder.load(copied, device="cpu").family == "huggingface"
    assert DualEncoder.load(copied, device="cpu", family="open_clip").family == "open_clip"
    assert DualEncoder.load(f"open_clip:{copied}", device="cpu").family == "open_clip"
