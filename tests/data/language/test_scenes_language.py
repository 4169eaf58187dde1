"""The built-in language: it knows every word of the captions of generated scenes, and no other."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import DataError
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, is_word, words_of
from diptych.data.language.scenes_language import ScenesTagger, scenes_wordnet
from diptych.data.language.tagged import tag_captions
from diptych.data.scenes import facts as words
from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.world import world_of

ALL_WORDS = [
    phrase
    for table in (
        value for name, value in vars(words).items() if name.endswith(("_WORDS", "_PHRASES", "_INVERSE"))
    )
    for phrases in table.values()
    for phrase in phrases
]
NET = scenes_wordnet()


def captions_of(index: int) -> list[str]:
    facts = world_of(3, "train", index, (1, 4)).facts()
    return [caption.text for caption in write_captions(facts, random.Random(index), 5)]


def tagged(text: str) -> dict[str, str]:
    (tags,) = tag_captions([text], ScenesTagger())
    return {word.text.lower(): tag for word, tag in zip(words_of(text), tags, strict=True)}


@pytest.mark.parametrize("phrase", ALL_WORDS)
def test_every_word_of_every_phrase_has_a_tag(phrase: str) -> None:
    assert len(tagged(phrase)) == len(set(phrase.split()))


@given(st.integers(0, 10_000))
def test_captions_of_scenes_are_tagged_and_their_words_known(index: int) -> None:
    for caption in captions_of(index):
        for word, tag in tagged(caption).items():
            part = "noun" if tag in NOUN_TAGS else "adjective" if tag in ADJECTIVE_TAGS else None
            if part and word not in ("something", "plus"):  # "plus" is half of "plus sign"
                assert NET.base_forms(word, part), (caption, word)


def test_by_hand() -> None:
    assert tagged("There is a small, crimson star near the left edge.") == {
        **{"there": "EX", "is": "VBZ", "a": "DT", "small": "JJ", "crimson": "JJ", "star": "NN"},
        **{"near": "IN", "the": "DT", "left": "JJ", "edge": "NN"},
    }
    assert tagged("to the left of two things")["left"] == "NN"
    assert tagged("Two PLANKS, 12 007") == {**{"two": "CD", "planks": "NNS", "12": "CD", "007": "CD"}}
    assert ScenesTagger().tag([["A", "star", ",", "🙂", "."], []]) == [["DT", "NN", ",", "🙂", "."], []]


@pytest.mark.parametrize("word", ["dog", "sta", "stars2", "étoile", "_"])
def test_a_word_that_is_not_of_scenes(word: str) -> None:
    assert is_word(word)
    with pytest.raises(DataError, match=f"'{word}' is no word of the captions of generated scenes") as caught:
        tag_captions([f"a {word}"], ScenesTagger())
    assert "NLTK" in caught.value.fix


def test_shapes_are_things_and_colours_are_coloured() -> None:
    (disc,) = NET.senses("disc", "noun")
    assert NET.depth(disc) == (4, 4)
    chain = [disc]
    while above := NET.hypernyms(chain[-1]):
        chain += above
    assert [NET.lemmas(one)[0] for one in chain] == ["circle", "round shape", "shape", "thing", "entity"]
    assert [list(NET.lemmas(one)) for one in NET.hypernyms(NET.senses("scarlet")[0])] == [["coloured"]]
    (shape,) = NET.senses("figure")
    assert len(NET.hyponyms(shape)) == 4
    assert NET.base_forms("blossoms", "noun") == ["blossom"]
