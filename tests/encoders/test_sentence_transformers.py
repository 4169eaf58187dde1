from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES
from diptych.encoders.huggingface import HuggingFaceEncoder, SentenceTransformersEncoder

from .tiny_pretrained import CAPTIONS, pictures


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def folder(sources: Callable[[str], Path]) -> Path:
    return sources("st")


def library(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def check_rows(folder: Path) -> SentenceTransformersEncoder:
    encoder = DualEncoder.load(folder, device="cpu")
    assert isinstance(encoder, SentenceTransformersEncoder)
    theirs = library(folder)
    for got, inputs in (
        (encoder.encode_texts(CAPTIONS, 4), CAPTIONS),
        (encoder.encode_images(pictures(), 2), pictures()),
    ):
        expected = theirs.encode(inputs, normalize_embeddings=True)
        np.testing.assert_allclose(got, expected, atol=1e-5)
        assert (got @ got.T - np.eye(len(got))).max() < 0.999
    return encoder


def test_rows_are_those_of_the_library(folder: Path) -> None:
    encoder = check_rows(folder)
    assert encoder.width == 24
    assert encoder.describe()["family"] == "sentence_transformers"
    assert encoder.name == "st"
    plain = DualEncoder.load(folder / "0_CLIPModel", device="cpu")
    assert isinstance(plain, HuggingFaceEncoder)
    np.testing.assert_allclose(plain.encode_texts(CAPTIONS), encoder.encode_texts(CAPTIONS), atol=1e-6)
    # Pillow prepares pictures there, torchvision here.
    assert 1e-5 < np.abs(plain.encode_images(pictures()) - encoder.encode_images(pictures())).max() < 1e-2
    assert plain.fingerprint != encoder.fingerprint


def test_rows_of_a_folder_that_the_library_of_today_writes(folder: Path, tmp_path: Path) -> None:
    """config.json and modules.json lie side by side: it is of one family all the same."""
    library(folder).save_pretrained(str(tmp_path / "today"))
    assert (tmp_path / "today" / "config.json").is_file()
    assert [one.name for one in FAMILIES if one.recognises(tmp_path / "today")] == ["sentence_transformers"]
    again = check_rows(tmp_path / "today")
    assert DualEncoder.load(folder, device="cpu").encode_texts(CAPTIONS).tolist() == (
        again.encode_texts(CAPTIONS).tolist()
    )


def test_the_default_prompt_stands_before_every_text(copied: Callable[[str], Path], folder: Path) -> None:
    changed = copied("st")
    write(
        changed / "config_sentence_transformers.json",
        {"prompts": {"photo": "a photo of a "}, "default_prompt_name": "photo"},
    )
    encoder = check_rows(changed)
    assert encoder.prefix == "a photo of a "
    plain = DualEncoder.load(folder, device="cpu")
    assert isinstance(plain, SentenceTransformersEncoder)
    assert encoder.fingerprint == plain.prefix_texts_with("a photo of a ").fingerprint != plain.fingerprint
