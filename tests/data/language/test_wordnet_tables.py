from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data.language import PartOfSpeech
from diptych.data.language.table_wordnet import IRREGULAR, TableWordNet, base_forms
from diptych.data.language.wordnet_tables import Entry, Records, Synset, WordNetTables, depths


def all_ways(above: Sequence[Sequence[int]], thing: int) -> list[int]:
    """The length of every way to a root, one by one."""
    if not above[thing]:
        return [0]
    return [1 + way for other in above[thing] for way in all_ways(above, other)]


@st.composite
def hierarchies(draw: st.DrawFn) -> list[list[int]]:
    """Things that lie above each other in one direction only, numbered in any order."""
    n = draw(st.integers(0, 7))
    order = draw(st.permutations(range(n)))
    above: list[list[int]] = [[] for _ in range(n)]
    for place, thing in enumerate(order):
        above[thing] = [other for other in order[:place] if draw(st.booleans())]
    return above


@given(hierarchies())
def test_the_shortest_and_the_longest_of_all_ways(above: list[list[int]]) -> None:
    found = depths(above)
    assert found.shape == (len(above), 2)
    for thing in range(len(above)):
        ways = all_ways(above, thing)
        assert found[thing].tolist() == [min(ways), max(ways)]


@pytest.mark.parametrize("above", [[[0]], [[1], [0]], [[1], [2], [0, 3], []]])
def test_a_cycle_ends(above: list[list[int]]) -> None:
    found = depths(above)
    assert np.all(found[:, 0] <= found[:, 1])
    assert found.max() < len(above)


def test_a_chain_longer_than_the_stack() -> None:
    n = 20_000
    found = depths([[row + 1] for row in range(n - 1)] + [[]])
    assert found[0].tolist() == [n - 1, n - 1]


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
        *(("dogs", "noun", ["dog"]), ("Dogs", "noun", ["dog"]), ("dog", "noun", ["dog"])),
        *(("boxes", "noun", ["box"]), ("churches", "noun", ["church"]), ("dishes", "noun", ["dish"])),
        *(("flies", "noun", ["fly"]), ("firemen", "noun", ["fireman"]), ("buses", "noun", ["bus"])),
        *(("knives", "noun", ["knife"]), ("leaves", "noun", ["leaf", "leave"])),
        *(("potatoes", "noun", ["potato"]), ("quizzes", "noun", ["quiz"])),
        *(("hands", "noun", ["hand", "hands"]), ("glasses", "noun", ["glasses", "glass"])),
        *(("cats", "noun", []), ("s", "noun", []), ("", "noun", [])),
        *(("rides", "verb", ["ride", "rid"]), ("running", "verb", ["run"])),
        *(("stopped", "verb", ["stop"]), ("tried", "verb", ["try"]), ("made", "verb", ["make"])),
        *(("lying", "verb", ["lie"]), ("goes", "verb", []), ("does", "verb", ["do"])),
        *(("bigger", "adjective", ["big"]), ("largest", "adjective", ["large"])),
        *(("happiest", "adjective", ["happy"]), ("reddest", "adjective", ["red"])),
        *(("finer", "adjective", ["fine"]), ("taller", "adjective", ["tall"])),
        *(("best", "adjective", ["good"]), ("best", "adverb", ["well"]), ("dogs", "verb", [])),
    ],
)
def test_forms(word: str, part: PartOfSpeech, lemmas: list[str]) -> None:
    assert found(word, part) == lemmas


@given(st.text(max_size=12), st.sampled_from(["noun", "verb", "adjective", "adverb"]))
def test_any_text_has_known_lemmas_in_lower_case_once(text: str, part: PartOfSpeech) -> None:
    lemmas = base_forms(text, part, IRREGULAR[part], bool)
    assert len(set(lemmas)) == len(lemmas)
    assert all(lemma == lemma.lower() and lemma for lemma in lemmas)
    assert not base_forms(text, part, IRREGULAR[part], lambda word: False)


def net_of(*entries: Entry) -> TableWordNet:
    """Its synsets are those that the entries name, each of its entry's part of speech."""
    parts = {name: entry.part for entry in entries for name in entry.synsets}
    records = Records("made", [Synset(name, part, ()) for name, part in parts.items()], list(entries))
    return TableWordNet(WordNetTables.of(records), "content")


def test_of_lemmas_that_differ_in_capitals_the_one_as_written_comes_first() -> None:
    net = net_of(Entry("Turkey", "noun", ["country"]), Entry("turkey", "noun", ["bird", "flop"]))
    assert net.senses("turkey") == ["bird", "flop", "country"]
    assert net.senses("Turkey") == ["country", "bird", "flop"]
    assert net.senses("TURKEY", "noun") == ["bird", "flop", "country"]


def test_forms_are_its_own_or_where_it_has_none_the_common_ones() -> None:
    child = Entry("child", "noun", ["child"]), Entry("ox", "noun", ["ox"])
    without, own = net_of(*child), net_of(*child, Entry("ox", "noun", (), ("oxes",)))
    assert (
        list(without.morphy("children", "noun")) == list(without.base_forms("children", "noun")) == ["child"]
    )
    # What NLTK looks up is known to nothing but the WordNet itself.
    assert list(own.morphy("children", "noun")) == [] != list(own.base_forms("children", "noun"))
    assert list(own.morphy("oxes", "noun")) == list(own.base_forms("oxes", "noun")) == ["ox"]
