from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diptych.core.errors import ImageError, MismatchError, StorageError, UsageError
from diptych.core.files import read_json, write_json
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.data.regions import RegionSource
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.caption_tower import CaptionTowerConfig
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import EncodedCollection, encode_collection, without_bad_images
from diptych.encoders.region_tower import RegionTowerConfig
from diptych.encoders.two_tower import ModelConfig, TwoTowerEncoder, TwoTowerModel


class Shades(DualEncoder):
    """Mean colour of a picture, length of a text; counts how many of each it has seen."""

    family = "shades"

    def __init__(self) -> None:
        self.seen = [0, 0]

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        rows = [np.asarray(picture, dtype=np.float32).mean(axis=(0, 1)) for picture in images]
        self.seen[0] += len(rows)
        return np.stack(rows)

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        self.seen[1] += len(texts)
        return np.array([[len(text), 0, 0] for text in texts], dtype=np.float32)

    @property
    def width(self) -> int:
        return 3

    @property
    def fingerprint(self) -> str:
        return "shades"

    def describe(self) -> dict[str, Any]:
        return {"family": "shades"}

    def _write(self, folder: Path) -> None:
        raise NotImplementedError


def test_rows_stand_with_their_ids(scenes_folder: Path, tmp_path: Path) -> None:
    collection = read_collection(scenes_folder).split("val")
    encoded = encode_collection(Shades(), collection, tmp_path / "e", "val")
    assert list(encoded.images.ids) == list(collection.image_ids)
    assert list(encoded.texts.ids) == list(collection.caption_ids)
    assert encoded.texts.rows[:, 0].tolist() == [len(text) for text in collection.captions]
    expected = np.asarray(collection.image(7), dtype=np.float32).mean(axis=(0, 1))
    np.testing.assert_allclose(encoded.images.rows[7], expected)
    opened = EncodedCollection.open(tmp_path / "e")
    assert np.array_equal(opened.caption_image, collection.caption_image)
    assert opened.about["split"] == "val"


def test_nothing_is_encoded_twice_unless_something_changed(scenes_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(scenes_folder, tmp_path / "data")
    encoder = Shades()

    def encode() -> None:
        encode_collection(encoder, read_collection(tmp_path / "data").split("val"), tmp_path / "e", "val")

    encode()
    encode()
    assert encoder.seen == [16, 80]
    first, second = sorted((tmp_path / "data" / "val").glob("*.png"))[:2]
    first.write_bytes(second.read_bytes())
    encode()
    assert encoder.seen == [32, 160]


def test_halves_of_different_encoders_are_refused(scenes_folder: Path, tmp_path: Path) -> None:
    encode_collection(Shades(), read_collection(scenes_folder).split("val"), tmp_path / "e", "val")
    header = read_json(tmp_path / "e" / "texts" / "embeddings.json")
    write_json(tmp_path / "e" / "texts" / "embeddings.json", {**header, "encoder": "other"})
    with pytest.raises(StorageError, match="pictures were embedded by shades, captions by other"):
        EncodedCollection.open(tmp_path / "e")


def test_a_folder_of_pictures_is_not_replaced(scenes_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.jpg").write_text("precious")
    with pytest.raises(UsageError, match="holds other things"):
        encode_collection(Shades(), read_collection(scenes_folder).split("val"), tmp_path, "val")
    assert (tmp_path / "images" / "mine.jpg").read_text() == "precious"


def test_bad_pictures_are_named_or_left_out(scenes_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(scenes_folder, tmp_path / "data")
    files = sorted((tmp_path / "data" / "val").glob("*.png"))
    files[3].write_bytes(b"")
    collection = read_collection(tmp_path / "data").split("val")
    with pytest.raises(ImageError, match=rf"{files[3].name} is empty \(0 bytes\)"):
        encode_collection(Shades(), collection, tmp_path / "e", "val")
    files[5].unlink()
    good, problems = without_bad_images(collection)
    assert good.n_images == 14
    assert good.n_captions == 70
    assert [files[3].name in problems[0], files[5].name in problems[1], len(problems)] == [True, True, 2]
    same, none = without_bad_images(good)
    assert same is good
    assert none == []


def region_encoder(regions: int = 2) -> TwoTowerEncoder:
    torch.manual_seed(0)
    config = ModelConfig(
        width=6,
        image=RegionTowerConfig(regions=regions, feature_width=3),
        text=CaptionTowerConfig(min_count=1),
    )
    vocabulary = Vocabulary.build(["a red star"], 1)
    return TwoTowerEncoder(TwoTowerModel(config, vocabulary), vocabulary)


def featured(collection: Collection, scale: float = 1.0) -> Collection:
    """The collection with two regions of three features per picture instead of pictures."""
    values = np.random.default_rng(0).normal(size=(collection.n_images, 2, 3)).astype(np.float32) * scale
    return replace(
        collection, source=RegionSource([values], "r.npy"), source_rows=np.arange(collection.n_images)
    )


def test_region_features_are_encoded_and_their_content_counts(scenes_folder: Path, tmp_path: Path) -> None:
    collection = featured(read_collection(scenes_folder).split("val"))
    encoder = region_encoder()
    encoded = encode_collection(encoder, collection, tmp_path / "e", "val")
    items = [collection.item(row) for row in range(16)]
    np.testing.assert_allclose(encoded.images.rows, encoder.encode_images(items), atol=1e-6)
    other = encode_collection(encoder, featured(collection, 2.0), tmp_path / "f", "val")
    assert other.about["data"] != encoded.about["data"]
    assert without_bad_images(collection)[0] is collection


def test_pictures_and_regions_are_not_taken_for_each_other(scenes_folder: Path, tmp_path: Path) -> None:
    pictures = read_collection(scenes_folder).split("val")
    with pytest.raises(MismatchError, match="the encoder takes regions, scenes holds pictures") as caught:
        encode_collection(region_encoder(), pictures, tmp_path / "e")
    assert "regions=FILE.npy" in caught.value.fix
    with pytest.raises(MismatchError, match="the encoder takes pictures, scenes holds regions"):
        encode_collection(Shades(), featured(pictures), tmp_path / "e")
    with pytest.raises(ImageError, match="image 0 is a Image, not a matrix of region features"):
        region_encoder().encode_images([pictures.image(0)])
    with pytest.raises(ImageError, match=r"image 0 has region features of shape \(2, 3\), not \(4, 3\)"):
        encode_collection(region_encoder(4), featured(pictures), tmp_path / "e")
    assert not (tmp_path / "e" / "about.json").exists()
