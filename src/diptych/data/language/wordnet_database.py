"""WordNet's own database files, as Princeton and NLTK's data have them, read into records.

Source: Fellbaum, WordNet, 1998, ``wndb(5WN)``. They are read here and not through NLTK, whose reader takes
seconds each time, and since version 3.10 refuses folders that are not among its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from diptych.data.language.wordnet_records import PARTS, Entry, Records, Synset

__all__ = ["DATABASE_FILES", "read_database"]

_FILES: Mapping[str, str] = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
DATABASE_FILES = tuple(
    name for file in _FILES.values() for name in (f"data.{file}", f"index.{file}", f"{file}.exc")
)
"""What of the database is read."""

_ABOVE = ("@", "@i")  # is a kind of, is an instance of
_MARK = re.compile(r"\([a-z]+\)$")  # where an adjective may stand: galore(ip)
_VERSION = re.compile(r"WordNet (\d[\d.]*\+?) Copyright", re.IGNORECASE)


def read_database(read: Callable[[str], bytes]) -> Records:
    """All of WordNet; synsets are named as NLTK names them, ``dog.n.01``.

    Args:
        read: gives the content of one of :data:`DATABASE_FILES`.

    Raises:
        ValueError, KeyError, IndexError: it is not of that format.
    """
    records = Records()
    for letter, file in _FILES.items():
        senses = {lemma: offsets for lemma, offsets in _index(read(f"index.{file}").decode())}
        data = read(f"data.{file}").decode()
        if version := _VERSION.search(data[:4096]):
            records.title = f"WordNet {version[1]}"
        synsets = {offset: (kind, words, above) for offset, kind, words, above in _data(data)}
        names = {}
        for offset, (kind, words, _) in synsets.items():
            first = words[0].lower()
            names[offset] = f"{first}.{kind}.{senses[first].index(offset) + 1:02d}"
        part = PARTS[letter]
        for offset, (_, words, above) in synsets.items():
            records.synsets.append(
                Synset(names[offset], part, [_plain(word) for word in words], [names[one] for one in above])
            )
        for lemma, offsets in senses.items():
            records.entries.append(Entry(_plain(lemma), part, [names[offset] for offset in offsets]))
        for line in read(f"{file}.exc").decode().splitlines():
            form, *lemmas = map(_plain, line.split())
            records.entries += [Entry(lemma, part, (), (form,)) for lemma in lemmas]  # in the line's order
    return records


def _plain(word: str) -> str:
    return word.replace("_", " ")


def _lines(text: str) -> Iterator[str]:
    """All but the licence at the top, whose lines begin with two blanks."""
    return (line for line in text.splitlines() if line and not line.startswith(" "))


def _index(text: str) -> Iterator[tuple[str, list[str]]]:
    """Lemma and the offsets of its synsets: ``dog n 2 1 @ 2 1 02084071 10114209``."""
    for line in _lines(text):
        lemma, _, count, *rest = line.split()
        yield lemma, rest[-int(count) :]


def _data(text: str) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Offset, kind, words, and offsets above: ``02084071 05 n 01 dog 0 001 @ 02083346 n 0000 | a member of …``."""
    for line in _lines(text):
        offset, _, kind, count, *rest = line.partition("|")[0].split()
        fields = iter(rest)
        words = [_MARK.sub("", word) for word, _ in _tuples(fields, 2, int(count, 16))]
        pointers = _tuples(fields, 4, int(next(fields, "")))
        yield offset, kind, words, [pointer[1] for pointer in pointers if pointer[0] in _ABOVE]


def _tuples(fields: Iterator[str], width: int, count: int) -> list[tuple[str, ...]]:
    taken = list(islice(fields, width * count))
    if len(taken) != width * count:
        raise ValueError(f"a synset's line ends after {taken}")
    return list(zip(*[iter(taken)] * width, strict=True))
