"""From forms to lemmas: WordNet's rules, its order, and the irregular forms that captions use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data.language import PartOfSpeech
from diptych.data.language.table_wordnet import IRREGULAR, base_forms, morphy

LEMMAS = {
    "noun": "dog box church dish fly fireman wolf leaf leave potato quiz knife bus hand hands glass glasses",
    "verb": "run rid ride try stop jump make die dye tie lie do",
    "adjective": "big large happy red good fine tall",
    "adverb": "well",
}


def found(word: str, part: PartOfSpeech) -> list[str]:
    return base_forms(word, part, IRREGULAR[part], lambda lemma: lemma in LEMMAS[part].split())


@pytest.mark.parametrize(
    ("word", "part", "lemmas"),
    [
        ("dogs", "noun", ["dog"]),
        ("Dogs", "noun", ["dog"]),
        ("dog", "noun", ["dog"]),
        ("boxes", "noun", ["box"]),
        ("churches", "noun", ["church"]),
        ("dishes", "noun", ["dish"]),
        ("flies", "noun", ["fly"]),
        ("firemen", "noun", ["fireman"]),
        ("buses", "noun", ["bus"]),
        ("knives", "noun", ["knife"]),
        ("leaves", "noun", ["leaf", "leave"]),
        ("potatoes", "noun", ["potato"]),
        ("quizzes", "noun", ["quiz"]),
        ("hands", "noun", ["hand", "hands"]),
        ("glasses", "noun", ["glasses", "glass"]),
        ("cats", "noun", []),
        ("s", "noun", []),
        ("", "noun", []),
        ("rides", "verb", ["ride", "rid"]),
        ("running", "verb", ["run"]),
        ("stopped", "verb", ["stop"]),
        ("tried", "verb", ["try"]),
        ("made", "verb", ["make"]),
        ("lying", "verb", ["lie"]),
        ("goes", "verb", []),
        ("does", "verb", ["do"]),
        ("bigger", "adjective", ["big"]),
        ("largest", "adjective", ["large"]),
        ("happiest", "adjective", ["happy"]),
        ("reddest", "adjective", ["red"]),
        ("finer", "adjective", ["fine"]),
        ("taller", "adjective", ["tall"]),
        ("best", "adjective", ["good"]),
        ("best", "adverb", ["well"]),
        ("dogs", "verb", []),
    ],
)
def test_forms(word: str, part: PartOfSpeech, lemmas: list[str]) -> None:
    assert found(word, part) == lemmas


@pytest.mark.parametrize(
    ("form", "lemma"),
    [
        *(("men", "man"), ("women", "woman"), ("children", "child"), ("people", "person"), ("feet", "foot")),
        *(("teeth", "tooth"), ("mice", "mouse"), ("geese", "goose"), ("wolves", "wolf"), ("wives", "wife")),
    ],
)
def test_irregular_nouns_come_before_themselves(form: str, lemma: str) -> None:
    """``men`` is an entry of WordNet too: the work force."""
    assert base_forms(form, "noun", IRREGULAR["noun"], lambda word: word in (form, lemma)) == [lemma, form]


def test_no_form_of_the_list_is_its_own_lemma() -> None:
    for forms in IRREGULAR.values():
        assert all(form not in lemmas for form, lemmas in forms.items())


@given(st.text(max_size=12), st.sampled_from(["noun", "verb", "adjective", "adverb"]))
def test_any_text_has_known_lemmas_in_lower_case_once(text: str, part: PartOfSpeech) -> None:
    lemmas = base_forms(text, part, IRREGULAR[part], bool)
    assert len(set(lemmas)) == len(lemmas)
    assert all(lemma == lemma.lower() and lemma for lemma in lemmas)
    assert not base_forms(text, part, IRREGULAR[part], lambda word: False)


def test_a_letter_goes_only_where_it_is_doubled() -> None:
    known = {"ru", "run"}.__contains__
    assert base_forms("running", "verb", {}, known) == ["run"]
    assert base_forms("ruxing", "verb", {}, known) == []


@pytest.mark.parametrize(
    ("word", "lemmas"),
    [
        ("Dogs", ["dogs", "dog"]),  # itself first
        ("men", ["men", "man"]),
        ("axes", ["axe", "axis"]),  # of an irregular form no rule is asked, and its order counts
        ("boxes", ["box"]),
        ("cat", []),
    ],
)
def test_as_nltk_looks_up(word: str, lemmas: list[str]) -> None:
    known = {"dogs", "dog", "men", "man", "axe", "axis", "ax", "box"}.__contains__
    irregular = {"men": ("man",), "axes": ("axe", "axis")}
    assert morphy(word, "noun", irregular, known) == lemmas
    assert morphy("running", "verb", {}, {"run"}.__contains__) == []
