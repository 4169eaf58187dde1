"""The forms in which a WordNet is passed on, and how one is found in a folder.

- WordNet's own database files, in a folder or a zip: Princeton's WordNet in NLTK's data (``corpora/wordnet``);
- Open English WordNet as two gzipped files of JSON lines, ``oewn_synsets.jsonl.gz`` and ``oewn_lemmas.jsonl.gz``;
- Open English WordNet's release as JSON: a folder of ``entries-*.json`` and a file of synsets per domain;
- WN-LMF, an XML file, often gzipped: Open English WordNet's other release, and the form of all wordnets of the
  Global WordNet Association.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError, iterparse

from diptych.core.context import track
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.reading import open_bytes, read_json, read_jsonl
from diptych.data.language.nltk_tagger import find_resource, read_member
from diptych.data.language.wordnet_tables import ABOVE, PARTS, Entry, Records, Synset, in_blocks

# WN-LMF, the XML of the Global WordNet Association, read into records.
#
# Source: McCrae et al., The Global WordNet Formats: Updates for 2020, Global WordNet Conference, 2021.


def read_lmf(path: Path) -> Records:
    """Return one lexicon; what is no noun, verb, adjective or adverb has no place here and is left out."""
    records = Records()
    lemma_of: dict[str, str] = {}  # by the ids of entries and of senses: a synset's members are either
    listed: list[list[str]] = []
    with open_bytes(path) as file:
        events = iterparse(file, ("start", "end"))
        for event, element in in_blocks(events, f"reading {path.name}", "tags"):
            if (event, element.tag) == ("start", "Lexicon"):
                records.title = f"{element.attrib['label']} {element.attrib['version']}"
            elif (event, element.tag) == ("end", "LexicalEntry"):
                lemma = {child.tag: child.attrib for child in element}["Lemma"]
                senses = [sense.attrib for sense in element.findall("Sense")]
                for id in (element.attrib["id"], *(sense["id"] for sense in senses)):
                    lemma_of[id] = lemma["writtenForm"]
                if lemma["partOfSpeech"] in PARTS:
                    part = PARTS[lemma["partOfSpeech"]]
                    forms = [form.attrib["writtenForm"] for form in element.findall("Form")]
                    names = [sense["synset"] for sense in senses]
                    records.entries.append(Entry(lemma["writtenForm"], part, names, forms))
                element.clear()
            elif (event, element.tag) == ("end", "Synset"):
                if element.attrib["partOfSpeech"] in PARTS:
                    relations = [relation.attrib for relation in element.findall("SynsetRelation")]
                    above = [one["target"] for one in relations if one["relType"] in ABOVE]
                    part = PARTS[element.attrib["partOfSpeech"]]
                    records.synsets.append(Synset(element.attrib["id"], part, (), above))
                    listed.append(element.attrib.get("members", "").split())
                element.clear()
    has: dict[str, list[str]] = {}  # what a synset that does not list its members is made of
    for entry in records.entries:
        for name in entry.synsets:
            has.setdefault(name, []).append(entry.lemma)
    records.synsets = [
        synset._replace(lemmas=[lemma_of[id] for id in members] or has.get(synset.name, []))
        for synset, members in zip(records.synsets, listed, strict=True)
    ]
    if not records.synsets:
        raise KeyError("Synset")
    return records


# WordNet's own database files, as Princeton and NLTK's data have them, read into records.
#
# Source: Fellbaum, WordNet, 1998, ``wndb(5WN)``. They are read here and not through NLTK, whose reader takes
# seconds each time, and since version 3.10 refuses folders that are not among its own.

_FILES: Mapping[str, str] = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
DATABASE_FILES = tuple(
    name for file in _FILES.values() for name in (f"data.{file}", f"index.{file}", f"{file}.exc")
)
"""What of the database is read."""

_ABOVE = ("@", "@i")  # is a kind of, is an instance of
_MARK = re.compile(r"\([a-z]+\)$")  # where an adjective may stand: galore(ip)
_VERSION = re.compile(r"WordNet (\d[\d.]*\+?) Copyright", re.IGNORECASE)


def read_database(read: Callable[[str], bytes]) -> Records:
    """Return all of WordNet; synsets are named as NLTK names them, ``dog.n.01``."""
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
    """Yield all but the licence at the top, whose lines begin with two blanks."""
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


# Open English WordNet as JSON: its release, and a compact form of it.
#
# Source: McCrae et al., English WordNet 2020, Multimodal Wordnets Workshop, 2020; https://en-word.net.

SYNSETS, LEMMAS = "oewn_synsets.jsonl.gz", "oewn_lemmas.jsonl.gz"

_TITLE = "Open English WordNet"


def read_json_lines(lemmas: Path, synsets: Path) -> Records:
    """Return the compact form: a line per lemma (``l``, and synsets by part of speech in ``s``) and per synset
    (``id``, part of speech ``p``, members ``m``, hypernyms ``h``); it has no irregular forms.
    """
    records = Records(_TITLE)
    for value in _values(synsets):
        records.synsets.append(Synset(value["id"], PARTS[value["p"]], value["m"], value.get("h", ())))
    for value in _values(lemmas):
        for letter, names in value["s"].items():
            records.entries.append(Entry(value["l"], PARTS[letter], names))
    return records


def _values(path: Path) -> Iterator[Any]:
    values = (value for _, value in read_jsonl(path))
    yield from in_blocks(values, f"reading {path.name}", "lines")


def read_json_release(paths: Sequence[Path]) -> Records:
    """Return the release: entries by lemma and part of speech in ``entries-*.json``, synsets in the other files."""
    records = Records(_TITLE)
    for path in track(paths, f"reading {_TITLE}", unit="files"):
        content = read_json(path)
        if path.name.startswith("entries-"):
            for lemma, by_part in content.items():
                # n, or n-1 and n-2 of two words that are written alike
                for letters, entry in by_part.items():
                    names = [sense["synset"] for sense in entry["sense"]]
                    records.entries.append(Entry(lemma, PARTS[letters[0]], names, entry.get("form", ())))
        elif not path.name.startswith("frames"):
            for name, synset in content.items():
                above = [other for relation in ABOVE for other in synset.get(relation, ())]
                records.synsets.append(Synset(name, PARTS[synset["partOfSpeech"]], synset["members"], above))
    return records


WORDNET = "corpora/wordnet"
"""Princeton's WordNet in NLTK's data."""


@dataclass(frozen=True)
class WordNetFiles:
    """Where a WordNet is and in which form."""

    path: Path  # as it was named
    form: str  # one of FORMS
    files: tuple[Path, ...]  # all that is read

    def fingerprint(self) -> str:
        """Of the files' names and contents."""
        return fingerprint(self.form, *((file.name, fingerprint_file(file)) for file in self.files))

    def read(self) -> Records:
        """Return all of it."""
        try:
            return FORMS[self.form](self)
        except (OSError, EOFError, zlib.error, ValueError, ParseError) as error:
            raise StorageError(f"{self.path}: the WordNet cannot be read: {error}", "get it again") from None
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise DataError(
                f"{self.path} holds no WordNet as {self.form}: {error!r}", "get it again"
            ) from None


