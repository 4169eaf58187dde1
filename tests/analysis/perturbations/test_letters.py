"""Letters of words, their case, and places drawn apart."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.perturbations.letters import drawn_apart, in_case_of, letters_of, with_changes
from diptych.core.draws import Draws
from diptych.data.language import words_of


def letters(text: str) -> list[str]:
    return [letter.text for word in words_of(text) for letter in letters_of(word)]


def test_accents_and_syllables_are_never_parted() -> None:
    assert letters("don't, A1!") == ["d", "o", "n", "t", "A", "1"]
    assert letters("cafe\u0301") == ["c", "a", "f", "e\u0301"]
    assert letters("हिन्दी") == ["हि", "न्", "दी"]
    assert letters("\u1112\u1161\u11ab\u1100\u116e\u11a8") == ["\u1112\u1161\u11ab", "\u1100\u116e\u11a8"]
    assert letters("a_\u0301b") == ["a", "b"]
    assert letters("1\ufe0f\u20e3 🎉") == ["1\ufe0f\u20e3"]


@given(st.text())
def test_letters_stand_where_they_say(text: str) -> None:
    found = [letter for word in words_of(text) for letter in letters_of(word)]
    assert all(text[letter.start : letter.end] == letter.text for letter in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("letter", "model", "expected"),
    [("a", "B", "A"), ("A", "b", "a"), ("A", "1", "A"), ("1", "B", "1"), ("ß", "B", "ß"), ("é", "B", "É")],
)
def test_case_of_the_place(letter: str, model: str, expected: str) -> None:
    assert in_case_of(letter, model) == expected


def test_places_are_drawn_evenly_and_each_in_another_word() -> None:
    places = [(0, "a"), (0, "b"), (0, "c"), (1, "d")]
    first = Counter(drawn_apart(places, Draws(seed), 1)[0] for seed in range(4000))
    assert set(first) == set("abcd")
    assert all(900 < count < 1100 for count in first.values())
    for seed in range(50):
        both = drawn_apart(places, Draws(seed), 5)
        assert len(both) == 2
        assert "d" in both


def test_changes_are_made_apart() -> None:
    assert with_changes("abcdef", [(4, 5, "X"), (0, 2, ""), (3, 3, "--")]) == "c--dXf"
    assert with_changes("", []) == ""
