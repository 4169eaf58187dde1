from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from miniatures import karpathy
from refusals import refused

from diptych.core.errors import DataError, ImageError, UsageError
from diptych.data.loading import picture_contents
from diptych.data.readers import read_collection
from diptych.data.regions import RegionSource, open_regions


def features(n: int, *shape: int, kind: str = "float32") -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, *shape)).astype(kind)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three images in Karpathy's JSON, with pictures, and features in the JSON's order."""
    karpathy(tmp_path, {f"val2014/{name}.png": ("test", [f"one {name}"]) for name in "abc"}, "tiny")
    np.save(tmp_path / "regions.npy", features(3, 4, 5))
    return tmp_path


def test_regions_in_the_order_of_the_json(folder: Path) -> None:
    found = read_collection(folder, regions=folder / "regions.npy")
    assert found.holds == "regions"
    assert "3 images as region features" in found.describe()
    assert np.array_equal(found.item(2), features(3, 4, 5)[2])
    assert np.array_equal(found.subset([2, 0]).item(0), features(3, 4, 5)[2])
    # Reports still find the pictures.
    assert found.image(1).size == (4, 4)
    assert read_collection(folder).holds == "pictures"


def test_regions_by_name(folder: Path) -> None:
    np.save(folder / "more.npy", features(4, 4, 5))
    (folder / "ids.txt").write_text("c\nelsewhere\nb.png\ntrain2014/a.jpg\n")
    found = read_collection(folder, regions=folder / "more.npy", region_ids=folder / "ids.txt")
    for image, row in enumerate((3, 2, 0)):
        assert np.array_equal(found.item(image), features(4, 4, 5)[row])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (None, "holds features of 4 images, the data has 3"),
        ("a\nb\nc\n", "names 3 images, .* holds features of 4"),
        ("a\nb\nd\ne\n", "does not name 1 of 3 images, the first: val2014/c.png"),
        ("a\nb\nc\nx/a.png\n", "names 'a' twice, the second time in line 4"),
    ],
)
def test_features_that_do_not_fit_the_images(folder: Path, ids: str | None, message: str) -> None:
    np.save(folder / "more.npy", features(4, 4, 5))
    if ids is not None:
        (folder / "ids.txt").write_text(ids)
    region_ids = None if ids is None else folder / "ids.txt"
    refused(DataError, message, read_collection, folder, regions=folder / "more.npy", region_ids=region_ids)


def test_what_are_no_features_or_ids(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"region_ids .*ids.txt without regions"):
        read_collection(folder, region_ids=folder / "ids.txt")
    with pytest.raises(DataError, match=r"gone.txt does not exist"):
        read_collection(folder, regions=folder / "regions.npy", region_ids=folder / "gone.txt")
    file = folder / "x.npy"
    refused(DataError, r"x\.npy does not exist", open_regions, file)
    for array, message in (
        (np.zeros((3, 2), np.int64), r"holds int64 of shape \(3, 2\), no region features"),
        (np.zeros(3), r"holds float64 of shape \(3,\)"),
        (np.zeros((3, 1, 1, 1)), r"of shape \(3, 1, 1, 1\)"),
        (np.array([{}], dtype=object), "is corrupt"),
    ):
        np.save(file, array, allow_pickle=True)
        refused(DataError, message, open_regions, file)
    file.write_text("hello")
    refused(DataError, "is corrupt", open_regions, file)


def test_several_arrays_are_one_and_one_vector_is_one_region() -> None:
    source = RegionSource([features(2, 4, 5), features(3, 4, 5, kind="float16")], "both")
    assert source.shape == (4, 5)
    assert np.array_equal(source.regions(1), features(2, 4, 5)[1])
    assert source.regions(2).dtype == np.float32
    assert np.array_equal(source.regions(4), features(3, 4, 5, kind="float16")[2].astype(np.float32))
    assert RegionSource([features(2, 5)], "flat").regions(1).shape == (1, 5)
    with pytest.raises(DataError, match=r"different shapes: \[\(1, 5\), \(4, 5\)\]"):
        RegionSource([features(2, 4, 5), features(2, 5)], "mixed")
    refused(ImageError, "both holds region features and no pictures", source.read, 0)


def test_contents_are_of_the_features(folder: Path) -> None:
    before = picture_contents(read_collection(folder, regions=folder / "regions.npy"))
    values = features(3, 4, 5)
    values[1, 2, 3] += 1
    np.save(folder / "regions.npy", values)
    after = picture_contents(read_collection(folder, regions=folder / "regions.npy"))
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]


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
    for split, rows in {"train": 4, "val": 2, "test": 3}.items():
        part = found.split(split)
        assert all(np.array_equal(part.item(row), features(rows, 2, 4)[row]) for row in range(part.n_images))


def test_as_many_captions_as_images_that_differ_are_pairs(tmp_path: Path) -> None:
    rows = np.repeat(features(3, 2, 4), 5, axis=0)
    rows[14, 1, 3] += 1e-3  # the very last number
    write(tmp_path, "train", rows, 15)
    found = read_collection(tmp_path)
    assert found.n_images == 15
    assert found.captions_per_image.tolist() == [1] * 15
    assert found.notes == ()


def test_captions_that_are_no_multiple_of_images_or_missing(tmp_path: Path) -> None:
    write(tmp_path, "test", features(3, 2, 4), 10)
    refused(DataError, "test: 10 captions for 3 images", read_collection, tmp_path)
    write(tmp_path, "test", features(3, 2, 4), 0)
    refused(DataError, ": 0 captions for 3 images", read_collection, tmp_path)
    write(tmp_path, "test", features(2, 2, 4), 4)
    (tmp_path / "dev_caps.txt").write_text("one\n")
    refused(DataError, r"dev_ims.npy does not exist", read_collection, tmp_path)
    refused(DataError, r"no \*_caps.txt", read_collection, tmp_path / "images", reader="precomp")
