"""What holds of every text perturbation there is, whatever a caption may be."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from everyday_language import everyday
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from diptych.analysis.perturbations import TextPerturbation, choose_perturbations, perturb_captions
from diptych.core.errors import UsageError
from diptych.data.language import Language

LANGUAGE = everyday()
TEXTS = {one.name: one for one in choose_perturbations(["text"]) if isinstance(one, TextPerturbation)}
THIRTEEN = {
    *("character-swap", "missing-character", "extra-character", "nearby-character"),
    *("synonym-noun", "synonym-adjective", "distraction-true", "distraction-false"),
    *("shuffle-nouns-and-adjectives", "shuffle-all-words", "shuffle-all-but-nouns-and-adjectives"),
    *("shuffle-within-trigrams", "shuffle-trigrams"),
}
AWKWARD = {
    "empty": "",
    "one word": "dog",
    "one letter": "a",
    "blanks": " \t\n  ",
    "emoji": "a red 🐕‍🦺 and 👩🏽‍🚒 🎉🎉",
    "emoji only": "🎉🐶",
    "Arabic": "كلب بني يركض على العشب الأخضر.",
    "Hebrew": "כֶּלֶב חוּם רָץ עַל הַדֶּשֶׁא",
    "right to left with marks": "\u202ea red dog\u202c",
    "Devanagari": "एक भूरा कुत्ता हरी घास पर दौड़ रहा है।",
    "Chinese": "一只棕色的狗在绿色的草地上奔跑。",
    "Hangul in parts": "\u1112\u1161\u11ab\u1100\u1173\u11af \u1100\u1161\u11bc",
    "digits": "12345 678 9",
    "marks": "?!… — ' ’ - . ,",
    "control characters": "a\x01 red\x7f\x1b[31m dog\u200b\ufeff",
    "NUL": "a red\x00dog\x00",
    "a long word": "a red " + "do" * 5000 + "g",
    "capitals": "A RED DOG IS RUNNING IN TWO STREETS",
    "accents apart": "un chien re\u0301el a\u0300 Paris",
    "case that grows": "İstanbul STRASSE straße ﬁsh ŉ",
    "lone surrogate": "a red \ud800 dog",
    "apostrophes": "the man's dog isn't a dog ' s",
    "underscores": "_ __ red_dog _dog_",
    "fullwidth digits": "２ dogs and ³ cats",
    "many words": "a red dog with two large balls in the street and " * 455,
    "many words without blanks": "a,red,dog," * 1667,
}
SENTENCES = [
    "Two small dogs run through the green grass.",
    "A man in a red hat is holding a blue ball.",
    "a happy woman sitting at an old wooden table with a large orchid",
    "Several children are running between plants.",
    "There is a hot dog on the table.",
    "a red ball, a blue hat and a black dog",
]

LISTED = "a an the red blue small two dog dogs men is runs in and hat , . ! 🎉 кот 7"
words = st.sampled_from(LISTED.split())
captions = st.one_of(st.text(max_size=40), st.lists(words, max_size=12).map(" ".join))


def perturbed(name, texts, ids=None, seed=0, **given):
    ids = ids if ids is not None else [str(row) for row in range(len(texts))]
    return perturb_captions(TEXTS[name], texts, ids, seed=seed, language=LANGUAGE, **given)


def check(outcome, texts):
    """Every caption is another text, or the same and counted with a reason."""
    assert all(type(text) is str for text in outcome.texts)
    assert [
        text != before for text, before in zip(outcome.texts, texts, strict=True)
    ] == outcome.changed.tolist()
    assert sum(outcome.reasons.values()) == len(texts) - outcome.n_changed
    assert all(reason.strip() == reason and reason for reason in outcome.reasons)


@pytest.mark.parametrize("name", TEXTS)
def test_awkward_captions_survive(name):
    texts = [*AWKWARD.values()]
    check(perturbed(name, texts), texts)
    check(perturbed(name, texts, seed=1), texts)


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=25)
@given(texts=st.lists(captions, max_size=4), seed=st.integers(-(2**70), 2**70))
def test_any_captions_survive(name, texts, seed):
    check(perturbed(name, texts, seed=seed), texts)


@pytest.mark.parametrize("name", [one.name for one in TEXTS.values() if one.published is not None])
def test_awkward_captions_survive_the_published_form(name):
    pytest.importorskip("nltk")
    texts = [*AWKWARD.values()]
    outcome = perturbed(name, texts, compat="published", seed=42)
    check(outcome, texts)
    assert perturbed(name, texts, compat="published", seed=42).texts == outcome.texts
    assert outcome.compat == "published"


@cache
def of_sentences(name, seed):
    return tuple(perturbed(name, SENTENCES * 6, seed=seed).texts)


@pytest.mark.parametrize("name", TEXTS)
def test_the_seed_and_the_id_decide_and_nothing_else(name):
    texts = SENTENCES * 6
    ids = [str(row) for row in range(len(texts))]
    whole = list(of_sentences(name, 0))
    assert perturbed(name, texts).texts == whole
    order = np.random.default_rng(1).permutation(len(texts)).tolist()
    shuffled = perturbed(name, [texts[row] for row in order], [ids[row] for row in order])
    assert shuffled.texts == [whole[row] for row in order]
    for row in (0, 7, 35):
        assert perturbed(name, [texts[row]], [ids[row]]).texts == [whole[row]]


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_drawn_differs_between_ids_and_seeds(name):
    sentences = len(SENTENCES)
    by_id = [{*of_sentences(name, 0)[row::sentences]} for row in range(sentences)]
    if all(len(results) == 1 for results in by_id):  # nothing is drawn: then for no seed
        assert of_sentences(name, 1) == of_sentences(name, 0)
        assert name in ("distraction-true", "distraction-false", "negation")
    else:
        assert of_sentences(name, 1) != of_sentences(name, 0)


@pytest.mark.parametrize("name", TEXTS)
def test_something_is_changed_and_what_is_needed_is_declared(name):
    kind = TEXTS[name]
    assert perturbed(name, SENTENCES * 6).n_changed
    have = Language(
        "as declared",
        LANGUAGE.tagger if "tags" in kind.needs else None,
        LANGUAGE.wordnet if "wordnet" in kind.needs else None,
    )
    ids = [str(row) for row in range(len(SENTENCES))]
    assert perturb_captions(kind, SENTENCES, ids, language=have).texts == perturbed(name, SENTENCES).texts
    if kind.needs:
        refused(UsageError, f"{name} needs a", perturb_captions, kind, SENTENCES, ids)


def test_the_thesis_has_thirteen():
    assert {one.name for one in choose_perturbations(["thesis"])} == THIRTEEN
    assert {name for name, one in TEXTS.items() if one.suite} == THIRTEEN
    assert all(TEXTS[name].published is not None for name in THIRTEEN)


@pytest.mark.parametrize("name", TEXTS)
def test_options_are_checked(name):
    with pytest.raises(UsageError, match=f"{name}: unknown key 'no such option'"):
        perturbed(name, ["a dog"], options={"no such option": 1})
    for option, field in TEXTS[name].options.model_fields.items():
        assert TEXTS[name].options(**{option: field.default}) == TEXTS[name].options()
        refused(UsageError, f"{name}: ", perturbed, name, ["a dog"], options={option: object()})
