"""Where the parts of a language are: what was named, the environment, NLTK's search path, in that order."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from diptych.data.language.nltk_folder import data_folders, find_resource
from diptych.data.language.nltk_tagger import TAGGER
from diptych.data.language.wordnet_files import WORDNET

WORDNET_VARIABLE = "DIPTYCH_WORDNET"
"""The environment variable that names a WordNet's folder or file."""


@dataclass(frozen=True)
class Places:
    """Where a language's parts are, or were said to be.

    Attributes:
        folders: of NLTK data that were looked in.
        tagger: a folder of NLTK data with a tagger in it, or the one that was named; None where none was found.
        wordnet: a folder or file of a WordNet, found or named; None where none was found.
        wordnet_by: who said so.
    """

    folders: tuple[Path, ...]
    tagger: Path | None
    wordnet: Path | None
    wordnet_by: str

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
