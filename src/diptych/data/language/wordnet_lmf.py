"""WN-LMF, the XML of the Global WordNet Association, read into records.

Source: McCrae et al., The Global WordNet Formats: Updates for 2020, Global WordNet Conference, 2021.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import IO, cast
from xml.etree.ElementTree import Element, iterparse

from diptych.data.language.wordnet_records import ABOVE, PARTS, Entry, Records, Synset, in_blocks

__all__ = ["read_lmf"]


def read_lmf(path: Path) -> Records:
    """One lexicon; what is no noun, verb, adjective or adverb has no place here and is left out.

    Raises:
        OSError, EOFError, zlib.error, ParseError, KeyError, AttributeError: it is damaged, or something else.
    """
    records = Records()
    lemma_of: dict[str, str] = {}  # by the ids of entries and of senses: a synset's members are either
    listed: list[list[str]] = []
    with _opened(path) as file:
        events = iterparse(file, ("start", "end"))
        for event, element in in_blocks(events, f"reading {path.name}", "tags"):
            if (event, element.tag) == ("start", "Lexicon"):
                records.title = f"{element.attrib['label']} {element.attrib['version']}"
            elif (event, element.tag) == ("end", "LexicalEntry"):
                lemma = _child(element, "Lemma").attrib
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


def _child(element: Element, name: str) -> Element:
    found = element.find(name)
    if found is None:
        raise KeyError(name)
    return found


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else open(path, "rb")
