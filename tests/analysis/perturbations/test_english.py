from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from perturbing import perturbed

from diptych.analysis.perturbations import Caption
from diptych.analysis.perturbations.caption import Span, rewritten
from diptych.analysis.perturbations.english import (
    PLURAL_ONLY,
    UNCOUNTED,
    article_before,
    compared,
    for_many,
    for_one,
    plural,
    singular,
)
from diptych.analysis.perturbations.kinds.word_order import published_shuffle
from diptych.analysis.perturbations.published import nltk_tokens, published_slip, spacy_like_tokens
from diptych.core.fingerprint import fingerprint
from diptych.data.language import words_of

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


COMPOUNDS = (
    "piece of land/pieces of land, man of letters/men of letters, mother-in-law/mothers-in-law, leaf/leaves, "
    "fishing rod/fishing rods, ice cream/ice creams, headscarf/headscarves, wildlife/wildlife"
)


def pairs(words):
    every = words.split()
    return list(zip(every[::2], every[1::2], strict=True))


def test_articles():
    assert [word for word in A.split() if article_before(word) != "a"] == []
    assert [word for word in AN.split() if article_before(word) != "an"] == []
    assert {article_before(word) for word in ("", "🎉", "!", "кот", "1800s")} <= {"a", "an"}


def test_plural_there_and_back():
    for one, many in [*pairs(NOUNS), ("adult male", "adult males")]:
        assert plural(one) == many
        # glasses are worn more often than drunk from
        assert singular(many) == (None if many in PLURAL_ONLY else one)
    for noun in ("sheep", "goldfish", "reindeer", "aircraft", "species"):
        assert plural(noun) == noun == singular(noun)
    for noun in ("dog", "glass", "bus", "gas", "tennis", "abdomen", "lens", "is", "jeans", ""):
        assert singular(noun) is None
    assert all(plural(noun) == noun for noun in PLURAL_ONLY | UNCOUNTED)


def test_of_several_words_the_one_that_the_others_describe():
    for one, many in (pair.split("/") for pair in COMPOUNDS.split(", ")):
        assert plural(one) == many


def test_agreement_there_and_back():
    for one, many in pairs(VERBS):
        assert (for_many(one), for_one(many)) == (many, one)
    for verb in ("toes", "shoes", "caches", "canoes"):
        assert for_many(verb) == verb[:-1]


def test_comparison():
    for one, form in pairs("large larger tiny tinier grey greyer narrow narrower good better"):
        assert compared(one, "comparative") == form
    for one, form in pairs("big biggest simple simplest great greatest"):
        assert compared(one, "superlative") == form
    assert compared("wooden", "comparative") == "more wooden"
    assert compared("aged", "comparative") == "more aged"
    assert compared("dark red", "superlative") == "most dark red"


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
def test_words_are_replaced_and_articles_follow(text, changes, after):
    assert rewritten(Caption(text), changes) == after


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
def test_what_the_published_code_gave(name):
    captions = GOLDEN["captions"]
    done = perturbed(NAMES[name], *captions, compat="published")
    assert done.seed == 42
    for caption, expected, text in zip(captions, GOLDEN["out"][name], done.texts, strict=True):
        assert text == (caption if expected.startswith("!!") else expected)


@pytest.mark.parametrize(
    ("name", "given"), [("nearby-character", "efa756b92454e2bb"), ("extra-character", "e88931a3708ad06f")]
)
def test_every_key_has_the_neighbours_that_the_package_gives_it(name, given):
    """The fingerprints are of what typo 0.1.7 gave: ``StrErrer(character, seed=seed).nearby_char().result``."""
    characters = string.ascii_letters + string.digits
    made = [published_slip(name, one, seed) for seed in range(100) for one in characters]
    assert fingerprint(made) == given
    assert ("10" if name == "nearby-character" else "109") in made


@pytest.mark.parametrize("case", SHUFFLED, ids=lambda case: f"{len(case['tokens'])}-{case['seed']}")
def test_what_the_published_functions_gave(case):
    tokens, tags, seed = case["tokens"], case["tags"], case["seed"]
    for printed, name in {
        "shuffle_nouns_and_adj": "shuffle-nouns-and-adjectives",
        "shuffle_allbut_nouns_and_adj": "shuffle-all-but-nouns-and-adjectives",
        "shuffle_all_words": "shuffle-all-words",
        "shuffle_within_trigrams": "shuffle-within-trigrams",
        "shuffle_trigrams": "shuffle-trigrams",
    }.items():
        assert published_shuffle(name, tokens, tags, seed) == case[printed]


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
def test_nltks(text, tokens):
    pytest.importorskip("nltk")
    assert nltk_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens", "tags"),
    [
        ("A red dog.", ["A", "red", "dog", "."], ["T0", "T1", "T2", "."]),
        ("men's T-shirt", ["men", "'s", "T", "-", "shirt"], ["T0", "'s", "T1", "-", "T1"]),
        ("black-and-white", ["black", "-", "and", "-", "white"], ["T0", "-", "T0", "-", "T0"]),
        ("Can’t, ISN'T!", ["Ca", "n’t", ",", "IS", "N'T", "!"], ["T0", "n’t", ",", "T1", "N'T", "!"]),
        ("n't 's o'clock", ["n't", "'", "s", "o'clock"], ["T0", "'", "T1", "T2"]),
        ("", [], []),
        ("כלב 🐕 12", ["כלב", "🐕", "12"], ["T0", "🐕", "T1"]),
    ],
)
def test_spacys_are_stood_in_for(text, tokens, tags):
    caption = Caption(text, tags=[f"T{place}" for place in range(len(words_of(text)))])
    assert spacy_like_tokens(caption) == (tokens, tags)
