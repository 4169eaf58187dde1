"""Synonyms, hypernyms and hyponyms in a language small enough to know the answers; distractions."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from everyday_language import everyday
from perturbing import perturbed, text_perturbation
from tiny_tagger import write_tagger

from diptych.analysis.perturbations import perturb_caption
from diptych.data.language import Language
from diptych.data.language.nltk_tagger import NltkTagger

LANGUAGE = everyday()
synonym = partial(perturbed, "synonym-noun", language=LANGUAGE)


def replaced(name, *captions, **options):
    return perturbed(name, *captions, options=options, language=LANGUAGE)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("noun", "A dog runs.", "A domestic dog runs."),
        ("noun", "Dogs run.", "Domestic dogs run."),
        ("noun", "an orchid", "an orchidaceous plant"),
        ("noun", "three men", "three adult males"),
        ("noun", "two people", "two individuals"),
        ("noun", "two children", "two kids"),
        ("noun", "a boy", "a male child"),
        ("noun", "cookies", "biscuits"),  # cooky has the same plural
        ("noun", "a dog in front of grass", "a domestic dog in front of grass"),
        ("noun", "a street dog", "a street domestic dog"),
        ("noun", "Dog", "Domestic dog"),
        ("adjective", "a large hat", "a big hat"),
        ("adjective", "A larger hat", "A bigger hat"),
        ("adjective", "the largest hat", "the biggest hat"),
        ("adjective", "an old hat", "an aged hat"),
        ("adjective", "a happy dog", "a felicitous dog"),
    ],
)
def test_a_synonym_of_the_usual_sense_in_its_form(name, before, after):
    assert replaced(f"synonym-{name}", before).texts == [after]


def test_what_has_no_synonym_is_counted():
    outcome = synonym("the street", "zorgl", "is", "a hot dog")
    assert outcome.texts == ["the street", "zorgl", "is", "a frank"]
    assert outcome.reasons == {"no noun that is known": 2, "no noun with a synonym": 1}


def test_every_noun_with_a_synonym_is_as_likely():
    drawn = Counter(synonym(*["a dog, a man and a child on the street"] * 900).texts)
    assert set(drawn) == {
        "a domestic dog, a man and a child on the street",
        "a dog, an adult male and a child on the street",
        "a dog, a man and a kid on the street",
    }
    assert min(drawn.values()) > 240


def test_k_of_them_more_senses_and_any_synonym():
    text = "a dog and a man, a street"
    assert replaced("synonym-noun", text, k=5).texts == ["a domestic dog and an adult male, a street"]
    captions = ["a dog"] * 60
    found = {*replaced("synonym-noun", *captions, senses=2, choice="any").texts}
    assert found == {"a domestic dog", "a frump"}
    assert {*replaced("synonym-noun", *["a man with glasses"] * 60, choice="any").texts} == {
        "an adult male with glasses",
        "a man with spectacles",
        "a man with specs",
    }


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
def test_as_published(name, before, after):
    pytest.importorskip("nltk")
    tags = {"pierced": "JJ", "'s": "POS"}

    class Tagger:
        name = fingerprint = "with two words more"

        def tag(self, sentences):
            known = LANGUAGE.need_tagger("this test").tag(sentences)
            return [
                [tags.get(token, tag) for token, tag in zip(*pair, strict=True)]
                for pair in zip(sentences, known, strict=True)
            ]

    language = type(LANGUAGE)("x", Tagger(), LANGUAGE.wordnet)
    assert perturbed(name, before, compat="published", language=language).texts == [after]


def test_as_published_nltks_tagger_reads_a_capital_at_the_beginning_as_a_name(tmp_path):
    pytest.importorskip("nltk")
    weights = {"bias": {"RB": 1.0}, "i pref1 O": {"NNP": 5.0}}  # what is no name is an adverb
    tagger = NltkTagger(write_tagger(tmp_path, weights))
    language = Language("x", tagger, LANGUAGE.wordnet)
    done = {
        compat: perturbed("synonym-noun", "Old dog", compat=compat, language=language).texts[0]
        for compat in ("none", "published")
    }
    assert done == {"none": "Old domestic dog", "published": "aged dog"}


def test_a_thing_becomes_what_it_is_a_kind_of():
    # entity 0, organism 1, animal 2, vertebrate 3, mammal 4, carnivore 5, canine and pet 6, dog 7
    found = {*replaced("hypernym-noun", *["Two dogs"] * 40).texts}
    assert found == {"Two canines", "Two domestic animals"}
    assert replaced("hypernym-noun", "a poodle", depth=7).texts == ["a dog"]
    assert replaced("hypernym-noun", "tennis players", depth=2).texts == ["players"]
    outcome = replaced("hypernym-noun", "a person", "a dog", "a ball", "zorgl", depth=7)
    assert outcome.texts == ["a person", "a dog", "a ball", "zorgl"]
    assert outcome.reasons == {"no noun with a hypernym that is deep enough": 3, "no noun that is known": 1}
    assert replaced("hypernym-noun", "a person", depth=1).texts == ["an organism"]
    assert text_perturbation("hypernym-noun").keeps_meaning


def test_a_thing_becomes_a_kind_of_it_but_no_person_unless_asked_for():
    assert replaced("hyponym-noun", "Two balls and a street").texts == ["Two spheres and a street"]
    # Airedale is written with a capital
    assert {*replaced("hyponym-noun", *["a dog"] * 20).texts} == {"a poodle"}
    outcome = replaced("hyponym-noun", "a man", "players")
    assert outcome.texts == ["a man", "players"]
    assert outcome.reasons == {"no noun with a hyponym": 2}
    with_people = replaced("hyponym-noun", "a man", "players", people=True).texts
    assert with_people == ["a bachelor", "tennis players"]
    assert not text_perturbation("hyponym-noun").keeps_meaning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A dog runs.", "A dog runs and true is true."),
        ("A dog runs", "A dog runs and true is true"),
        ("A dog runs .", "A dog runs and true is true ."),
        ("Dogs?! \n", "Dogs and true is true?! \n"),
        ("U.S. flag...", "U.S. flag and true is true..."),
        ('He says "hi."', 'He says "hi." and true is true'),
        ("一只狗。", "一只狗 and true is true。"),
        ("🎉", "🎉 and true is true"),
    ],
)
def test_the_caption_ends_as_it_did(text, expected):
    done = perturbed("distraction-true", text)
    assert (done.texts, done.reasons) == ([expected], {})


def test_false_is_false_and_nothing_to_add_to():
    assert perturbed("distraction-false", "cat!").texts == ["cat and false is false!"]
    for text in ("", "  ", "...", " ?! ", "\u2003.", "\u2003"):
        done = perturbed("distraction-true", text)
        assert (done.texts, done.reasons) == ([text], {"nothing is said": 1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("...A dog.", "A dog and true it true."),  # full stops go at both ends
        ("A dog. ", "A dog.  and true it true."),  # but not before a blank
        ("A dog!", "A dog! and true it true."),
        ("", " and true it true."),
    ],
)
def test_distractions_as_published(text, expected):
    assert perturb_caption(text, "distraction-true", compat="published") == expected
