"""What a language needs beyond this package: what of it is there, what is missing, how to get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from diptych.core.errors import DiptychError, UsageError
from diptych.core.table import Table
from diptych.data.language.contract import Tagger, WordNet, words_of
from diptych.data.language.nltk_tagger import DOWNLOAD, EXTRA, NltkTagger, how_to_get
from diptych.data.language.open import Places, open_wordnet, other_wordnets
from diptych.data.language.table_wordnet import TableWordNet
from diptych.data.language.wordnet_files import wordnet_files

_SENTENCE, _WORD = "Two young dogs are running through the tall grass.", "dogs"


@dataclass(frozen=True)
class Resource:
    """One thing that is there or not."""

    name: str  # what it is
    state: Literal["there", "missing", "damaged"]  # there, missing or damaged
    what: str  # version and content of what is there, or what is wrong
    path: str = ""  # where it is, or should be; empty where it is nowhere
    size: int = 0  # in bytes on disk; 0 where there is nothing
    fix: str = ""  # how to get it; empty where it is there


@dataclass(frozen=True)
class Resources:
    """All of them."""

    rows: tuple[Resource, ...]  # one each
    folders: tuple[Path, ...]  # of NLTK data that were looked in
    tagger: Tagger | None  # None where there is none to use
    wordnet: WordNet | None  # None where there is none to use

    @property
    def missing(self) -> tuple[Resource, ...]:
        """Return what is not there, or is damaged."""
        return tuple(row for row in self.rows if row.state != "there")

    def tables(self) -> list[Table]:
        """Return one row each."""
        sizes = (f"{row.size / 1e6:.1f}" if row.size else "" for row in self.rows)
        rows = [(row.name, row.state, row.what, size) for row, size in zip(self.rows, sizes, strict=True)]
        return [Table.of("language resources", "", ("what", "state", "version", "MB"), rows)]

    def lines(self) -> list[str]:
        """Return where they are, and how to get those that are missing."""
        folders = ", ".join(map(str, self.folders)) or "no folder"
        return [
            *(f"{row.name}: {row.path}" for row in self.rows if row.path),
            *([f"looked in: {folders}"] if self.missing else []),
            *(f"to get {row.name}: {row.fix}" for row in self.missing),
        ]

    def tried(self) -> list[str]:
        """Return a tagged sentence, and what is known of a word."""
        tagged = known = "cannot be checked"
        if self.tagger is not None:
            words = [word.text for word in words_of(_SENTENCE, marks=True)]
            pairs = zip(words, self.tagger.tag([words])[0], strict=True)
            tagged = " ".join(f"{word}/{tag}" for word, tag in pairs)
        if self.wordnet is not None:
            known = _looked_up(self.wordnet)
        return [f"the tagger: {tagged}", f"the WordNet: {known}"]


def _looked_up(net: WordNet) -> str:
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


def find_resources(wordnet: Path | str | None = None, nltk_data: Path | str | None = None) -> Resources:
    """Look for everything; what is missing or damaged is said, not raised."""
    from diptych.data.language.scenes_language import ScenesTagger, scenes_wordnet

    places = Places.find(wordnet, nltk_data)
    try:
        library = Resource("NLTK", "there", metadata.version("nltk"))
    except metadata.PackageNotFoundError:
        library = Resource("NLTK", "missing", "not installed", fix=f"pip install 'diptych[{EXTRA}]'")
    tagger: NltkTagger | None = None
    net: TableWordNet | None = None
    tagger_row = Resource("tagger", "missing", "in none of NLTK's data folders", fix=how_to_get())
    if places.tagger is not None:
        try:
            tagger = NltkTagger(places.tagger)
            tagger_row = Resource("tagger", "there", tagger.name, str(tagger.path), _size([tagger.path]))
        except DiptychError as error:
            tagger_row = _wrong("tagger", places.tagger, error, DOWNLOAD)
    fix = f"{how_to_get()}, or {other_wordnets()}"
    net_row = Resource("WordNet", "missing", "in none of NLTK's data folders", fix=fix)
    if places.wordnet is not None:
        try:
            net, files = open_wordnet(places.wordnet), wordnet_files(places.wordnet)
            what = f"{_counted(net)} ({files.form}, {places.wordnet_by})"
            net_row = Resource("WordNet", "there", what, str(places.wordnet), _size(files.files))
        except DiptychError as error:
            net_row = _wrong("WordNet", places.wordnet, error, fix)
    scenes = f"{ScenesTagger.name}; {_counted(scenes_wordnet())}"
    rows = (library, tagger_row, net_row, Resource("language of scenes", "there", scenes, "built in"))
    return Resources(rows, places.folders, tagger if library.state == "there" else None, net)


def _counted(net: TableWordNet) -> str:
    return f"{net.name}: {len(net):,} synsets, {net.n_lemmas:,} lemmas"


def _wrong(name: str, path: Path, error: DiptychError, fix: str) -> Resource:
    state: Literal["missing", "damaged"] = "missing" if isinstance(error, UsageError) else "damaged"
    return Resource(name, state, error.message, str(path), fix=fix)


def _size(paths: Sequence[Path]) -> int:
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files if file.is_file())
