"""Words of titles, as BM25 and LSA count them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data.title_words import fold_plural, folded_by, title_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Men's T-shirt & Tops", ["mens", "tshirt", "tops"]),
        ("For Her", ["for", "her"]),  # no word is dropped
        ("A > B/C, 3.5", ["a", "b", "c", "3", "5"]),
        ("Größe XL – Über", ["größe", "xl", "über"]),
        ("  -- ' ", []),
    ],
)
def test_words_of_a_title(text: str, expected: list[str]) -> None:
    assert title_words(text) == expected


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("dresses", "dress"),
        ("watches", "watch"),
        ("brushes", "brush"),
        ("boxes", "box"),
        ("shoes", "shoe"),
        ("accessories", "accessory"),
        ("hoodies", "hoodie"),
        ("tshirts", "tshirt"),
        ("jeans", "jean"),
        ("glasses", "glass"),
    ],
)
def test_a_plural_meets_its_singular(plural: str, singular: str) -> None:
    assert fold_plural(plural) == fold_plural(singular)


@pytest.mark.parametrize("word", ["dress", "bus", "tennis", "gas", "xl", "3", "women"])
def test_what_is_no_plural_stays(word: str) -> None:
    assert fold_plural(word) == word


@given(st.text(max_size=20))
def test_every_word_has_a_form(text: str) -> None:
    folded = folded_by("plural")(text)
    assert len(folded) == len(title_words(text))
    assert all(folded)


def test_kinds_of_folding() -> None:
    text = "Running Shoes"
    assert folded_by("none")(text) == ["running", "shoes"]
    assert folded_by("plural")(text) == ["running", "shoe"]
    assert folded_by("stem")(text) == ["run", "shoe"]
