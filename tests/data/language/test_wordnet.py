from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data.language import PartOfSpeech, Synset, WordNet


def net_above(above: Sequence[Sequence[int]]) -> WordNet:
    names = [[str(other) for other in others] for others in above]
    return WordNet("made", "content", [Synset(str(one), "noun", (), up) for one, up in enumerate(names)])


def depths(above: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    net = net_above(above)
    return [net.depth(str(one)) for one in range(len(above))]


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
    for thing in range(len(above)):
        ways = all_ways(above, thing)
        assert found[thing] == (min(ways), max(ways))


@pytest.mark.parametrize("above", [[[0]], [[1], [0]], [[1], [2], [0, 3], []]])
def test_a_cycle_ends(above: list[list[int]]) -> None:
    found = depths(above)
    assert all(low <= high < len(above) for low, high in found)


def test_a_chain_longer_than_the_stack() -> None:
    n = 20_000
    assert net_above([[row + 1] for row in range(n - 1)] + [[]]).depth("0") == (n - 1, n - 1)


LEMMAS = {
    "noun": "dog box church dish fly fireman wolf leaf leave potato quiz knife bus hand hands glass glasses",
    "verb": "run rid ride try stop jump make die dye tie lie do",
    "adjective": "big large happy red good fine tall",
    "adverb": "well",
}


NET = WordNet(
    "made",
    "content",
    [Synset(part, part, lemmas.split()) for part, lemmas in LEMMAS.items()],  # type: ignore[arg-type]
)


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
    assert NET.base_forms(word, part) == lemmas


Entry = tuple[str, PartOfSpeech, list[str]]


def net_of(*entries: Entry, forms: Mapping[str, Sequence[str]] | None = None) -> WordNet:
    """Its synsets are those that the entries name, each of its entry's part of speech."""
    synsets = [
        Synset(name, part, ()) for name, part in {n: part for _, part, of in entries for n in of}.items()
    ]
    parts: tuple[PartOfSpeech, ...] = ("noun", "verb", "adjective", "adverb")
    own = None if forms is None else {part: forms if part == "noun" else {} for part in parts}
    return WordNet("made", "content", synsets, entries, own)


def test_of_lemmas_that_differ_in_capitals_the_one_as_written_comes_first() -> None:
    net = net_of(("Turkey", "noun", ["country"]), ("turkey", "noun", ["bird", "flop"]))
    assert net.senses("turkey") == ["bird", "flop", "country"]
    assert net.senses("Turkey") == ["country", "bird", "flop"]
    assert net.senses("TURKEY", "noun") == ["bird", "flop", "country"]


def test_forms_are_its_own_or_where_it_has_none_the_common_ones() -> None:
    entries: list[Entry] = [("child", "noun", ["child"]), ("ox", "noun", ["ox"])]
    without, own = net_of(*entries), net_of(*entries, forms={"oxes": ["ox"]})
    assert without.morphy("children", "noun") == without.base_forms("children", "noun") == ["child"]
    # NLTK looks up nothing that the WordNet itself does not know.
    assert (own.morphy("children", "noun"), own.base_forms("children", "noun")) == ([], ["child"])
    assert own.morphy("oxes", "noun") == own.base_forms("oxes", "noun") == ["ox"]
