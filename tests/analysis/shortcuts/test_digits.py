from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from PIL import Image

from diptych.analysis.shortcuts import DigitImages, load_digits
from diptych.analysis.shortcuts.drawn_digits import DRAWN_OF_EACH, drawn_digits
from diptych.core.errors import DataError, MissingExtraError, UsageError


def flat(side: int = 4, each: int = 2) -> DigitImages:
    """Pictures of one shade: 10 × digit + number."""
    classes = [
        np.stack([np.full((side, side), 10 * digit + number, np.uint8) for number in range(each)])
        for digit in range(10)
    ]
    return DigitImages("flat", classes)


def test_pictures_of_the_size_asked_for_are_untouched() -> None:
    drawn = load_digits("drawn")
    sized = drawn.at_size(28)
    for digit in range(10):
        assert sized.grey(digit, 3) is not None
        assert np.shares_memory(sized.grey(digit, 3), drawn.classes[digit])
        np.testing.assert_array_equal(sized.grey(digit, 3), drawn.classes[digit][3])


def test_other_sizes_are_what_pillow_makes_of_them() -> None:
    drawn = load_digits("drawn")
    found = drawn.at_size(10).grey(7, 1)
    expected = Image.fromarray(drawn.classes[7][1]).resize((10, 10), Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(found, np.asarray(expected))
    assert (found.dtype, found.shape) == (np.uint8, (10, 10))
    sized = drawn.at_size(10)
    assert sized.grey(7, 1) is sized.grey(7, 1)  # made once


def test_labelled_pictures_come_under_their_digit() -> None:
    labels = np.array([*range(10), 3, 0])
    pictures = np.arange(12, dtype=np.uint8)[:, None, None].repeat(2, 1).repeat(2, 2)
    found = DigitImages.of_labelled("a file", pictures, labels)
    assert found.counts.tolist() == [2, 1, 1, 2, 1, 1, 1, 1, 1, 1]
    assert found.classes[3][:, 0, 0].tolist() == [3, 10]
    assert found.classes[0][:, 0, 0].tolist() == [0, 11]


@pytest.mark.parametrize(
    ("pictures", "labels", "message"),
    [
        (np.zeros((10, 2, 2), np.uint8), np.arange(10) % 9, "a file holds no picture of the digit 9"),
        (np.zeros((10, 2, 2), np.float32), np.arange(10), r"as float32 of shape \(10, 2, 2\)"),
        (np.zeros((10, 4), np.uint8), np.arange(10), r"as uint8 of shape \(10, 4\)"),
        (np.zeros((10, 2, 3), np.uint8), np.arange(10), r"digit 0 are uint8 of shape \(1, 2, 3\)"),
        (np.zeros((11, 2, 2), np.uint8), np.arange(10), r"11 pictures and labels as int64 of shape \(10,\)"),
        (np.zeros((10, 2, 2), np.uint8), np.arange(10.0), "labels as float64"),
        (np.zeros((10, 2, 2), np.uint8), np.arange(1, 11), "picture 9 has the label 10"),
        (np.zeros((10, 2, 2), np.uint8), np.arange(-1, 9), "picture 0 has the label -1"),
    ],
)
def test_what_is_no_set_of_digits(pictures: np.ndarray, labels: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        DigitImages.of_labelled("a file", pictures, labels)


def test_ten_classes() -> None:
    with pytest.raises(DataError, match="9 classes of digits, 10 expected"):
        DigitImages("nine", flat().classes[:9])


def test_the_fingerprint_is_of_the_pixels() -> None:
    changed = flat()
    changed.classes[4] = changed.classes[4] + np.uint8(1)
    assert flat().fingerprint == flat().fingerprint != changed.fingerprint


def test_scikit_learns_digits() -> None:
    from sklearn.datasets import load_digits as bundled

    found, given = load_digits("sklearn"), bundled()
    assert found.counts.sum() == 1797
    first_eight = given.images[given.target == 8][0]
    np.testing.assert_array_equal(found.classes[8][0], np.rint(first_eight * 255 / 16).astype(np.uint8))
    assert {pictures.max() for pictures in found.classes} == {255}


def test_auto_takes_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_digits("auto").name == "scikit-learn's digits"
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "diptych.analysis.shortcuts.digits.find_spec", lambda name: None if name == "sklearn" else find(name)
    )
    assert load_digits("auto").name == "drawn digits"


def test_sklearn_that_is_not_installed_names_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match=r"needs sklearn.*pip install 'diptych\[targets\]'"):
        load_digits("sklearn")


def test_neither_a_file_nor_a_name() -> None:
    with pytest.raises(UsageError, match="digits 'mnist': there is no such file"):
        load_digits("mnist")


def test_drawn_digits_are_the_same_every_time_and_tell_each_other_apart() -> None:
    first = load_digits("drawn")
    assert first.fingerprint == drawn_digits.__wrapped__().fingerprint
    assert first.counts.tolist() == [DRAWN_OF_EACH] * 10
    pictures = np.concatenate(first.classes).astype(np.float64).reshape(10, DRAWN_OF_EACH, -1)
    assert len(np.unique(pictures.reshape(10 * DRAWN_OF_EACH, -1), axis=0)) == 10 * DRAWN_OF_EACH
    # Half of each class teaches a nearest mean to read the other half.
    means = pictures[:, ::2].mean(axis=1)
    rest = pictures[:, 1::2].reshape(-1, 784)
    nearest = ((rest[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == np.repeat(np.arange(10), DRAWN_OF_EACH // 2)).mean() > 0.8
