"""Open English WordNet as JSON: its release, and a compact form of it.

Source: McCrae et al., English WordNet 2020, Multimodal Wordnets Workshop, 2020; https://en-word.net.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from diptych.core.progress import track
from diptych.data.language.wordnet_records import ABOVE, PARTS, Entry, Records, Synset, in_blocks

__all__ = ["LEMMAS", "SYNSETS", "read_json_lines", "read_json_release"]

SYNSETS, LEMMAS = "oewn_synsets.jsonl.gz", "oewn_lemmas.jsonl.gz"

_TITLE = "Open English WordNet"


def read_json_lines(lemmas: Path, synsets: Path) -> Records:
    """The compact form: a line per lemma (``l``, and synsets by part of speech in ``s``) and per synset
    (``id``, part of speech ``p``, members ``m``, hypernyms ``h``); it has no irregular forms.

    Raises:
        OSError, EOFError, zlib.error, ValueError, KeyError: it is damaged, or something else.
    """
    records = Records(_TITLE)
    for value in _values(synsets):
        records.synsets.append(Synset(value["id"], PARTS[value["p"]], value["m"], value.get("h", ())))
    for value in _values(lemmas):
        for letter, names in value["s"].items():
            records.entries.append(Entry(value["l"], PARTS[letter], names))
    return records


def _values(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from in_blocks(map(json.loads, lines), f"reading {path.name}", "lines")


def read_json_release(paths: Sequence[Path]) -> Records:
    """The release: entries by lemma and part of speech in ``entries-*.json``, synsets in the other files.

    Raises:
        OSError, ValueError, KeyError, AttributeError: it is damaged, or something else.
    """
    records = Records(_TITLE)
    for path in track(paths, f"reading {_TITLE}", unit="files"):
        content = json.loads(path.read_bytes())
        if path.name.startswith("entries-"):
            for lemma, by_part in content.items():
                for (
                    letters,
                    entry,
                ) in by_part.items():  # n, or n-1 and n-2 of two words that are written alike
                    names = [sense["synset"] for sense in entry["sense"]]
                    records.entries.append(Entry(lemma, PARTS[letters[0]], names, entry.get("form", ())))
        elif not path.name.startswith("frames"):
            for name, synset in content.items():
                above = [other for relation in ABOVE for other in synset.get(relation, ())]
                records.synsets.append(Synset(name, PARTS[synset["partOfSpeech"]], synset["members"], above))
    return records
