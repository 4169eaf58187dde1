from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from everyday_language import tagged
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    PerturbedCaptions,
    TextPerturbation,
    perturb_captions,
)
from diptych.data.language import words_of

WORDS = ("red", "blue", "small", "large", "black", "dog", "cat", "hat", "and", "in", "a", "wooden", "runs")


def perturbed(*captions: str, **options: Any) -> PerturbedCaptions:
    kind = PERTURBATIONS.get("attribute-swap")
    assert isinstance(kind, TextPerturbation)
    ids = [str(row) for row in range(len(captions))]
    return perturb_captions(kind, captions, ids, options=options, tags=[tagged(one) for one in captions])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A red ball and a blue hat.", "A blue ball and a red hat."),
        ("Red ball on blue hat", "Blue ball on red hat"),
        ("an orange cat in a black hat", "a black cat in an orange hat"),
        ("a small dog with a large ball", "a large dog with a small ball"),
        ("a red wooden table, a blue car", "a blue wooden table, a red car"),
        ("a man in red and a woman in blue", "a man in blue and a woman in red"),
        ("a blue tennis player in red hats", "a red tennis player in blue hats"),
    ],
)
def test_attributes_of_one_kind_change_places(before: str, after: str) -> None:
    assert perturbed(before).texts == [after]


@pytest.mark.parametrize(
    "caption",
    [
        "a black and white dog",  # of one noun
        "a red ball and a blue ball",  # the same said
        "a red ball and a red hat",
        "a red ball and a large hat",  # a colour and a size
        "a small ball and a little hat",  # the same in other words
        "a white dog with a black and white ball",  # a noun would be white twice
    ],
)
def test_nothing_to_exchange(caption: str) -> None:
    assert perturbed(caption).reasons == {"no two different attributes of one kind with different nouns": 1}


def test_too_few_attributes() -> None:
    outcome = perturbed("a red ball and a blue one", "red, blue", "a dog", "")
    assert outcome.reasons == {"fewer than two attributes of nouns": 4}


def test_any_two_adjectives_when_asked_for() -> None:
    caption = "a red ball and a large hat"
    assert perturbed(caption, any=True).texts == ["a large ball and a red hat"]
    assert perturbed("a happy dog, an old wooden table", any=True).n_changed == 1


def test_every_pair_may_be_drawn() -> None:
    drawn = Counter(perturbed(*["a red dog, a blue cat, a black hat"] * 300).texts)
    assert len(drawn) == 3
    assert min(drawn.values()) > 60


@given(st.lists(st.sampled_from(WORDS), max_size=14), st.booleans())
def test_words_are_kept(words: list[str], any_two: bool) -> None:
    caption = " ".join(words)
    outcome = perturbed(caption, any=any_two)
    after = [word.text for word in words_of(outcome.texts[0])]
    articles = {"a", "an"}
    assert Counter(word for word in after if word not in articles) == Counter(
        word for word in words if word not in articles
    )
    assert outcome.changed[0] == (outcome.texts[0] != caption)
    assert outcome.changed[0] or outcome.reasons
