"""Tokens as the published code had them."""

from __future__ import annotations

import pytest

from diptych.analysis.perturbations import Caption
from diptych.analysis.perturbations.published_typos import nltk_tokens, spacy_like_tokens
from diptych.data.language import words_of


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("A red dog, an old man.", ["A", "red", "dog", ",", "an", "old", "man", "."]),
        ("the man's t-shirt isn't $5", ["the", "man", "'s", "t-shirt", "is", "n't", "$", "5"]),
        ('he "sits"...', ["he", "``", "sits", "''", "..."]),
        ("It sits. It runs.", ["It", "sits.", "It", "runs", "."]),  # read as one sentence
        ("", []),
        ("a \ud800 🐕", ["a", "\ud800", "🐕"]),
    ],
)
def test_nltks(text: str, tokens: list[str]) -> None:
    pytest.importorskip("nltk")
    assert nltk_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens", "tags"),
    [
        ("A red dog.", ["A", "red", "dog", "."], ["T0", "T1", "T2", "."]),
        ("men's T-shirt", ["men", "'s", "T", "-", "shirt"], ["T0", "'s", "T1", "-", "T1"]),
        (
            "black-and-white",
            ["black", "-", "and", "-", "white"],
            ["T0", "-", "T0", "-", "T0"],
        ),
        ("Can’t, ISN'T!", ["Ca", "n’t", ",", "IS", "N'T", "!"], ["T0", "n’t", ",", "T1", "N'T", "!"]),
        ("n't 's o'clock", ["n't", "'", "s", "o'clock"], ["T0", "'", "T1", "T2"]),
        ("", [], []),
        ("כלב 🐕 12", ["כלב", "🐕", "12"], ["T0", "🐕", "T1"]),
    ],
)
def test_spacys_are_stood_in_for(text: str, tokens: list[str], tags: list[str]) -> None:
    caption = Caption(text, tags=[f"T{place}" for place in range(len(words_of(text)))])
    assert spacy_like_tokens(caption) == (tokens, tags)
