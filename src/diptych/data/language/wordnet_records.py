"""What any file of a WordNet comes down to: synsets, the senses of lemmas, irregular forms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

from diptych.core.context import task
from diptych.data.language.contract import PartOfSpeech

T = TypeVar("T")

_BLOCK = 4096

PARTS: Mapping[str, PartOfSpeech] = {
    "n": "noun",
    "v": "verb",
    "a": "adjective",
    "s": "adjective",
    "r": "adverb",
}
"""WordNet's letters; ``s`` is a satellite: an adjective that clusters around another one."""

ABOVE = ("hypernym", "instance_hypernym")
"""What leads upwards: an instance (Paris) counts as a kind of what it is an instance of (capital)."""


class Synset(NamedTuple):
    """Words of one meaning, and what it is a kind (or an instance) of."""

    name: str
    part: PartOfSpeech
    lemmas: Sequence[str]
    hypernyms: Sequence[str] = ()


class Entry(NamedTuple):
    """A lemma of one part of speech, its synsets with the usual sense first, and its irregular forms.

    A lemma may have several entries, whose synsets and forms come one after another.
    """

    lemma: str
    part: PartOfSpeech
    synsets: Sequence[str]
    forms: Sequence[str] = ()


@dataclass
class Records:
    """All of a WordNet.

    Attributes:
        title: what it calls itself, with its version where it says so.
        synsets: in the order of its files.
        entries: in the order of its files.
    """

    title: str = ""
    synsets: list[Synset] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)


def in_blocks(items: Iterable[T], description: str, unit: str) -> Iterator[T]:
    """Yield the items and say how far it is every few thousand, for there are millions."""
    iterator = iter(items)
    with task(description, unit=unit) as bar:
        while block := list(islice(iterator, _BLOCK)):
            yield from block
            bar.advance(len(block))
