"""A language by name: what is at hand of it, and what to do about what is not."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from diptych.core.errors import UnknownNameError
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import cached
from diptych.core.options import Options, parameter
from diptych.data.collection import Collection
from diptych.data.language.contract import Language
from diptych.data.language.nltk_tagger import TAGGER, NltkTagger, data_folders, find_resource, how_to_get
from diptych.data.language.table_wordnet import TableWordNet
from diptych.data.language.wordnet_files import WORDNET, wordnet_files
from diptych.data.language.wordnet_tables import WordNetTables

PAGE = "https://en-word.net"
"""Where Open English WordNet is to be had."""

# A change of the tables' layout, or of how the files are read, makes them anew.
_VERSION = 3

logger = logging.getLogger(__name__)


def open_wordnet(path: Path | str) -> TableWordNet:
    """Open a WordNet in one of the forms of :mod:`diptych.data.language.wordnet_files`."""
    files = wordnet_files(path)
    key = fingerprint(_VERSION, files.fingerprint())
    folder = cache_root() / "wordnet" / key
    tables = cached(folder, WordNetTables.open, lambda target: WordNetTables.of(files.read()).save(target))
    return TableWordNet(tables, key)


WORDNET_VARIABLE = "DIPTYCH_WORDNET"
"""The environment variable that names a WordNet's folder or file."""


@dataclass(frozen=True)
class Places:
    """Where a language's parts are, or were said to be."""

    folders: tuple[Path, ...]  # of NLTK data that were looked in
    # a folder of NLTK data with a tagger in it, or the one that was named; None where none was found
    tagger: Path | None
    wordnet: Path | None  # a folder or file of a WordNet, found or named; None where none was found
    wordnet_by: str  # who said so

    @classmethod
    def find(cls, wordnet: Path | str | None = None, nltk_data: Path | str | None = None) -> Self:
        """Look."""
        folders = tuple(data_folders() if nltk_data is None else [Path(nltk_data)])
        tagger = find_resource(folders, TAGGER)
        data = None if tagger is None else tagger.parent.parent
        net = find_resource(folders, WORDNET)
        if nltk_data is not None and data is None and net is None:
            data = Path(nltk_data)  # that nothing at all is there is for whoever opens it to say
        variable = os.environ.get(WORDNET_VARIABLE)
        if wordnet is not None:
            return cls(folders, data, Path(wordnet), "named")
        if variable:
            return cls(folders, data, Path(variable), WORDNET_VARIABLE)
        return cls(folders, data, net, "NLTK's data")


LANGUAGES: Mapping[str, str] = {
    "auto": "the scenes language for generated scenes, NLTK's tagger and a WordNet for everything else",
    "nltk": "NLTK's tagger, and the WordNet that was named or NLTK's",
    "scenes": "the words of generated scenes; built in",
    "none": "nothing: for what looks at characters alone",
}
"""What :func:`open_language` opens."""


def open_language(
    name: str = "auto",
    *,
    wordnet: Path | str | None = None,
    nltk_data: Path | str | None = None,
    collection: Collection | None = None,
) -> Language:
    """Return what is at hand of a language."""
    if name not in LANGUAGES:
        raise UnknownNameError("language", name, LANGUAGES)
    if name == "none":
        return Language(name, missing="name another language than none")
    named = wordnet is not None or nltk_data is not None
    if name == "scenes" or (name == "auto" and not named and is_of_scenes(collection)):
        from diptych.data.language.scenes_language import ScenesTagger, scenes_wordnet

        return Language("scenes", ScenesTagger(), scenes_wordnet())
    places = Places.find(wordnet, nltk_data)
    tagger = None if places.tagger is None else NltkTagger(places.tagger)
    net = None if places.wordnet is None else open_wordnet(places.wordnet)
    hint = how_to_get()
    return Language("nltk", tagger, net, hint if tagger is None else f"{hint}, or {other_wordnets()}")


class LanguageSpec(Options):
    """Which tagger and WordNet read captions."""

    language: str = parameter("auto", "auto, nltk, scenes or none; see diptych data resources.")
    wordnet: Path | None = parameter(None, "A WordNet's folder or file.")
    nltk_data: Path | None = parameter(None, "An NLTK data folder.")

    def open(self, collection: Collection | None) -> Language:
        """Return the language of a collection's captions."""
        places = {"wordnet": self.wordnet, "nltk_data": self.nltk_data}
        return open_language(self.language, **places, collection=collection)


def other_wordnets() -> str:
    """Return what to do to have a WordNet that is not NLTK's."""
    return f"name Open English WordNet ({PAGE}) with --wordnet or {WORDNET_VARIABLE}"


def is_of_scenes(collection: Collection | None) -> bool:
    """Return whether a collection is of generated scenes: its pictures' facts and what its captions state are known."""
    if collection is None or not collection.records or not collection.caption_records:
        return False
    return "facts" in collection.records[0] and "states" in collection.caption_records[0]
