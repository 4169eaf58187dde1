"""A WordNet as a few arrays and lists of strings, which open in a moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, get_args

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.context import task
from diptych.core.errors import DataError
from diptych.data.columns import StringTable, write_strings
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
    """All of a WordNet."""

    title: str = ""  # what it calls itself, with its version where it says so
    synsets: list[Synset] = field(default_factory=list)  # in the order of its files
    entries: list[Entry] = field(default_factory=list)  # in the order of its files


def in_blocks(items: Iterable[T], description: str, unit: str) -> Iterator[T]:
    """Yield the items and say how far it is every few thousand, for there are millions."""
    iterator = iter(items)
    with task(description, unit=unit) as bar:
        while block := list(islice(iterator, _BLOCK)):
            yield from block
            bar.advance(len(block))


def depths(above: Sequence[Sequence[int]]) -> np.ndarray:
    """Return (n, 2) int32: the shortest and the longest way from each thing to a root, in steps.

    A way that comes back to where it was is not gone further, so that a cycle, which no hierarchy should have,
    ends like a root.
    """
    found: list[tuple[int, int] | None] = [None] * len(above)
    for start in range(len(above)):
        if found[start] is not None:
            continue
        path, on_path = [start], {start}  # not recursive: a chain may be longer than Python's stack
        while path:
            thing = path[-1]
            open_ones = [other for other in above[thing] if found[other] is None and other not in on_path]
            if open_ones:
                path.append(open_ones[0])
                on_path.add(open_ones[0])
                continue
            ways = [way for other in above[thing] if (way := found[other]) is not None]
            found[thing] = (
                (1 + min(low for low, _ in ways), 1 + max(high for _, high in ways)) if ways else (0, 0)
            )
            on_path.discard(path.pop())
    return np.asarray(found, dtype=np.int32).reshape(len(above), 2)


def inverted(above: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each thing those directly below it, in their order."""
    below: list[list[int]] = [[] for _ in above]
    for thing, others in enumerate(above):
        for other in others:
            below[other].append(thing)
    return below


PART_ORDER: tuple[PartOfSpeech, ...] = get_args(PartOfSpeech)
"""The order in which the senses of a lemma of several parts of speech come, as in WordNet."""

_TEXTS = ("lemmas", "synsets", "forms")


@dataclass(frozen=True, eq=False)
class Ragged:
    """Lists of numbers end to end: list i is ``values[starts[i]:starts[i + 1]]``."""

    values: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> Self:
        """From lists."""
        rows = list(lists)
        starts = np.cumsum([0, *map(len, rows)])
        flat = [number for row in rows for number in row]
        return cls(np.asarray(flat, dtype=np.int32), starts.astype(np.int32))

    def __getitem__(self, row: int) -> list[int]:
        found: list[int] = self.values[self.starts[row] : self.starts[row + 1]].tolist()
        return found


@dataclass(frozen=True, eq=False)
class WordNetTables(Artifact, kind="wordnet", files=_TEXTS):
    """Numbers of lemmas and synsets instead of their names."""

    title: str  # what the WordNet calls itself
    lemmas: list[str]  # sorted
    synsets: list[str]  # their names
    parts: np.ndarray  # (n_synsets,) uint8, each one's place in PART_ORDER
    senses: Ragged  # for each lemma its synsets, by part of speech and then the usual one first
    members: Ragged  # for each synset its lemmas
    hypernyms: Ragged  # for each synset those directly above it
    hyponyms: Ragged  # for each synset those directly below it
    depths: np.ndarray  # (n_synsets, 2) int32, the shortest and the longest way to a root
    forms: list[str]  # irregular forms
    form_of: np.ndarray  # (n_forms, 2) int32, each one's lemma and part of speech

    @classmethod
    def of(cls, records: Records) -> Self:
        """From what a file holds."""
        names = [synset.name for synset in records.synsets]
        number = {name: row for row, name in enumerate(names)}
        if len(number) != len(names):
            twice = next(name for row, name in enumerate(names) if number[name] != row)
            raise DataError(f"synset {twice!r} occurs twice", "get the WordNet's files again")
        members = (lemma for synset in records.synsets for lemma in synset.lemmas)
        lemmas = sorted({entry.lemma for entry in records.entries} | set(members))
        row_of = {lemma: row for row, lemma in enumerate(lemmas)}
        senses: list[list[int]] = [[] for _ in lemmas]
        forms = []
        for entry in sorted(records.entries, key=lambda entry: PART_ORDER.index(entry.part)):
            senses[row_of[entry.lemma]] += _numbers(entry.synsets, number, entry.lemma)
            form_of = row_of[entry.lemma], PART_ORDER.index(entry.part)
            forms += [(form, *form_of) for form in entry.forms]
        above = [_numbers(synset.hypernyms, number, synset.name) for synset in records.synsets]
        return cls(
            title=records.title,
            lemmas=lemmas,
            synsets=names,
            parts=np.asarray([PART_ORDER.index(synset.part) for synset in records.synsets], dtype=np.uint8),
            senses=Ragged.of(senses),
            members=Ragged.of([row_of[lemma] for lemma in synset.lemmas] for synset in records.synsets),
            hypernyms=Ragged.of(above),
            hyponyms=Ragged.of(inverted(above)),
            depths=depths(above),
            forms=[form for form, _, _ in forms],
            form_of=np.asarray([rest for _, *rest in forms], dtype=np.int32).reshape(-1, 2),
        )

    def write_files(self, folder: Path) -> None:
        """Write the strings, which are too many for a header."""
        for name in _TEXTS:
            write_strings(folder / name, getattr(self, name))

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        """Return the strings that :meth:`write_files` wrote."""
        return {name: StringTable(folder / name)[:] for name in _TEXTS}


def _numbers(names: Sequence[str], number: dict[str, int], of: str) -> list[int]:
    try:
        return [number[name] for name in names]
    except KeyError as error:
        raise DataError(
            f"{of!r} names a synset {error.args[0]!r} that is not there", "get the WordNet's files again"
        ) from None
