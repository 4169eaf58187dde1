from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data.language import is_word, words_of
from diptych.data.vocabulary import words as words_of_a_vocabulary


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two small dogs run.", ["Two", "small", "dogs", "run"]),
        ("a medium-sized dog's toy, isn't it?", ["a", "medium-sized", "dog's", "toy", "isn't", "it"]),
        ("३ कुत्ते दौड़ते हैं।", ["३", "कुत्ते", "दौड़ते", "हैं"]),
        ("cafe\u0301 au lait", ["cafe\u0301", "au", "lait"]),
        ("كلب صغير", ["كلب", "صغير"]),
        ("🐶 12 🐱", ["12"]),
        ("- ' … !", []),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert [word.text for word in words_of(text)] == words


def test_marks_are_read_one_by_one() -> None:
    assert [word.text for word in words_of("Stop!! (now)", marks=True)] == ["Stop", "!", "!", "(", "now", ")"]
    assert [is_word(token) for token in ("now", "_", "7", "(", "🐶", "é")] == [
        True,
        True,
        True,
        False,
        False,
        True,
    ]


@given(st.text())
def test_places_are_places_and_nothing_but_blanks_is_left_out(text: str) -> None:
    found = words_of(text, marks=True)
    assert all(text[word.start : word.end] == word.text for word in found)
    assert [word for word in found if is_word(word.text)] == words_of(text)
    left = list(text)
    for word in found:
        left[word.start : word.end] = [""] * (word.end - word.start)
    assert not re.search(r"\S", "".join(left)) or all(
        unicodedata.category(letter)[0] in "MZC" for letter in "".join(left).strip()
    )


@given(st.lists(st.sampled_from(["dog's", "medium-sized", "3", "a_b", "naïve", "कुत्ता", "e\u0301t"])))
def test_a_word_that_moves_takes_the_vocabulary_s_words_along(words: list[str]) -> None:
    caption, moved = " ".join(words), " ".join(reversed(words))
    assert sorted(words_of_a_vocabulary(caption)) == sorted(words_of_a_vocabulary(moved))
    assert [word.text for word in words_of(moved)] == [word.text for word in words_of(caption)][::-1]
