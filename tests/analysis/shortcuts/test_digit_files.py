from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from diptych.analysis.shortcuts import load_digits
from diptych.analysis.shortcuts.digit_files import MAX_BYTES, read_digit_file, read_idx
from diptych.core.errors import DataError

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (23, 28, 28)).astype(np.uint8)
LABELS = (np.arange(23) % 10).astype(np.uint8)


def write_idx(folder: Path, zipped: bool = False, dots: bool = False) -> Path:
    """MNIST's two training files; gives the pictures'."""
    mark = "." if dots else "-"
    ending, opener = (".gz", gzip.open) if zipped else ("", open)
    images = folder / f"train-images{mark}idx3-ubyte{ending}"
    with opener(images, "wb") as handle:
        handle.write(struct.pack(">IIII", 0x803, *PICTURES.shape) + PICTURES.tobytes())
    with opener(folder / f"train-labels{mark}idx1-ubyte{ending}", "wb") as handle:
        handle.write(struct.pack(">II", 0x801, len(LABELS)) + LABELS.tobytes())
    return images


def check(path: Path) -> None:
    found = load_digits(str(path))
    assert found.counts.tolist() == [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]
    for digit in range(10):
        np.testing.assert_array_equal(found.classes[digit], PICTURES[digit == LABELS])


@pytest.mark.parametrize(
    "keys", [("x_train", "y_train"), ("images", "labels"), ("train_images", "train_labels")]
)
def test_archives(tmp_path: Path, keys: tuple[str, str]) -> None:
    more = {"x_test": PICTURES[:3], "y_test": LABELS[:3]}
    np.savez(tmp_path / "d.npz", **{keys[0]: PICTURES, keys[1]: LABELS.astype(np.int64)}, **more)
    check(tmp_path / "d.npz")
    np.savez_compressed(tmp_path / "c.npz", **{keys[0]: PICTURES, keys[1]: LABELS})
    check(tmp_path / "c.npz")


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("dots", [False, True])
def test_idx(tmp_path: Path, zipped: bool, dots: bool) -> None:
    check(write_idx(tmp_path, zipped, dots))
    check(tmp_path)  # the folder will do


def test_pictures_zipped_labels_not(tmp_path: Path) -> None:
    images = write_idx(tmp_path, zipped=True)
    labels = tmp_path / "train-labels-idx1-ubyte.gz"
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(gzip.decompress(labels.read_bytes()))
    labels.unlink()
    check(images)


def test_a_missing_class_names_file_and_digit(tmp_path: Path) -> None:
    np.savez(tmp_path / "no7.npz", x_train=PICTURES[LABELS != 7], y_train=LABELS[LABELS != 7])
    with pytest.raises(DataError, match=r"no7\.npz holds no picture of the digit 7"):
        load_digits(str(tmp_path / "no7.npz"))


def damaged(folder: Path, what: str) -> Path:
    """A file with something wrong."""
    path = folder / "d.npz"
    if what == "other arrays":
        np.savez(path, a=PICTURES, b=LABELS)
    elif what == "objects":
        np.savez(path, x_train=np.array([None, {}], dtype=object), y_train=LABELS)
    elif what == "text":
        path.write_text("PK is how it begins")
    elif what == "cut":
        np.savez(path, x_train=PICTURES, y_train=LABELS)
        path.write_bytes(path.read_bytes()[:-300])
    elif what == "no array":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x_train.npy", b"what?")
            archive.writestr("y_train.npy", b"what?")
    elif what == "promise":
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "|u1", "fortran_order": False, "shape": (10**6, 28, 28)}
        )
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x_train.npy", header.getvalue())
            archive.writestr("y_train.npy", b"")
    elif what == "unnamed":
        path = folder / "digits.bin"
        path.write_bytes(struct.pack(">IIII", 0x803, 1, 2, 2) + b"1234")
    else:
        path = write_idx(folder)
        content = path.read_bytes()
        if what == "labels gone":
            (folder / "train-labels-idx1-ubyte").unlink()
        elif what == "short":
            path.write_bytes(content[:-5])
        elif what == "long":
            path.write_bytes(content + b"0")
        elif what == "magic":
            path.write_bytes(b"\0\0\x0d\3" + content[4:])
        elif what == "empty":
            path.write_bytes(b"")
        elif what == "bomb":
            bomb = gzip.compress(struct.pack(">IIII", 0x803, 10**6, 28, 28) + bytes(10**6))
            path.write_bytes(bomb)
        elif what == "cut gzip":
            path.write_bytes(gzip.compress(content)[:-40])
    return path


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("other arrays", "holds the arrays a, b .*x_train or images"),
        ("objects", "it holds Python objects, not numbers"),
        ("text", "is corrupt"),
        ("cut", "is corrupt"),
        ("no array", "is corrupt"),
        ("promise", "takes 784,000,000 bytes, it has 0"),
        ("unnamed", "neither an .npz archive nor named as IDX"),
        ("labels gone", r"the labels of .* are not beside it: train-labels-idx1-ubyte or"),
        ("short", "holds 18,027 bytes, its header says 18,032"),
        ("long", "holds more than 18,032 bytes, its header says 18,032"),
        ("magic", "no IDX file of 3 dimensions of bytes: it begins with 00 00 0d 03"),
        ("empty", "it begins with nothing"),
        ("bomb", "has 784,000,000 bytes, more than the 500,000,000"),
        ("cut gzip", "is corrupt"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, what: str, message: str) -> None:
    path = damaged(tmp_path, what)
    with pytest.raises(DataError, match=message) as caught:
        read_digit_file(path)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_without_digits(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no train-images-idx3-ubyte\[\.gz\]"):
        load_digits(str(tmp_path))


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_idx(tmp_path / "nothing", 1)


def test_the_limit_leaves_room_for_mnist() -> None:
    assert MAX_BYTES > 60_000 * 28 * 28
