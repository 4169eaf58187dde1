"""A WordNet of a dozen synsets, written in each of the forms in which one is passed on.

dog and wolf are canines, a canine is a carnivore and a carnivore an animal; a dog is a pet besides, and a pet an
animal; an animal is an entity. Paris is an instance of a city. ``red`` is a satellite of ``chromatic``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Made(NamedTuple):
    """A synset: its letter, lemmas in order, those above, and whether it is an instance of them."""

    letter: str
    lemmas: tuple[str, ...]
    above: tuple[str, ...] = ()
    instance: bool = False


SYNSETS = {
    "entity": Made("n", ("entity",)),
    "animal": Made("n", ("animal", "beast"), ("entity",)),
    "carnivore": Made("n", ("carnivore",), ("animal",)),
    "canine": Made("n", ("canine", "canid"), ("carnivore",)),
    "pet": Made("n", ("pet",), ("animal",)),
    "dog": Made("n", ("dog", "domestic dog", "Canis familiaris"), ("canine", "pet")),
    "frump": Made("n", ("frump", "dog"), ("entity",)),
    "wolf": Made("n", ("wolf",), ("canine",)),
    "city": Made("n", ("city",), ("entity",)),
    "paris": Made("n", ("Paris",), ("city",), instance=True),
    "pursue": Made("v", ("pursue", "dog")),
    "chromatic": Made("a", ("chromatic",)),
    "red": Made("s", ("red", "reddish")),
    "quickly": Made("r", ("quickly",)),
}
FORMS = {"n": {"wolf": ("wolves",)}, "v": {"dog": ("dogged",)}, "a": {}, "r": {}}


def _letter(made: Made) -> str:
    return "a" if made.letter == "s" else made.letter


def _senses(letter: str) -> dict[str, list[str]]:
    """Lemma → its synsets of that part of speech, in the order of the table above."""
    senses: dict[str, list[str]] = {}
    for name, made in SYNSETS.items():
        if _letter(made) == letter:
            for lemma in made.lemmas:
                senses.setdefault(lemma, []).append(name)
    return senses


def write_json_lines(folder: Path) -> Path:
    """The compact form of Open English WordNet; it has no irregular forms."""
    folder.mkdir(parents=True, exist_ok=True)
    synsets = [
        {"id": f"{name}-{made.letter}", "p": made.letter, "lex": "x", "m": made.lemmas}
        | ({"h": [f"{one}-{SYNSETS[one].letter}" for one in made.above]} if made.above else {})
        for name, made in SYNSETS.items()
    ]
    lemmas: dict[str, dict[str, list[str]]] = {}
    for letter in "nvar":
        for lemma, names in _senses(letter).items():
            lemmas.setdefault(lemma, {})[letter] = [f"{name}-{SYNSETS[name].letter}" for name in names]
    _lines(folder / "oewn_synsets.jsonl.gz", synsets)
    _lines(folder / "oewn_lemmas.jsonl.gz", [{"l": lemma, "s": senses} for lemma, senses in lemmas.items()])
    return folder


def _lines(path: Path, values: Iterable[object]) -> None:
    lines = "".join(json.dumps(value) + "\n" for value in values)
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))


def write_lmf(path: Path, *, members: bool = True) -> Path:
    """WN-LMF, gzipped where the name says so; ``members`` lists each synset's entries, in order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = []
    for letter in "nvar":
        for lemma, names in _senses(letter).items():
            forms = "".join(f'<Form writtenForm="{form}"/>' for form in FORMS[letter].get(lemma, ()))
            senses = "".join(
                f'<Sense id="{_id(lemma, name)}" synset="t-{name}-{SYNSETS[name].letter}"/>' for name in names
            )
            parts.append(
                f'<LexicalEntry id="{_id(lemma, letter)}"><Lemma writtenForm="{lemma}" partOfSpeech="{letter}"/>'
                f"{forms}{senses}</LexicalEntry>"
            )
    parts.append('<LexicalEntry id="t-and-c"><Lemma writtenForm="and" partOfSpeech="c"/></LexicalEntry>')
    for name, made in SYNSETS.items():
        relation = "instance_hypernym" if made.instance else "hypernym"
        above = "".join(
            f'<SynsetRelation relType="{relation}" target="t-{one}-{SYNSETS[one].letter}"/>'
            for one in made.above
        )
        listed = " ".join(_id(lemma, _letter(made)) for lemma in made.lemmas)
        attribute = f' members="{listed}"' if members else ""
        parts.append(
            f'<Synset id="t-{name}-{made.letter}" ili="" partOfSpeech="{made.letter}"{attribute}>'
            f"<Definition>…</Definition>{above}</Synset>"
        )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<!DOCTYPE LexicalResource SYSTEM "http://globalwordnet.github.io/schemas/WN-LMF-1.1.dtd">\n'
        '<LexicalResource xmlns:dc="https://globalwordnet.github.io/schemas/dc/">'
        '<Lexicon id="t" label="Tiny WordNet" language="en" email="a@b" license="x" version="1.2">'
        f"{''.join(parts)}</Lexicon></LexicalResource>"
    )
    content = text.encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def _id(lemma: str, rest: str) -> str:
    return f"t-{lemma.replace(' ', '_')}-{rest}"