def wordnet_files(path: Path | str) -> WordNetFiles:
    """Find a WordNet in a folder (one of NLTK data, too), or take the file that it is."""
    path = Path(path)
    inner = find_resource([path], WORDNET) or path
    if inner.suffix == ".zip" and _holds_database(inner):
        return WordNetFiles(path, "database", (inner,))
    for form, files in (
        ("database", [inner / name for name in DATABASE_FILES]),
        ("JSON lines", [inner / LEMMAS, inner / SYNSETS]),
    ):
        if all(file.is_file() for file in files):
            return WordNetFiles(path, form, tuple(files))
    if any(path.glob("entries-*.json")):
        return WordNetFiles(path, "JSON", tuple(sorted(path.glob("*.json"))))
    found = [path] if path.is_file() else sorted([*path.glob("*.xml"), *path.glob("*.xml.gz")])
    if len(found) == 1 and found[0].name.endswith((".xml", ".xml.gz")):
        return WordNetFiles(path, "WN-LMF", tuple(found))
    raise UsageError(
        f"{path} {'holds no WordNet' if path.exists() else 'does not exist'}",
        "give a folder with WordNet's database files (data.noun, index.noun, noun.exc, …), with Open English "
        f"WordNet's JSON files or {LEMMAS} and {SYNSETS}, or one WN-LMF file (.xml, .xml.gz); unpack other zips",
    )


def _holds_database(zipped: Path) -> bool:
    """Return whether a zip has WordNet's database; a damaged one may, and is found out when it is read."""
    if not zipfile.is_zipfile(zipped):
        return zipped.is_file()
    with zipfile.ZipFile(zipped) as archive:
        return f"{zipped.stem}/{DATABASE_FILES[0]}" in archive.namelist()


def _database(found: WordNetFiles) -> Records:
    where = found.files[0] if found.files[0].suffix == ".zip" else found.files[0].parent
    return read_database(lambda name: read_member(where, name))


FORMS: Mapping[str, Callable[[WordNetFiles], Records]] = {
    "database": _database,
    "JSON lines": lambda found: read_json_lines(*found.files),
    "JSON": lambda found: read_json_release(found.files),
    "WN-LMF": lambda found: read_lmf(found.files[0]),
}
"""How each form is read."""
