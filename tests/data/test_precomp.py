from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import CaptionError, DataError
from diptych.data.readers import precomp as module
from diptych.data.readers import read_collection


def features(n: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, *shape)).astype(np.float32)


def write(folder: Path, split: str, rows: np.ndarray, captions: int) -> None:
    folder.mkdir(exist_ok=True)
    np.save(folder / f"{split}_ims.npy", rows)
    lines = [f"{split} caption {number}\n" for number in range(captions)]
    (folder / f"{split}_caps.txt").write_text("".join(lines))


def test_training_features_once_test_features_five_times(tmp_path: Path) -> None:
    write(tmp_path, "test", np.repeat(features(3, 2, 4), 5, axis=0), 15)
    write(tmp_path, "dev", np.repeat(features(2, 2, 4), 5, axis=0), 10)
    write(tmp_path, "train", features(4, 2, 4), 20)
    found = read_collection(tmp_path)
    assert found.split_sizes == {"train": 4, "val": 2, "test": 3}
    assert found.captions_per_image.tolist() == [5] * 9
    assert found.notes == (
        "dev_ims.npy holds every image 5 times; it is read once",
        "test_ims.npy holds every image 5 times; it is read once",
    )
    test = found.split("test")
    assert test.image_ids == ["test-0", "test-1", "test-2"]
    assert test.captions_of(1) == [f"test caption {number}" for number in range(5, 10)]
    for split, rows in (
        ("train", features(4, 2, 4)),
        ("val", features(2, 2, 4)),
        ("test", features(3, 2, 4)),
    ):
        part = found.split(split)
        for image in range(part.n_images):
            assert np.array_equal(part.item(image), rows[image])


def test_as_many_captions_as_images_that_differ_are_pairs(tmp_path: Path) -> None:
    rows = np.repeat(features(3, 2, 4), 5, axis=0)
    rows[14, 1, 3] += 1e-3  # the very last number
    write(tmp_path, "train", rows, 15)
    found = read_collection(tmp_path)
    assert found.n_images == 15
    assert found.captions_per_image.tolist() == [1] * 15
    assert found.notes == ()


def test_repeated_images_are_looked_for_block_by_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK_BYTES", 1)
    write(tmp_path, "test", np.repeat(features(7, 4), 5, axis=0), 35)
    found = read_collection(tmp_path, reader="precomp")
    assert found.n_images == 7
    assert found.item(6).shape == (1, 4)
    assert np.array_equal(found.item(6)[0], features(7, 4)[6])


def test_captions_that_are_no_multiple_of_images(tmp_path: Path) -> None:
    write(tmp_path, "test", features(3, 2, 4), 10)
    with pytest.raises(DataError, match="test: 10 captions for 3 images"):
        read_collection(tmp_path)
    write(tmp_path, "test", features(3, 2, 4), 0)
    with pytest.raises(DataError, match=": 0 captions for 3 images"):
        read_collection(tmp_path)


def test_an_empty_caption_is_named_or_left_out_and_counted(tmp_path: Path) -> None:
    write(tmp_path, "test", features(2, 2, 4), 4)
    (tmp_path / "test_caps.txt").write_text("one\ntwo\n\nfour\n")
    with pytest.raises(CaptionError, match=r"test_caps.txt, line 3 is empty"):
        read_collection(tmp_path)
    found = read_collection(tmp_path, skip_bad_captions=True)
    assert found.captions == ["one", "two", "four"]
    assert found.caption_ids == ["test-0#0", "test-0#1", "test-1#1"]
    assert found.caption_image.tolist() == [0, 0, 1]
    assert found.notes == ("1 empty captions left out",)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, "test", features(2, 2, 4), 4)
    (tmp_path / "dev_caps.txt").write_text("one\n")
    with pytest.raises(DataError, match=r"dev_ims.npy does not exist"):
        read_collection(tmp_path)
    with pytest.raises(DataError, match=r"no \*_caps.txt"):
        read_collection(tmp_path / "images", reader="precomp")
