"""Forms of English words, and captions written with other words."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.perturbations import Caption
from diptych.analysis.perturbations.caption import Span, rewritten
from diptych.analysis.perturbations.english import (
    PLURAL_ONLY,
    UNCOUNTED,
    article_before,
    cased_like,
    compared,
    for_many,
    for_one,
    plural,
    singular,
)

A = (
    "dog university unicorn uniform union European euro ewe one one-way once useful used usual utensil ukulele urine "
    "Ugandan Ouija U-turn T-shirt UFO USB TV hotel history year yellow 7 10 quilt y-axis 1000"
)
AN = (
    "apple egg igloo orange umbrella unusual uninteresting unidentified unmade unhappy usher urban urn uncle utter "
    "hour honest honour heir SUV MRI X-ray F-16 HDTV 8 18 11 80 x élan onion ounce air"
)
NOUNS = (
    "dog dogs bus buses glass glasses dress dresses lens lenses box boxes bench benches brush brushes "
    "stomach stomachs moustache moustaches waltz waltzes quiz quizzes prize prizes puppy puppies toy toys tie ties "
    "movie movies cookie cookies potato potatoes photo photos zoo zoos shoe shoes canoe canoes knife knives "
    "bookshelf bookshelves wolf wolves glove gloves roof roofs giraffe giraffes house houses blouse blouses "
    "horse horses nose noses vase vases man men policewoman policewomen human humans grandchild grandchildren "
    "person people foot feet goose geese mongoose mongooses mouse mice ox oxen oasis oases axe axes ski skis "
    "taxi taxis menu menus passerby passersby passer-by passers-by T-shirt T-shirts Man Men DOG DOGS"
)
VERBS = (
    "runs run is are was were has have does do goes go watches watch pushes push passes pass fixes fix buzzes buzz "
    "carries carry plays play poses pose uses use lies lie reaches reach boos boo"
)


def pairs(words: str) -> list[tuple[str, str]]:
    every = words.split()
    return list(zip(every[::2], every[1::2], strict=True))


def test_articles() -> None:
    assert [word for word in A.split() if article_before(word) != "a"] == []
    assert [word for word in AN.split() if article_before(word) != "an"] == []
    assert {article_before(word) for word in ("", "🎉", "!", "кот", "1800s")} <= {"a", "an"}


def test_plural_there_and_back() -> None:
    for one, many in [*pairs(NOUNS), ("adult male", "adult males")]:
        assert plural(one) == many
        # glasses are worn more often than drunk from
        assert singular(many) == (None if many in PLURAL_ONLY else one)
    for noun in ("sheep", "goldfish", "reindeer", "aircraft", "species"):
        assert plural(noun) == noun == singular(noun)
    for noun in ("dog", "glass", "bus", "gas", "tennis", "abdomen", "lens", "is", "jeans", ""):
        assert singular(noun) is None
    assert all(plural(noun) == noun for noun in PLURAL_ONLY | UNCOUNTED)


@pytest.mark.parametrize(
    ("noun", "many"),
    [
        ("piece of land", "pieces of land"),
        ("man of letters", "men of letters"),
        ("mother-in-law", "mothers-in-law"),
        ("fishing rod", "fishing rods"),
        ("ice cream", "ice creams"),
        ("leaf", "leaves"),
        ("headscarf", "headscarves"),
        ("wildlife", "wildlife"),
    ],
)
def test_of_several_words_the_one_that_the_others_describe(noun: str, many: str) -> None:
    assert plural(noun) == many


@given(st.text(max_size=12))
def test_any_text_has_a_plural_and_none_is_lost(noun: str) -> None:
    assert isinstance(plural(noun), str)
    one = singular(noun)
    assert one is None or one != "" or noun == ""


def test_agreement_there_and_back() -> None:
    for one, many in pairs(VERBS):
        assert (for_many(one), for_one(many)) == (many, one)
    for verb in ("toes", "shoes", "caches", "canoes"):
        assert for_many(verb) == verb[:-1]


@pytest.mark.parametrize(
    ("adjective", "degree", "form"),
    [
        ("large", "comparative", "larger"),
        ("big", "superlative", "biggest"),
        ("tiny", "comparative", "tinier"),
        ("grey", "comparative", "greyer"),
        ("narrow", "comparative", "narrower"),
        ("simple", "superlative", "simplest"),
        ("great", "superlative", "greatest"),
        ("wooden", "comparative", "more wooden"),
        ("dark red", "superlative", "most dark red"),
        ("good", "comparative", "better"),
        ("aged", "comparative", "more aged"),
    ],
)
def test_comparison(adjective: str, degree: Literal["comparative", "superlative"], form: str) -> None:
    assert compared(adjective, degree) == form


CASES: list[tuple[str, dict[Span, str], str]] = [
    ("A dog runs.", {(1, 1): "animal"}, "An animal runs."),
    ("An orange cat", {(1, 1): "black"}, "A black cat"),
    ("an  owl, a dog", {(1, 1): "bird", (3, 3): "ape"}, "a  bird, an ape"),
    # an article that is not directly before it, or that the caption has wrong elsewhere, stays
    ("a, owl", {(1, 1): "bird"}, "a, bird"),
    ("an dog and a cat", {(4, 4): "owl"}, "an dog and an owl"),
    ("the owl", {(1, 1): "bird"}, "the bird"),
    ("Dogs run", {(0, 0): "a dog", (1, 1): "runs"}, "A dog runs"),
    ("a hot dog, please", {(1, 2): "ice cream"}, "an ice cream, please"),
    ("several dogs run", {(0, 0): "a", (1, 1): "dog"}, "a dog run"),
    ("a very big dog", {(1, 1): ""}, "a big dog"),
    ("dog, big", {(0, 0): ""}, ", big"),
    ("a DOG", {(1, 1): "ape"}, "an APE"),
    ("a 🎉 dog", {(1, 1): "ape"}, "a 🎉 ape"),
]


@pytest.mark.parametrize(("text", "changes", "after"), CASES)
def test_words_are_replaced_and_articles_follow(text: str, changes: dict[Span, str], after: str) -> None:
    assert rewritten(Caption(text), changes) == after


def test_an_article_that_is_replaced_itself_is_not_touched_again() -> None:
    assert rewritten(Caption("a dog"), {(0, 0): "no", (1, 1): "ape"}) == "no ape"


@pytest.mark.parametrize(
    ("model", "text", "after"),
    [
        ("I", "ape", "Ape"),
        ("NASA", "ape", "APE"),
        ("x", "Ape", "Ape"),
        ("2", "ape", "ape"),
        ("", "ape", "ape"),
    ],
)
def test_capitals(model: str, text: str, after: str) -> None:
    assert cased_like(model, text) == after
