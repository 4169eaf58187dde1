from __future__ import annotations

import pytest
from everyday_language import everyday, tagged

from diptych.analysis.perturbations import Caption
from diptych.analysis.perturbations.terms import Term, adjectives, lemmas_like, nouns, usual_senses

LANGUAGE = everyday()
WORDNET = LANGUAGE.need_wordnet("this test")


def caption(text: str, tags: str = "") -> Caption:
    return Caption(text, tags=tags.split() or tagged(text), language=LANGUAGE)


def bases(text: str, tags: str = "") -> list[str]:
    return [f"{term.base}/{term.form}" for term in nouns(caption(text, tags))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a dog and two men", ["dog/base", "man/plural"]),
        ("People on the street", ["person/plural", "street/base"]),
        ("a man with glasses", ["man/base", "glasses/base"]),
        ("a hot dog", ["hot dog/base"]),
        ("tennis players", ["tennis player/plural"]),
        ("a tennis, player", ["player/base"]),
        ("a street dog", ["dog/base"]),  # of what kind it is, is left alone
        ("a dog, street", ["dog/base", "street/base"]),
        ("a dog in front of the man", ["dog/base", "man/base"]),
        ("the front of the street", ["front/base", "street/base"]),
        ("a zorgl", []),
        ("", []),
    ],
)
def test_nouns(text: str, found: list[str]) -> None:
    assert bases(text) == found


def test_a_capital_at_the_beginning_is_no_name_elsewhere_it_is() -> None:
    assert bases("Dog sees Dog", "NNP VBZ NNP") == ["dog/base"]
    assert bases("House", "NNP") == ["house/base"]
    assert bases("Young man", "NNP JJ") == []
    assert bases("Airedale", "NNP") == []  # only ever written with a capital


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a red ball", ["red/base"]),
        ("larger balls", ["large/comparative"]),
        ("the largest ball", ["large/superlative"]),
        ("a hot dog", []),
        ("a dog in red", []),  # a noun, as colours can be
        ("the dog is red", ["red/base"]),
        ("several dogs", []),
        ("", []),
    ],
)
def test_adjectives(text: str, found: list[str]) -> None:
    assert [f"{term.base}/{term.form}" for term in adjectives(caption(text))] == found


def test_next_to_is_a_preposition() -> None:
    tags = ["DT", "NN", "JJ", "TO", "DT", "NN"]
    given = Caption("a dog next to a cat", tags=tags, language=LANGUAGE)
    assert adjectives(given) == []


def test_the_sense_is_that_of_the_word_as_it_is_written() -> None:
    term = Term((0, 0), "dog", "noun")
    assert usual_senses(term, WORDNET, 1) == ["dog.n"]
    assert usual_senses(term, WORDNET, 2) == ["dog.n", "frump.n"]


def test_lemmas_that_nobody_types_and_those_that_cannot_be_counted_are_passed_over() -> None:
    assert lemmas_like(Term((0, 0), "dog", "noun"), "dog.n", WORDNET) == ["domestic dog"]
    assert lemmas_like(Term((0, 0), "hat", "noun"), "hat.n", WORDNET) == ["headgear"]


@pytest.mark.parametrize(
    ("form", "lemma", "inflected"),
    [
        ("base", "dog", "dog"),
        ("plural", "piece of land", "pieces of land"),
        ("plural", "cows", "cows"),
        ("plural", "trousers", "trousers"),
        ("plural", "glass", "glasses"),
        ("comparative", "big", "bigger"),
        ("superlative", "huge", "hugest"),
    ],
)
def test_another_lemma_takes_the_form(form: str, lemma: str, inflected: str) -> None:
    assert Term((0, 0), "x", "noun", form).inflected(lemma) == inflected  # type: ignore[arg-type]
