"""Slips: letters and keyboards, one slip of a finger, typing errors, any letter, characters misread."""

from __future__ import annotations

import json
import string
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from edit_distance import edit_distance
from hypothesis import given, settings
from hypothesis import strategies as st
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
from diptych.analysis.perturbations.kinds.typos import CONFUSIONS, KEYBOARDS, neighbours
from diptych.analysis.perturbations.kinds.word_order import published_shuffle
from diptych.analysis.perturbations.published import published_slip, spacy_like_tokens
from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data.language import words_of

SLIPS = ("character-swap", "missing-character", "extra-character", "nearby-character")

texts = st.text(
    st.one_of(st.sampled_from("abcXYZ 019.,'-éжשßİǅ\u0301🎉"), st.characters(exclude_categories=["Cs"])),
    max_size=30,
)
NO_KIND = {"substitution": 0, "omission": 0, "insertion": 0, "transposition": 0}
TEXT = "several brown horses graze beside wooden fences"  # 41 letters, 7 first ones


def test_neighbours_on_the_keyboards():
    for name, seen in (
        ("qwerty", "gftyhvb sawedzx qwa pol 546"),
        ("azerty", "azqé mlpù"),
        ("qwertz", "ztugh ölpüä"),
    ):
        for key, *others in seen.split():
            assert set(neighbours(name)[key]) == set(others)
    assert not {"ж", "é"} & neighbours("qwerty").keys()
    for near in map(neighbours, KEYBOARDS):  # touching is mutual and of one kind
        assert set("abcdefghijklmnopqrstuvwxyz0123456789") <= set(near)
        for character, others in near.items():
            assert len({*others, character}) == len(others) + 1 > 1
            for other in others:
                assert character in near[other]
                assert other.isalpha() == character.isalpha()


@settings(max_examples=50)
@given(text=texts)
def test_a_changed_caption_is_one_edit_away(text):
    for name in SLIPS:
        done = perturbed(name, text)
        if not done.changed[0]:
            assert done.texts == [text]
            assert sum(done.reasons.values()) == 1
            continue
        if text.isascii():  # case is of the place: letters in each other's place are an exchange but for case
            assert edit_distance(text.lower(), done.texts[0].lower()) == 1
        assert len(done.texts[0].split()) == len(text.split())
    misread = perturbed("recognition-errors", text, options={"rate": 0.5}).texts[0]
    table = set("".join(CONFUSIONS).replace(" ", ""))  # blanks and what is not in the table stay
    assert [one for one in misread if one not in table] == [one for one in text if one not in table]


def test_every_place_is_reached_evenly():
    for name, text, expected in [
        ("character-swap", "aab", {"aba"}),
        ("character-swap", "Ab a1", {"Ba a1", "Ab 1a"}),
        ("character-swap", "cafe\u0301", {"acfe\u0301", "cfae\u0301", "cae\u0301f"}),
        ("character-swap", "жу", {"уж"}),
        ("missing-character", "a dog", {"a og", "a dg", "a do"}),
        ("missing-character", "e\u0301a.", {"a.", "e\u0301."}),
        ("missing-character", "हिन्दी", {"न्दी", "हिदी", "हिन्"}),
        ("extra-character", "é M!", {"é NM!", "é MN!", "é JM!", "é MJ!", "é KM!", "é MK!"}),
        ("nearby-character", "é q", {"é w", "é a"}),
        ("nearby-character", "5", {"4", "6"}),
    ]:
        n = 600
        done = perturbed(name, *[text] * n)
        counts = Counter(done.texts)
        assert set(counts) == expected
        assert all(
            abs(count - n / len(expected)) < 5 * (n / len(expected)) ** 0.5 for count in counts.values()
        )


def test_about_one_word_of_ten_gets_another_letter():
    text = "Big dogs run over green grass"
    done = perturbed("letter-change", *[text] * 500)
    hit = 0
    for after in done.texts:
        for before, word in zip(text.split(), after.split(), strict=True):
            assert edit_distance(before, word) <= 1
            assert len(word) == len(before)
            assert [letter.isupper() for letter in word] == [letter.isupper() for letter in before]
            hit += before != word
    assert 0.07 < hit / 3000 < 0.13
    assert done.reasons == {"no word was drawn": 500 - done.n_changed}
    for text in ("", "кот 12 🎉"):
        assert perturbed("letter-change", text, options={"rate": 1.0}).reasons == {"no letter a–z": 1}
    text = "a dog's café"
    done = perturbed("letter-change", text, options={"rate": 1})
    assert all(one != other for one, other in zip(text.split(), done.texts[0].split(), strict=True))


