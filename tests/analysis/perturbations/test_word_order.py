"""The same words in another order: all of them, another text, every arrangement as likely."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import perturbing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.perturbations.kinds.word_order import published_shuffle
from diptych.data.language import words_of

SHUFFLES = (
    "shuffle-nouns-and-adjectives",
    "shuffle-all-words",
    "shuffle-all-but-nouns-and-adjectives",
    "shuffle-within-trigrams",
    "shuffle-trigrams",
)
TAGS = {"dog": "NN", "cats": "NNS", "Paris": "NNP", "red": "JJ", "bigger": "JJR", "old": "JJ", "man": "NN"}
WORDS = [*TAGS, "a", "the", "runs", "don't", "in", "кот", "7"]

captions = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", ", ", ".  ", " 🎉 ", "!"])), max_size=14
).map(lambda parts: "".join(word + mark for word, mark in parts))


def perturbed(name, texts, seed=0, compat="none"):
    tags = [[TAGS.get(word.text, "DT") for word in words_of(text)] for text in texts]
    return perturbing.perturbed(name, *texts, seed=seed, tags=tags, compat=compat)


def words(text):
    return [word.text for word in words_of(text)]


@pytest.mark.parametrize("name", SHUFFLES)
@given(text=captions)
def test_words_are_kept_and_marks_stay(name, text):
    after = perturbed(name, [text]).texts[0]
    assert Counter(words(after)) == Counter(words(text))
    marks = [token.text for token in words_of(text, marks=True)]
    turned = [token.text for token in words_of(after, marks=True)]
    assert [token for token in turned if token not in WORDS] == [
        token for token in marks if token not in WORDS
    ]


def trigrams(of):
    return [of[start : start + 3] for start in range(0, len(of), 3)]


def arrangements(name, of):
    """Every order of words that the name allows, by listing them."""
    if name == "shuffle-trigrams":
        return {tuple(word for part in parts for word in part) for parts in permutations(trigrams(of))}
    nouns = [place for place, word in enumerate(of) if TAGS.get(word, "").startswith("NN")]
    adjectives = [place for place, word in enumerate(of) if TAGS.get(word, "").startswith("JJ")]
    groups = {
        "shuffle-nouns-and-adjectives": [nouns, adjectives],
        "shuffle-all-words": [list(range(len(of)))],
        "shuffle-all-but-nouns-and-adjectives": [
            [place for place in range(len(of)) if place not in nouns + adjectives]
        ],
        "shuffle-within-trigrams": [
            list(range(start, min(start + 3, len(of)))) for start in range(0, len(of), 3)
        ],
    }[name]
    found = {tuple(of)}
    for group in groups:
        grown = set()
        for base in found:
            for order in permutations(group):
                result = list(base)
                for to, come in zip(group, order, strict=True):
                    result[to] = base[come]
                grown.add(tuple(result))
        found = grown
    return found


@pytest.mark.parametrize("name", SHUFFLES)
@given(chosen=st.lists(st.sampled_from(["dog", "man", "red", "old", "a", "in"]), max_size=6))
def test_another_text_whenever_there_is_one(name, chosen):
    possible = arrangements(name, chosen) - {tuple(chosen)}
    done = perturbed(name, [" ".join(chosen)])
    if possible:
        assert done.changed[0]
        assert tuple(done.texts[0].split()) in possible
    else:
        assert not done.changed[0]
        assert len(done.reasons) == 1
        assert next(iter(done.reasons)).startswith("no ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shuffle-nouns-and-adjectives", "red dog old man"),
        ("shuffle-all-words", "a red dog a"),
        ("shuffle-all-but-nouns-and-adjectives", "the red a dog in"),
        ("shuffle-within-trigrams", "a red dog the man"),
        ("shuffle-trigrams", "a red dog the old man in Paris"),
    ],
)
def test_every_other_arrangement_is_as_likely(name, text):
    possible = arrangements(name, text.split()) - {tuple(text.split())}
    n = 300 * len(possible)
    counts = Counter(tuple(after.split()) for after in perturbed(name, [text] * n).texts)
    assert set(counts) == possible
    assert all(abs(count - 300) < 5 * 300**0.5 for count in counts.values())


def test_the_published_forms_are_of_their_tokens():
    pytest.importorskip("nltk")
    text = "A red dog, an old-old man don't."
    nltk_tokens = ["A", "red", "dog", ",", "an", "old-old", "man", "do", "n't", "."]
    tokens = ["A", "red", "dog", ",", "an", "old", "-", "old", "man", "do", "n't", "."]
    tags = ["DT", "JJ", "NN", ",", "DT", "DT", "-", "DT", "NN", "DT", "n't", "."]
    for seed in range(5):
        for name in SHUFFLES:
            given = nltk_tokens if "trigrams" in name else text.split(" ")
            given = tokens if "nouns" in name else given
            after = published_shuffle(name, given, tags, seed)
            assert perturbed(name, [text], seed, "published").texts == [after]
