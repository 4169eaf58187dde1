from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diptych.core.errors import CaptionError, ImageError, NumericalError, StorageError
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.caption_tower import CaptionTowerConfig
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.image_tower import ImageTowerConfig
from diptych.encoders.preprocessing import Preprocessing
from diptych.encoders.two_tower import ModelConfig, TwoTowerEncoder, TwoTowerModel

CAPTIONS = ["a red star", "a blue ring left of a star", "a", "zebra"]


def encoder(seed: int = 0, **text: object) -> TwoTowerEncoder:
    torch.manual_seed(seed)
    config = ModelConfig(
        width=8,
        image=ImageTowerConfig(backbone="test_resnet", preprocessing=Preprocessing(size=32, resize=32)),
        text=CaptionTowerConfig(word_width=6, min_count=1, **text),
    )
    vocabulary = Vocabulary.build(CAPTIONS[:2], 1)
    return TwoTowerEncoder(TwoTowerModel(config, vocabulary), vocabulary, name="tiny", temperature=0.05)


def pictures(n: int = 5) -> list[Image.Image]:
    random = np.random.default_rng(0)
    return [Image.fromarray(random.integers(0, 256, (40, 50, 3), dtype=np.uint8)) for _ in range(n)]


def test_rows_are_unit_and_do_not_depend_on_the_batch() -> None:
    model = encoder()
    images, texts = model.encode_images(pictures()), model.encode_texts(CAPTIONS)
    assert images.shape == (5, 8)
    assert images.dtype == texts.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(np.concatenate([images, texts]), axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(model.encode_images(iter(pictures()), batch_size=2), images, atol=1e-6)
    np.testing.assert_allclose(model.encode_texts(CAPTIONS, batch_size=1), texts, atol=1e-6)
    arrays = [np.asarray(picture) for picture in pictures()]
    np.testing.assert_allclose(model.encode_images(arrays), images, atol=1e-6)
    assert model.encode_images([]).shape == (0, 8)
    assert model.encode_texts([]).shape == (0, 8)


def test_saved_and_loaded_it_gives_the_same_rows(tmp_path: Path) -> None:
    model = encoder()
    model.save(tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "README.md",
        "diptych.json",
        "model.json",
        "model.safetensors",
        "vocabulary.json",
    ]
    loaded = DualEncoder.load(tmp_path / "m", device="cpu")
    assert isinstance(loaded, TwoTowerEncoder)
    assert np.array_equal(loaded.encode_images(pictures()), model.encode_images(pictures()))
    assert np.array_equal(loaded.encode_texts(CAPTIONS), model.encode_texts(CAPTIONS))
    assert loaded.fingerprint == model.fingerprint
    assert loaded.describe() == model.describe()
    assert loaded.temperature == 0.05


def test_the_fingerprint_is_of_what_changes_rows() -> None:
    base = encoder().fingerprint
    assert encoder().fingerprint == base
    assert encoder(seed=1).fingerprint != base
    assert encoder(max_tokens=4).fingerprint != base
    assert encoder(dropout=0.5).fingerprint == base
    changed = encoder()
    with torch.no_grad():
        changed.model.text.embed.weight[0, 0] += 1
    assert changed.fingerprint != base


def test_long_captions_are_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    model = encoder(max_tokens=4)
    with caplog.at_level(logging.INFO):
        rows = model.encode_texts(["a red star ring", "a red blue left of", "a"])
    np.testing.assert_allclose(rows[0], model.encode_texts(["a red"])[0], atol=1e-6)
    assert "2 of 3 texts" in caplog.text


def test_what_is_no_picture_or_text_is_named() -> None:
    model = encoder()
    with pytest.raises(ImageError, match=r"image 1 is a float64 array of shape \(2, 2\)"):
        model.encode_images([pictures()[0], np.zeros((2, 2))])
    with pytest.raises(ImageError, match="image 0 is a str, not a picture"):
        model.encode_images(["cat.jpg"])
    with pytest.raises(CaptionError, match="text 1"):
        model.encode_texts(["a", 3])  # type: ignore[list-item]


def test_diverged_weights_are_named_not_hidden() -> None:
    model = encoder()
    with torch.no_grad():
        model.model.text.embed.weight[4] = torch.nan
    with pytest.raises(NumericalError, match="embedding of text 0 is not finite"):
        model.encode_texts(["a"])


@pytest.mark.parametrize("name", ["model.safetensors", "model.json", "vocabulary.json"])
def test_a_damaged_folder_is_named(tmp_path: Path, name: str) -> None:
    encoder().save(tmp_path / "m")
    file = tmp_path / "m" / name
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(StorageError, match="m"):
        DualEncoder.load(tmp_path / "m")
    file.unlink()
    with pytest.raises(StorageError, match="m"):
        DualEncoder.load(tmp_path / "m")
