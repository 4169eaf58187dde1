from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from refusals import refused

from diptych.core.errors import MissingExtraError, StorageError, UnknownNameError, UsageError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.openclip import OpenClipEncoder

from .tiny_pretrained import CAPTIONS, OPEN_CLIP_CONFIG, bert_tokenizer, open_clip_folder

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


def test_another_librarys_tokenizer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = open_clip_folder(tmp_path / "words", **WITH_WORDS)
    refused(StorageError, "tokenizer", DualEncoder.load, source, device="cpu")
    bert_tokenizer().save_pretrained(source)
    encoder = DualEncoder.load(source, device="cpu")
    assert isinstance(encoder, OpenClipEncoder)
    model, _ = open_clip.create_model_from_pretrained(f"local-dir:{source}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{source}")
    with torch.no_grad():
        expected = model.eval().encode_text(tokenizer(CAPTIONS), normalize=True).numpy()
    np.testing.assert_allclose(encoder.encode_texts(CAPTIONS), expected, atol=1e-5)
    encoder.encode_texts(["dog " * 14, "dog " * 15])  # 16 and 17 tokens with start and end
    assert "1 of 2 texts" in caplog.text
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
    assert "3 of 6 texts were longer than 16 tokens" in caplog.text
    np.testing.assert_allclose(rows[0], rows[2], atol=1e-6)
    np.testing.assert_allclose(rows[4], rows[2], atol=1e-6)
    np.testing.assert_allclose(rows[5], rows[1], atol=1e-6)


def test_names() -> None:
    with pytest.raises(UsageError, match="unknown architecture of open_clip 'ViT-B-33'") as caught:
        DualEncoder.load("open_clip:ViT-B-33/openai")
    assert "ViT-B-32" in caught.value.fix
    refused(UnknownNameError, "laion2b_s34b_b79k", DualEncoder.load, "open_clip:ViT-B-32/laion2b")
    with pytest.raises(UnknownNameError, match="unknown pretrained tag of open_clip:ViT-B-32"):
        DualEncoder.load("open_clip:ViT-B-32")


def test_the_wrong_activation_is_an_error() -> None:
    """The library only warns, and the rows are silently worse."""
    with pytest.raises(UsageError, match="trained with QuickGELU") as caught:
        DualEncoder.load("open_clip:ViT-B-32/openai")
    assert caught.value.fix == "use open_clip:ViT-B-32-quickgelu/openai"


def test_the_library_is_an_extra(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(MissingExtraError) as caught:
        DualEncoder.load(folder)
    assert caught.value.fix == "pip install 'diptych[open-clip]'"
