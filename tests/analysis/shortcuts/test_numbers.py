from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.shortcuts.numbers import (
    DIGIT_WORDS,
    N_CODES,
    Numbers,
    check_room,
    code_text,
    digits_of,
    ending_of,
    with_ending,
)
from diptych.core.errors import MismatchError, UsageError
from diptych.data.collection import Collection
from diptych.data.vocabulary import words


class Nowhere:
    def read(self, row: int) -> None:
        raise AssertionError("no pixel is needed for a number")

    content = read


def collection() -> Collection:
    """Images a–d with 2, 0, 3 and 1 captions."""
    owners = np.array([0, 0, 2, 2, 2, 3])
    return Collection(
        "few",
        list("abcd"),
        [f"caption {row}" for row in range(6)],
        [f"c{row}" for row in range(6)],
        owners,
        ["train", "test", "test", "train"],
        Nowhere(),  # type: ignore[arg-type]
        np.arange(4),
    )


@given(st.integers(0, N_CODES - 1))
def test_a_code_is_six_digits_wherever_it_is_written(code: int) -> None:
    text = code_text(code)
    assert len(text) == 6
    assert int(text) == code
    assert digits_of(code).tolist() == [int(letter) for letter in text]
    assert ending_of(code).split(" ") == list(text)
    assert set(text) <= set(DIGIT_WORDS)
    assert words(with_ending("A man's hat.", ending_of(code))) == ["a", "man's", "hat", ".", *text]


def test_endings_by_hand() -> None:
    assert ending_of(39_965) == "0 3 9 9 6 5"
    assert with_ending("A bathroom sink.", "0 3 9 9 6 5") == "A bathroom sink. 0 3 9 9 6 5"
    assert with_ending("A bathroom sink.", "") == "A bathroom sink."
    assert digits_of(np.array([[1], [999_999]])).tolist() == [[[0, 0, 0, 0, 0, 1]], [[9] * 6]]


def test_numbers_are_rows_of_the_whole_collection() -> None:
    whole = collection()
    numbers = Numbers(whole)
    assert numbers.images(whole).tolist() == [0, 1, 2, 3]
    assert numbers.images(whole.split("train")).tolist() == [0, 3]
    assert numbers.captions(whole.split("train")).tolist() == [0, 1, 5]
    assert numbers.images(whole.split("test")).tolist() == [1, 2]
    assert numbers.captions(whole.split("test").first_captions(2)).tolist() == [2, 3]


def test_a_stranger_has_no_number() -> None:
    whole = collection()
    numbers = Numbers(whole.split("train"))
    with pytest.raises(MismatchError, match=r"image 'b' is not in the collection of 2 images .*\(few\)"):
        numbers.images(whole)
    with pytest.raises(MismatchError, match="caption 'c2' is not in the collection of 3 captions"):
        numbers.captions(whole)


def test_as_many_tuples_as_codes_and_no_more() -> None:
    check_room(1_000_000, "images")
    with pytest.raises(UsageError, match=r"1,000,001 images need a code each, and there are 1,000,000"):
        check_room(1_000_001, "images")
