"""Images of digits: drawn, bundled and from files, over images, and codes written as digits."""

from __future__ import annotations

import gzip
import importlib.util
import io
import struct
import sys
import zipfile

import numpy as np
import pytest
from drawn_digits import drawn_anew
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError
from refusals import refused

from diptych.analysis.shortcuts import DIGIT_WORDS, ShortcutOptions, check_fit, load_digits, with_ending
from diptych.analysis.shortcuts.codes import (
    N_CODES,
    DigitOverlay,
    code_text,
    digits_of,
    ending_of,
)
from diptych.analysis.shortcuts.digits import DRAWN_OF_EACH, DigitImages, read_digit_file
from diptych.core.errors import DataError, ImageError, MissingExtraError, UsageError
from diptych.data.images import pasted
from diptych.data.vocabulary import words

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (23, 28, 28)).astype(np.uint8)
LABELS = (np.arange(23) % 10).astype(np.uint8)
DRAWN = load_digits("drawn")


@pytest.mark.parametrize(
    ("pictures", "labels", "message"),
    [
        (np.zeros((10, 2, 2), np.uint8), np.arange(10) % 9, "a file holds no picture of the digit 9"),
        (np.zeros((10, 2, 2), np.float32), np.arange(10), r"as float32 of shape \(10, 2, 2\)"),
        (np.zeros((10, 4), np.uint8), np.arange(10), r"as uint8 of shape \(10, 4\)"),
        (np.zeros((10, 2, 3), np.uint8), np.arange(10), r"as uint8 of shape \(10, 2, 3\)"),
        (np.zeros((11, 2, 2), np.uint8), np.arange(10), r"11 pictures and labels as int64 of shape \(10,\)"),
        (np.zeros((10, 2, 2), np.uint8), np.arange(10.0), "labels as float64"),
        (np.zeros((10, 2, 2), np.uint8), np.arange(1, 11), "picture 9 has the label 10"),
        (np.zeros((10, 2, 2), np.uint8), np.arange(-1, 9), "picture 0 has the label -1"),
    ],
)
def test_what_is_no_set_of_digits(pictures, labels, message):
    refused(DataError, message, DigitImages.of_labelled, "a file", pictures, labels)


def test_scikit_learns_digits():
    from sklearn.datasets import load_digits as bundled

    found, given = load_digits("sklearn"), bundled()
    assert found.counts.sum() == 1797
    first_eight = given.images[given.target == 8][0]
    np.testing.assert_array_equal(found.classes[8][0], np.rint(first_eight * 255 / 16).astype(np.uint8))
    assert {pictures.max() for pictures in found.classes} == {255}


def test_auto_takes_what_is_there(monkeypatch):
    assert load_digits("auto").name == "scikit-learn's digits"
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "diptych.analysis.shortcuts.digits.find_spec", lambda name: None if name == "sklearn" else find(name)
    )
    assert load_digits("auto").name == "drawn digits"


def test_sklearn_that_is_not_installed_names_its_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    refused(MissingExtraError, r"needs sklearn.*pip install 'diptych\[targets\]'", load_digits, "sklearn")


def test_neither_a_file_nor_a_name():
    refused(UsageError, "digits 'mnist': there is no such file", load_digits, "mnist")