def test_typing_and_recognition_errors():
    """As many errors per letter as the rate says, of the kinds in their shares; a word keeps a letter; shapes."""

    def errors(kind, text, times, **options):
        return perturbed(kind, *[text] * times, options=options)

    done = errors("typing-errors", TEXT, 2000)
    total = sum(edit_distance(TEXT, after) for after in done.texts if after != TEXT)
    assert total / (41 * 2000) == pytest.approx(0.0117, rel=0.08)
    assert done.reasons["no error was drawn"] > 2000 / 3
    done = errors("typing-errors", TEXT, 4000, rate=0.005)
    one = [after for after in done.texts if after != TEXT and edit_distance(TEXT, after) == 1]
    for count, weight in (
        (sum(len(after) < len(TEXT) for after in one), 0.80),
        (sum(len(after) > len(TEXT) for after in one), 0.67),
        (sum(sorted(after) == sorted(TEXT) for after in one), 0.165),
    ):
        assert count / len(one) == pytest.approx(weight / (1.65 + 0.80 + 0.67 + 0.165), abs=0.03)
    omit = NO_KIND | {"omission": 1.0, "first_letter": 1.0, "rate": 0.5}
    after = {*errors("typing-errors", "ab,cd", 200, **omit).texts}
    assert after == {"ab,cd", "a,cd", "b,cd", "ab,c", "ab,d", "a,c", "a,d", "b,c", "b,d"}
    shapes = {
        "m": {"rn", "nn"},
        "rn": {"m"},
        "0": {"O", "o"},
        "5": {"S"},
        "vv": {"w", "yy", "yw", "wy", "ww"},
    }
    for text, expected in shapes.items():
        assert {*errors("recognition-errors", text, 300, rate=1.0).texts} == expected


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


def test_words_are_replaced_and_articles_follow():
    for text, changes, after in CASES:
        assert rewritten(Caption(text), changes) == after


FOLDER = Path(__file__).parents[2] / "golden"
GOLDEN: dict[str, Any] = json.loads((FOLDER / "typos_distraction.json").read_text(encoding="utf-8"))
SHUFFLED = json.loads((FOLDER / "aro_shuffles.json").read_text(encoding="utf-8"))["cases"]
SHUFFLES = {
    "shuffle_nouns_and_adj": "shuffle-nouns-and-adjectives",
    "shuffle_allbut_nouns_and_adj": "shuffle-all-but-nouns-and-adjectives",
    "shuffle_all_words": "shuffle-all-words",
    "shuffle_within_trigrams": "shuffle-within-trigrams",
    "shuffle_trigrams": "shuffle-trigrams",
}
NAMES = {
    "char_swap": "character-swap",
    "missing_char": "missing-character",
    "extra_char": "extra-character",
    "nearby_char": "nearby-character",
    "probability_based_letter_change": "letter-change",
    "distraction_true": "distraction-true",
    "distraction_false": "distraction-false",
}


def test_what_the_published_code_gave():
    captions = GOLDEN["captions"]
    for printed, name in NAMES.items():
        done = perturbed(name, *captions, compat="published")
        assert done.seed == 42
        for caption, expected, text in zip(captions, GOLDEN["out"][printed], done.texts, strict=True):
            assert text == (caption if expected.startswith("!!") else expected)
    # Every key has the neighbours that the package gives it: the fingerprints are of what typo 0.1.7 gave for
    # ``StrErrer(character, seed=seed).nearby_char().result``.
    for name, expected, there in (
        ("nearby-character", "efa756b92454e2bb", "10"),
        ("extra-character", "e88931a3708ad06f", "109"),
    ):
        keys = string.ascii_letters + string.digits
        made = [published_slip(name, one, seed) for seed in range(100) for one in keys]
        assert fingerprint(made) == expected
        assert there in made
    for case in SHUFFLED:
        for printed, name in SHUFFLES.items():
            assert published_shuffle(name, case["tokens"], case["tags"], case["seed"]) == case[printed]
    options = "compat=published with options \\(edits=2\\)"
    with pytest.raises(UsageError, match=options):
        perturbed("character-swap", "a dog", compat="published", options={"edits": 2})
    assert perturbed("character-swap", "a dog", compat="published", options={"edits": 1}).n_changed == 1


def test_spacys_are_stood_in_for():
    for text, tokens, tags in [
        ("A red dog.", ["A", "red", "dog", "."], ["T0", "T1", "T2", "."]),
        ("men's T-shirt", ["men", "'s", "T", "-", "shirt"], ["T0", "'s", "T1", "-", "T1"]),
        ("black-and-white", ["black", "-", "and", "-", "white"], ["T0", "-", "T0", "-", "T0"]),
        ("Can’t, ISN'T!", ["Ca", "n’t", ",", "IS", "N'T", "!"], ["T0", "n’t", ",", "T1", "N'T", "!"]),
        ("n't 's o'clock", ["n't", "'", "s", "o'clock"], ["T0", "'", "T1", "T2"]),
        ("", [], []),
        ("כלב 🐕 12", ["כלב", "🐕", "12"], ["T0", "🐕", "T1"]),
    ]:
        caption = Caption(text, tags=[f"T{place}" for place in range(len(words_of(text)))])
        assert spacy_like_tokens(caption) == (tokens, tags)