_FILE = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_LICENCE = (
    "  1 This software and database is made by a test.  \n  2 WordNet 3.0 Copyright 2006 by nobody.  \n"
)


def write_database(folder: Path) -> Path:
    """WordNet's database files, with byte offsets that are right, as NLTK's reader needs them."""
    folder.mkdir(parents=True, exist_ok=True)
    offsets: dict[str, int] = {}
    for write in (False, True):  # first where every line begins, then the lines
        for letter, file in _FILE.items():
            data = _LICENCE
            for name, made in SYNSETS.items():
                if _letter(made) == letter:
                    offsets[name] = len(data.encode())
                    data += _data_line(name, made, offsets)
            if write:
                (folder / f"data.{file}").write_text(data)
                (folder / f"index.{file}").write_text(_LICENCE + "".join(_index_lines(letter, offsets)))
                forms = [(form, lemma) for lemma, made_of in FORMS[letter].items() for form in made_of]
                (folder / f"{file}.exc").write_text("".join(f"{form} {lemma}\n" for form, lemma in forms))
    (folder / "lexnames").write_text("00\tadj.all\t3\n01\tnoun.all\t1\n02\tverb.all\t2\n03\tadv.all\t4\n")
    (folder / "index.sense").write_text("")
    (folder / "cntlist.rev").write_text("")
    return folder


def _data_line(name: str, made: Made, offsets: dict[str, int]) -> str:
    written = [lemma.replace(" ", "_") for lemma in made.lemmas]
    if name == "red":
        written[1] += "(p)"  # an adjective that stands after its noun
    words = " ".join(f"{word} 0" for word in written)
    pointers = [("@i" if made.instance else "@", one) for one in made.above]
    if made.letter == "s":
        pointers.append(("&", "chromatic"))
    lines = "".join(
        f" {symbol} {offsets.get(one, 0):08d} {_letter(SYNSETS[one])} 0000" for symbol, one in pointers
    )
    domain = {"n": 1, "v": 2, "a": 0, "r": 3}[_letter(made)]
    frames = " 01 + 08 00" if made.letter == "v" else ""
    return (
        f"{offsets[name]:08d} {domain:02d} {made.letter} {len(written):02x} {words} {len(pointers):03d}{lines}{frames}"
        f' | what a {made.lemmas[0]} is; "an example"  \n'
    )


def _index_lines(letter: str, offsets: dict[str, int]) -> list[str]:
    lines = []
    for lemma, names in sorted(_senses(letter).items(), key=lambda item: item[0].lower()):
        places = " ".join(f"{offsets[name]:08d}" for name in names)
        lines.append(
            f"{lemma.lower().replace(' ', '_')} {letter} {len(names)} 1 @ {len(names)} 0 {places}  \n"
        )
    return lines


def in_all_forms(folder: Path) -> dict[str, Path]:
    """It in every form: the name of the form → its folder or file."""
    return {
        "database": write_database(folder / "database" / "wordnet"),
        "JSON lines": write_json_lines(folder / "lines"),
        "WN-LMF": write_lmf(folder / "lmf" / "tiny.xml.gz"),
    }
