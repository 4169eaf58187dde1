"""Synonyms by default and as published, in a language small enough to know the answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from everyday_language import DictTagger, DictWordNet, everyday
from tiny_tagger import write_tagger

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    PerturbedCaptions,
    TextPerturbation,
    perturb_captions,
)
from diptych.core.errors import UsageError
from diptych.data.language import Language
from diptych.data.language.nltk_tagger import NltkTagger

LANGUAGE = everyday()


def perturbed(
    name: str, *captions: str, compat: str = "none", seed: int = 0, **options: Any
) -> PerturbedCaptions:
    kind = PERTURBATIONS.get(name)
    assert isinstance(kind, TextPerturbation)
    ids = [str(row) for row in range(len(captions))]
    return perturb_captions(kind, captions, ids, seed=seed, options=options, compat=compat, language=LANGUAGE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A dog runs.", "A domestic dog runs."),
        ("Dogs run.", "Domestic dogs run."),
        ("an orchid", "an orchidaceous plant"),
        ("three men", "three adult males"),
        ("two people", "two individuals"),
        ("two children", "two kids"),
        ("a boy", "a male child"),
        ("cookies", "biscuits"),  # cooky has the same plural
        ("a dog in front of grass", "a domestic dog in front of grass"),
    ],
)
def test_a_noun_of_its_usual_sense_in_its_form(before: str, after: str) -> None:
    assert perturbed("synonym-noun", before).texts == [after]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a large hat", "a big hat"),
        ("A larger hat", "A bigger hat"),
        ("the largest hat", "the biggest hat"),
        ("an old hat", "an aged hat"),
        ("a happy dog", "a felicitous dog"),
    ],
)
def test_an_adjective_in_its_form(before: str, after: str) -> None:
    assert perturbed("synonym-adjective", before).texts == [after]


def test_what_has_no_synonym_is_counted() -> None:
    outcome = perturbed("synonym-noun", "the street", "zorgl", "is", "a hot dog")
    assert outcome.texts == ["the street", "zorgl", "is", "a frank"]
    assert outcome.reasons == {"no noun that is known": 2, "no noun with a synonym": 1}


def test_every_noun_with_a_synonym_is_as_likely() -> None:
    texts = perturbed("synonym-noun", *["a dog, a man and a child on the street"] * 900).texts
    drawn = Counter(texts)
    assert set(drawn) == {
        "a domestic dog, a man and a child on the street",
        "a dog, an adult male and a child on the street",
        "a dog, a man and a kid on the street",
    }
    assert min(drawn.values()) > 240


def test_k_of_them_or_as_many_as_there_are() -> None:
    assert perturbed("synonym-noun", "a dog and a man, a street", k=5).texts == [
        "a domestic dog and an adult male, a street"
    ]


def test_more_senses_and_any_synonym() -> None:
    captions = ["a dog"] * 60
    assert {*perturbed("synonym-noun", *captions, senses=2, choice="any").texts} == {
        "a domestic dog",
        "a frump",
    }
    assert {*perturbed("synonym-noun", *["a man with glasses"] * 60, choice="any").texts} == {
        "an adult male with glasses",
        "a man with spectacles",
        "a man with specs",
    }


@pytest.mark.parametrize(("option", "value"), [("k", 0), ("senses", 0), ("choice", "best"), ("n", 1)])
def test_impossible_options(option: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"synonym-noun: option '{option}'"):
        perturbed("synonym-noun", "a dog", **{option: value})


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        # the first noun with a synonym, however it is written, and nothing is inflected
        ("synonym-noun", "A street dog and a man.", "A street domestic dog and a man ."),
        ("synonym-noun", "Two dogs, three men", "Two dog , three men"),
        ("synonym-noun", "An orchid", "An orchidaceous plant"),
        ("synonym-noun", "the man's hat", "the adult male 's hat"),
        # all parts of speech, as pierced became pierce
        ("synonym-adjective", "a pierced dog", "a pierce dog"),
        # where no word is replaced, tokens are joined all the same
        ("synonym-noun", "the street, red.", "the street , red ."),
        ("synonym-adjective", "", ""),
    ],
)
def test_as_published(name: str, before: str, after: str) -> None:
    pytest.importorskip("nltk")
    tags = {"pierced": "JJ", "'s": "POS"}

    class Tagger:
        name = fingerprint = "with two words more"

        def tag(self, sentences: Any) -> list[list[str]]:
            known = LANGUAGE.need_tagger("this test").tag(sentences)
            return [
                [tags.get(token, tag) for token, tag in zip(*pair, strict=True)]
                for pair in zip(sentences, known, strict=True)
            ]

    kind = PERTURBATIONS.get(name)
    assert isinstance(kind, TextPerturbation)
    language = type(LANGUAGE)("x", Tagger(), LANGUAGE.wordnet)
    assert perturb_captions(kind, [before], ["0"], compat="published", language=language).texts == [after]


def test_published_does_not_depend_on_the_seed() -> None:
    pytest.importorskip("nltk")
    one, other = (
        perturbed("synonym-noun", "A dog and a man.", compat="published", seed=seed).texts for seed in (1, 2)
    )
    assert one == other == ["A domestic dog and a man ."]


def test_as_published_nltks_tagger_reads_a_capital_at_the_beginning_as_a_name(tmp_path: Path) -> None:
    pytest.importorskip("nltk")
    weights = {"bias": {"RB": 1.0}, "i pref1 O": {"NNP": 5.0}}  # what is no name is an adverb
    tagger = NltkTagger(write_tagger(tmp_path, weights))
    kind = PERTURBATIONS.get("synonym-noun")
    assert isinstance(kind, TextPerturbation)
    language = Language("x", tagger, LANGUAGE.wordnet)
    done = {
        compat: perturb_captions(kind, ["Old dog"], ["0"], compat=compat, language=language).texts[0]
        for compat in ("none", "published")
    }
    assert done == {"none": "Old domestic dog", "published": "aged dog"}


def test_as_published_forms_are_those_of_wordnets_rules() -> None:
    pytest.importorskip("nltk")
    members = {"hit.v": ["hit", "strike"], "dogs.n": ["dogs", "feet"], "dog.n": ["dog", "domestic dog"]}
    language = Language("x", DictTagger(), DictWordNet(members))
    kind = PERTURBATIONS.get("synonym-noun")
    assert isinstance(kind, TextPerturbation)
    # no rule of WordNet's doubles a letter; a word comes before what it may be a form of
    texts = perturb_captions(kind, ["hitting", "hits", "dogs"], "012", compat="published", language=language)
    assert texts.texts == ["hitting", "hit", "feet"]


def test_as_published_k_is_the_one_option() -> None:
    pytest.importorskip("nltk")
    both = perturbed("synonym-noun", "a dog and a man", compat="published", k=2)
    assert both.texts == ["a domestic dog and a adult male"]
    for options in ({"senses": 2}, {"choice": "any"}):
        with pytest.raises(UsageError, match="compat=published with senses or choice"):
            perturbed("synonym-noun", "a dog", compat="published", **options)
