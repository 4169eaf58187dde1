"""What captions say is what they record: checked by an independent reader of their text."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.errors import UsageError
from diptych.data.scenes import facts as words
from diptych.data.scenes.captions import write_caption, write_captions
from diptych.data.scenes.facts import FACT_VALUES, SHARED, TOPICS, described
from diptych.data.scenes.world import generator, world_of

KINDS = {
    "shape": words.SHAPE_WORDS,
    "colour": words.COLOUR_WORDS,
    "size": words.SIZE_WORDS,
    "material": words.MATERIAL_WORDS,
    "place": words.PLACE_PHRASES,
    "background": words.BACKGROUND_PHRASES,
    "count": words.COUNT_WORDS,
    "relation": {
        value: words.RELATION_PHRASES[value] + words.RELATION_INVERSE[value]
        for value in words.RELATION_PHRASES
    },
}
READINGS = sorted(
    ((phrase, kind, value) for kind, table in KINDS.items() for value, p in table.items() for phrase in p),
    key=lambda reading: -len(reading[0]),
)


def kind_of(key: str) -> str:
    return "relation" if key.startswith("relation.") else key.split(".")[-1]


def read_back(text: str) -> dict[str, set[str]]:
    """The values a text says, per kind of fact: longest phrases first, each word read once."""
    text = text.lower()
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for phrase, kind, value in READINGS:
        text, times = re.subn(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])", "…", text)
        if times:
            found[kind].add(value)
    return found


def values_stated(facts: dict[str, str], states: tuple[str, ...]) -> dict[str, set[str]]:
    stated: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for key in states:
        stated[kind_of(key)].add(facts[key])
    return stated


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), k=st.integers(1, 12))
def test_text_says_exactly_what_is_recorded(seed: int, k: int) -> None:
    facts = world_of(seed, "train", 0).facts()
    captions = write_captions(facts, generator(seed, "train", 0, "captions"), k)
    assert len(captions) == k
    for caption in captions:
        assert set(SHARED) <= set(caption.states) <= set(facts)
        assert len(set(caption.states)) == len(caption.states)
        assert read_back(caption.text) == values_stated(facts, caption.states), caption.text


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), k=st.integers(2, 12))
def test_every_scene_has_shared_specific_and_undescribed_facts(seed: int, k: int) -> None:
    facts = world_of(seed, "test", 1).facts()
    captions = write_captions(facts, generator(seed, "test", 1, "captions"), k)
    told = described(facts, [caption.states for caption in captions])
    assert set(told.shared) == set(SHARED)
    assert told.specific
    assert {"light", "tint", "frame"} < set(told.undescribed)  # and some that others do describe
    if k <= 5:
        for caption in captions:
            assert set(caption.states) & set(told.specific), "each caption has a fact of its own"


def test_a_sentence_written_from_facts_by_hand() -> None:
    facts = {
        "main.shape": "triangle", "main.colour": "red", "main.size": "large", "main.material": "striped",
        "second.shape": "star", "second.colour": "blue", "second.size": "small", "second.material": "matte",
        "relation.main.second": "above", "count": "3", "background": "sand",
    }  # fmt: skip
    states = (*SHARED, *TOPICS["second"])
    alike = {write_caption(facts, states, random.Random(i)) for i in range(400)}
    assert "A red triangle above a blue star." in alike
    assert "There is a scarlet triangle with a cobalt star below it." in alike


def test_no_caption_is_an_error() -> None:
    with pytest.raises(UsageError, match="k=1 or more"):
        write_captions(world_of(0, "train", 0).facts(), random.Random(0), 0)


def test_every_value_has_words_and_no_phrase_has_two_meanings() -> None:
    for key, values in FACT_VALUES.items():
        if key in ("light", "tint", "frame"):
            continue
        assert set(values) == set(KINDS[kind_of(key)]), key
    meanings: dict[str, tuple[str, str]] = {}
    for phrase, kind, value in READINGS:
        assert meanings.setdefault(phrase, (kind, value)) == (kind, value)
        found = {k: v for k, v in read_back(phrase).items() if v}
        assert found == {kind: {value}}, phrase
