from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import CaptionError
from diptych.encoders.pretrained_towers import shortened


def at_most(letters: int) -> object:
    return lambda text: len(text) <= letters


@pytest.mark.parametrize(
    ("text", "letters", "expected"),
    [
        ("two dogs run", 16, "two dogs run 0 1"),
        ("two dogs run", 15, "two dogs 0 1"),
        ("two dogs run", 8, "two 0 1"),
        ("two dogs run", 6, "tw 0 1"),  # the first word does not fit whole
        ("two dogs run", 3, "0 1"),
        ("two  dogs\trun ", 14, "two  dogs 0 1"),  # white space inside is the text's own
        ("狗狗狗狗", 5, "狗 0 1"),
        ("", 10, "0 1"),
        ("  two", 6, "0 1"),  # white space alone is nothing
    ],
)
def test_words_are_left_out_from_the_end(text: str, letters: int, expected: str) -> None:
    assert shortened(text, "0 1", at_most(letters)) == expected  # type: ignore[arg-type]


def test_an_ending_that_never_fits_is_named() -> None:
    with pytest.raises(CaptionError, match="'0 1 2' is longer"):
        shortened("a dog", "0 1 2", at_most(4))  # type: ignore[arg-type]


@given(
    st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=12).map(" ".join),
    st.integers(4, 60),
)
def test_as_much_as_fits_and_no_more(text: str, letters: int) -> None:
    result = shortened(text, "7 7", at_most(letters))  # type: ignore[arg-type]
    assert len(result) <= letters
    assert result.endswith("7 7")
    kept = result[:-3].rstrip()
    assert text.startswith(kept)
    rest = text[len(kept) :]
    if rest and text.split()[0] in kept.split():
        next_word = rest.split()[0]
        assert len(f"{kept} {next_word} 7 7") > letters
