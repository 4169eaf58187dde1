"""``diptych data resources``: the tagger and the WordNet that reading captions needs, and how to get them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import OutOption
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.data.language import Tagger, WordNet

_SENTENCE = "Two young dogs are running through the tall grass."
_WORD = "dogs"


class ResourceOptions(OutOption):
    """Where resources are looked for."""

    wordnet: Path | None = Field(
        None,
        description="A WordNet's folder or file.",
        json_schema_extra={"default": "DIPTYCH_WORDNET, or NLTK's data"},
    )
    nltk_data: Path | None = Field(
        None, description="A folder of NLTK data.", json_schema_extra={"default": "where NLTK looks"}
    )
    check: bool = Field(False, description="Tag a sentence and look up a word; exit code 1 if one cannot.")


def resources(options: ResourceOptions) -> None:
    """Say which language resources are there: a part-of-speech tagger and a WordNet.

    Perturbations that change nouns, adjectives or meanings need them, and so does granularity. For generated
    scenes they are built in; for everything else they are NLTK's tagger, and NLTK's or any other WordNet.

    Examples:
        diptych data resources --check
        diptych data resources --wordnet english-wordnet-2024.xml.gz
    """
    from diptych.data.language.resources import find_resources

    with progress():
        found = find_resources(options.wordnet, options.nltk_data)
    rows = [
        (row.name, row.state, row.what, f"{row.size / 1e6:.1f}" if row.size else "") for row in found.rows
    ]
    show(Table.of("language resources", "", ("what", "state", "version", "MB"), rows))
    for row in found.rows:
        if row.path:
            say(f"{row.name}: {row.path}")
    if found.missing:
        say(f"looked in: {', '.join(map(str, found.folders)) or 'no folder'}")
        for row in found.missing:
            say(f"to get {row.name}: {row.fix}")
    if options.check:
        say("the tagger: " + (_tagged(found.tagger) if found.tagger else "cannot be checked"))
        say("the WordNet: " + (_looked_up(found.wordnet) if found.wordnet else "cannot be checked"))
    if options.out is not None:
        from diptych.core.files import write_json

        write_json(options.out, {"resources": [asdict(row) for row in found.rows]})
        say(f"written to {options.out}")
    given = {"--wordnet": options.wordnet, "--nltk-data": options.nltk_data}
    words = [word for flag, value in given.items() if value is not None for word in (flag, str(value))]
    next_step(
        ["diptych", "data", "resources", "--check"]
        if found.missing
        else ["diptych", "data", "perturb", "DATASET", *words]
    )
    if options.check and (found.tagger is None or found.wordnet is None):
        raise typer.Exit(1)


def _tagged(tagger: Tagger) -> str:
    """A sentence with its tags."""
    from diptych.data.language.contract import words_of

    words = [word.text for word in words_of(_SENTENCE, marks=True)]
    return " ".join(f"{word}/{tag}" for word, tag in zip(words, tagger.tag([words])[0], strict=True))


def _looked_up(net: WordNet) -> str:
    """What it knows of a word."""
    lemmas = net.base_forms(_WORD, "noun")
    if not lemmas or not (senses := net.senses(lemmas[0], "noun")):
        return f"does not know {_WORD!r}"
    sense = senses[0]
    above = [" or ".join(net.lemmas(one)) for one in net.hypernyms(sense)]
    low, high = net.depth(sense)
    return (
        f"{_WORD} → {lemmas[0]}, {len(senses)} senses; the usual one is {sense} ({', '.join(net.lemmas(sense))}), "
        f"a kind of {' and of '.join(above) or 'nothing'}, {low} to {high} steps below the top"
    )
