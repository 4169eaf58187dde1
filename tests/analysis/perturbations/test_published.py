"""Captions as published, against what the published code gave."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from perturbing import perturbed

from diptych.analysis.perturbations import Caption, Unchanged, published
from diptych.analysis.perturbations.published import (
    extra_character,
    letter_change,
    missing_character,
    nearby_character,
    nltk_tokens,
    spacy_like_tokens,
    swapped_characters,
)
from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data.language import words_of

FOLDER = Path(__file__).parents[2] / "golden"
GOLDEN: dict[str, Any] = json.loads((FOLDER / "typos_distraction.json").read_text(encoding="utf-8"))
SHUFFLED = json.loads((FOLDER / "aro_shuffles.json").read_text(encoding="utf-8"))["cases"]
NAMES = {
    "char_swap": "character-swap",
    "missing_char": "missing-character",
    "extra_char": "extra-character",
    "nearby_char": "nearby-character",
    "probability_based_letter_change": "letter-change",
    "distraction_true": "distraction-true",
    "distraction_false": "distraction-false",
}


@pytest.mark.parametrize("name", list(NAMES))
def test_what_the_published_code_gave(name: str) -> None:
    captions = GOLDEN["captions"]
    done = perturbed(NAMES[name], *captions, compat="published")
    assert done.seed == 42
    for caption, expected, text in zip(captions, GOLDEN["out"][name], done.texts, strict=True):
        assert text == (caption if expected.startswith("!!") else expected)


@pytest.mark.parametrize(
    ("change", "text", "expected"),
    [
        (swapped_characters, "Ab", "Ba"),
        (swapped_characters, "aa", "aa"),
        (swapped_characters, "a b", "a b"),
        (missing_character, "a", "a"),
        (extra_character, "ж", "жж"),
        (nearby_character, "Ж", "Ж"),
        (nearby_character, "", ""),
        (letter_change, "", ""),
    ],
)
def test_corners(change: Callable[[str, int], str], text: str, expected: str) -> None:
    assert change(text, 42) == expected


@pytest.mark.parametrize(
    ("change", "given"),
    [(nearby_character, "efa756b92454e2bb"), (extra_character, "e88931a3708ad06f")],
)
def test_every_key_has_the_neighbours_that_the_package_gives_it(
    change: Callable[[str, int], str], given: str
) -> None:
    """The fingerprints are of what typo 0.1.7 gave: ``StrErrer(character, seed=seed).nearby_char().result``."""
    characters = string.ascii_letters + string.digits
    assert fingerprint([change(one, seed) for seed in range(100) for one in characters]) == given
    assert {change("9", seed) for seed in range(100)} >= {"10" if change is nearby_character else "109"}


def test_one_of_ten_words_gets_a_letter() -> None:
    changed = sum(
        before != after
        for seed in range(300)
        for before, after in zip(["-"] * 20, letter_change("- " * 19 + "-", seed).split(" "), strict=True)
    )
    assert 0.09 < changed / 6000 < 0.11


def test_where_the_published_code_raises_the_caption_stays() -> None:
    digits = [_or_reason(nearby_character, "٣", seed) for seed in range(20)]
    assert set(digits) == {"the published code fails: KeyError", "2", "4"}
    nothing_between = [_or_reason(letter_change, "  ", seed) for seed in range(20)]
    assert set(nothing_between) == {"the published code fails: IndexError", "  "}


def _or_reason(change: Callable[[str, int], str], text: str, seed: int) -> str:
    try:
        return change(text, seed)
    except Unchanged as reason:
        return str(reason)


def test_the_published_code_had_no_options() -> None:
    with pytest.raises(UsageError, match="compat=published with options \\(edits=2\\)"):
        perturbed("character-swap", "a dog", compat="published", options={"edits": 2})
    same = perturbed("character-swap", "a dog", compat="published", options={"edits": 1})
    assert same.n_changed == 1


@pytest.mark.parametrize("case", SHUFFLED, ids=lambda case: f"{len(case['tokens'])}-{case['seed']}")
def test_what_the_published_functions_gave(case: dict[str, Any]) -> None:
    tokens, tags, seed = case["tokens"], case["tags"], case["seed"]
    assert published.shuffle_nouns_and_adjectives(tokens, tags, seed) == case["shuffle_nouns_and_adj"]
    assert (
        published.shuffle_allbut_nouns_and_adjectives(tokens, tags, seed)
        == case["shuffle_allbut_nouns_and_adj"]
    )
    assert published.shuffle_all_words(tokens, seed) == case["shuffle_all_words"]
    assert published.shuffle_within_trigrams(tokens, seed) == case["shuffle_within_trigrams"]
    assert published.shuffle_trigrams(tokens, seed) == case["shuffle_trigrams"]


def test_nothing_to_shuffle() -> None:
    assert published.shuffle_all_words([], 0) == ""
    assert published.shuffle_trigrams(["a"], 0) == "a"
    assert published.shuffle_nouns_and_adjectives(["in", "."], ["IN", "."], 0) == "in ."


def test_a_seed_that_numpy_s_old_generator_cannot_take() -> None:
    with pytest.raises(UsageError, match="seed 4294967296"):
        published.shuffle_all_words(["a"], 2**32)


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
