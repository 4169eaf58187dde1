"""Typos as published, against what the published code gave."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diptych.analysis.perturbations import PERTURBATIONS, TextPerturbation, Unchanged, perturb_captions
from diptych.analysis.perturbations.published_typos import (
    extra_character,
    letter_change,
    missing_character,
    nearby_character,
    swapped_characters,
)
from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "golden" / "typos_distraction.json").read_text(encoding="utf-8")
)

NAMES = {
    "char_swap": "character-swap",
    "missing_char": "missing-character",
    "extra_char": "extra-character",
    "nearby_char": "nearby-character",
    "probability_based_letter_change": "letter-change",
    "distraction_true": "distraction-true",
    "distraction_false": "distraction-false",
}


@pytest.mark.parametrize("published", list(NAMES))
def test_what_the_published_code_gave(published: str) -> None:
    kind = PERTURBATIONS.get(NAMES[published])
    assert isinstance(kind, TextPerturbation)
    captions = GOLDEN["captions"]
    done = perturb_captions(kind, captions, [str(row) for row in range(len(captions))], compat="published")
    assert done.seed == 42
    for caption, expected, text in zip(captions, GOLDEN["out"][published], done.texts, strict=True):
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
    kind = PERTURBATIONS.get("character-swap")
    assert isinstance(kind, TextPerturbation)
    with pytest.raises(UsageError, match="compat=published with options \\(edits=2\\)"):
        perturb_captions(kind, ["a dog"], ["x"], compat="published", options={"edits": 2})
    same = perturb_captions(kind, ["a dog"], ["x"], compat="published", options={"edits": 1})
    assert same.n_changed == 1