def test_drawn_digits_are_the_same_every_time_and_tell_each_other_apart():
    first = load_digits("drawn")
    # another Pillow may round a pixel otherwise
    apart = np.subtract(np.stack(first.classes), np.stack(drawn_anew()), dtype=np.int16)
    assert np.abs(apart).max() <= 8
    assert first.counts.tolist() == [DRAWN_OF_EACH] * 10
    pictures = np.concatenate(first.classes).astype(np.float64).reshape(10, DRAWN_OF_EACH, -1)
    assert len(np.unique(pictures.reshape(10 * DRAWN_OF_EACH, -1), axis=0)) == 10 * DRAWN_OF_EACH
    # Half of each class teaches a nearest mean to read the other half.
    means = pictures[:, ::2].mean(axis=1)
    rest = pictures[:, 1::2].reshape(-1, 784)
    nearest = ((rest[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == np.repeat(np.arange(10), DRAWN_OF_EACH // 2)).mean() > 0.8


def write_idx(folder, zipped=False, dots=False):
    """MNIST's two training files; gives the pictures'."""
    mark = "." if dots else "-"
    ending, opener = (".gz", gzip.open) if zipped else ("", open)
    images = folder / f"train-images{mark}idx3-ubyte{ending}"
    with opener(images, "wb") as handle:
        handle.write(struct.pack(">IIII", 0x803, *PICTURES.shape) + PICTURES.tobytes())
    with opener(folder / f"train-labels{mark}idx1-ubyte{ending}", "wb") as handle:
        handle.write(struct.pack(">II", 0x801, len(LABELS)) + LABELS.tobytes())
    return images


def check(path):
    found = load_digits(str(path))
    assert found.counts.tolist() == [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]
    for digit in range(10):
        np.testing.assert_array_equal(found.classes[digit], PICTURES[digit == LABELS])


@pytest.mark.parametrize(
    "keys", [("x_train", "y_train"), ("images", "labels"), ("train_images", "train_labels")]
)
def test_archives(tmp_path, keys):
    more = {"x_test": PICTURES[:3], "y_test": LABELS[:3]}
    np.savez(tmp_path / "d.npz", **{keys[0]: PICTURES, keys[1]: LABELS.astype(np.int64)}, **more)
    check(tmp_path / "d.npz")
    np.savez_compressed(tmp_path / "c.npz", **{keys[0]: PICTURES, keys[1]: LABELS})
    check(tmp_path / "c.npz")


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("dots", [False, True])
def test_idx(tmp_path, zipped, dots):
    check(write_idx(tmp_path, zipped, dots))


def archive(path, **arrays):
    np.savez(path / "d.npz", **arrays)
    return path / "d.npz"


def promise(path):
    """An archive whose header says a million pictures."""
    header = io.BytesIO()
    shape = {"descr": "|u1", "fortran_order": False, "shape": (10**6, 28, 28)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(path / "d.npz", "w") as file:
        file.writestr("x_train.npy", header.getvalue())
        file.writestr("y_train.npy", b"")
    return path / "d.npz"


def changed(path, change):
    """The pictures of MNIST's files with other bytes."""
    images = write_idx(path)
    images.write_bytes(change(images.read_bytes()))
    return images


def file(path, name, content):
    (path / name).write_bytes(content)
    return path / name


def alone(path):
    images = write_idx(path)
    (path / "train-labels-idx1-ubyte").unlink()
    return images


BOMB = gzip.compress(struct.pack(">IIII", 0x803, 10**6, 28, 28) + bytes(10**6))
HEADER = struct.pack(">IIII", 0x803, 1, 1, 4)
OBJECTS = np.array([None, {}], dtype=object)
DAMAGED = [
    (lambda path: archive(path, a=PICTURES, b=LABELS), "holds the arrays a, b .*x_train or images"),
    (lambda path: archive(path, x_train=OBJECTS, y_train=LABELS), "holds Python objects, not numbers"),
    (promise, "takes 784,000,000 bytes, it has 0"),
    (alone, r"the labels of .* are not beside it: train-labels-idx1-ubyte or"),
    (lambda path: changed(path, lambda content: content[:-5]), "holds 18,027 bytes, its header says 18,032"),
    (lambda path: changed(path, lambda content: content + b"0"), "holds more than 18,032 bytes"),
    (lambda path: changed(path, lambda content: b"\0\0\x0d\3" + content[4:]), "it begins with 00 00 0d 03"),
    (lambda path: changed(path, lambda content: b""), "it begins with nothing"),
    (lambda path: changed(path, lambda content: BOMB), "has 784,000,000 bytes, more than the 500,000,000"),
    (lambda path: changed(path, lambda content: gzip.compress(content)[:-40]), "is corrupt"),
    (lambda path: file(path, "d.npz", b"PK is how it begins"), "is corrupt"),
    (lambda path: file(path, "digits.bin", HEADER + b"1234"), "neither an .npz archive nor"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGED)
def test_damaged_files_are_named(tmp_path, damage, message):
    path = damage(tmp_path)
    with pytest.raises(DataError, match=message) as caught:
        read_digit_file(path)
    assert str(tmp_path) in str(caught.value)


@given(st.integers(0, N_CODES - 1))
def test_a_code_is_six_digits_wherever_it_is_written(code):
    text = code_text(code)
    assert len(text) == 6
    assert int(text) == code
    assert digits_of(code).tolist() == [int(letter) for letter in text]
    assert ending_of(code).split(" ") == list(text)
    assert set(text) <= set(DIGIT_WORDS)
    assert words(with_ending("A man's hat.", ending_of(code))) == ["a", "man's", "hat", ".", *text]


def overlay(*codes, size=28):
    digits = digits_of(np.array(codes))
    pictures = (np.arange(digits.size).reshape(digits.shape) * 7) % 40
    return DigitOverlay(digits, pictures, DRAWN.at_size(size))


def as_published(pixels, code, pictures):
    """Pillow's own paste of greys into RGB, side by side, the code's digits evenly spaced."""
    image = Image.fromarray(pixels.copy())
    for place, picture in enumerate(pictures):
        image.paste(Image.fromarray(picture), (place * (image.size[0] // 6), 0))
    assert len(code) == len(pictures) == 6
    return np.asarray(image)


@pytest.mark.parametrize("width", [168, 200, 224, 299])
def test_pixel_for_pixel_as_pillow_pastes(width):
    pixels = np.random.default_rng(0).integers(0, 256, (180, width, 3)).astype(np.uint8)
    made = overlay(39_965)
    pictures = [DRAWN.classes[int(d)][n] for d, n in zip("039965", made.pictures[0], strict=True)]
    np.testing.assert_array_equal(pasted(pixels, made), as_published(pixels, "039965", pictures))


def test_the_key_is_what_is_shown():
    base = overlay(1234)
    assert base.key == overlay(1234).key
    other = DigitOverlay(base.digits, base.pictures[:, ::-1], base.drawn)
    keys = {base.key, other.key, overlay(1235).key, overlay(1234, size=20).key, overlay(1234, 1234).key}
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("width", "height", "rows", "size", "message"),
    [
        (167, 224, 1, 28, "1 row of 6 digits of 28 pixels take 168 × 28 pixels, the picture has 167 × 224"),
        (224, 27, 1, 28, r"the picture has 224 × 27 \(set shortcuts.digit_size to at most 27"),
        (224, 224, 9, 28, "9 rows of 6 digits of 28 pixels take 168 × 252 .* at most 24, or prepare larger"),
        (20, 20, 1, 5, r"the picture has 20 × 20 \(prepare larger pictures"),
    ],
)
def test_a_picture_smaller_than_its_digits(width, height, rows, size, message):
    refused(ImageError, message, check_fit, width, height, rows, size)
    refused(ImageError, message, overlay(*range(rows), size=size).patches, width, height)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"setup": "bits"}, "setup 'bits' needs bits, 0 to 13"),
        ({"bits": 8}, "setup 'unique' needs no bits"),
        ({"setup": "bits", "bits": 14}, "less than or equal to 13"),
        ({"setup": "bits", "bits": -1}, "greater than or equal to 0"),
        ({"setup": "everything"}, "Input should be 'none', 'unique'"),
        ({"carries": "one"}, "carries = 'one' belongs to 'per-caption'"),
        ({"setup": "none", "shuffled": True}, "no unique numbers that could be shuffled"),
        ({"setup": "per-caption", "compat": "published"}, "never published"),
        ({"digit_size": 4}, "greater than or equal to 5"),
        ({"digist": "drawn"}, "Extra inputs"),
    ],
)
def test_impossible_options(values, message):
    refused(ValidationError, message, ShortcutOptions.model_validate, values)
