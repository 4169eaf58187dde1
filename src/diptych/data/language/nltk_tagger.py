"""NLTK's averaged perceptron, made to read captions.

It was trained on newspaper text, where contractions are cut apart and a capital letter begins a name. Captions
are made to look like that before they are tagged:

- ``dog's`` is read as ``dog`` and ``'s``, ``isn't`` as ``is`` and ``n't``; the word has its first part's tag.
  An apostrophe by itself and the ``s`` after it (``dog 's``) are one token, and both have its tag.
- The first word of a sentence is read in lower case unless it has capitals within (``ATV``); a caption without
  any small letter is read in lower case throughout. Of Flickr8k's captions one in seventeen is tagged
  otherwise by that, for example ``Young/NNP girl`` as ``Young/JJ girl``.
- Straight quotation marks are read as the opening and closing ones of the Penn treebank.
"""

import json
import os
import re
import zipfile
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from diptych.core.errors import UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint, fingerprint_bytes
from diptych.core.reading import file_errors

# The extra that brings the library.

# What brings the data.
DOWNLOAD = "python -m nltk.downloader averaged_perceptron_tagger_eng wordnet"

TAGGER = "taggers/averaged_perceptron_tagger_eng"

_MOST = 1 << 28  # the largest file that is read is a sixteenth of it


def how_to_get() -> str:
    return DOWNLOAD if find_spec("nltk") else f"pip install 'diptych[language]', then {DOWNLOAD}"


def data_folders() -> list[Path]:
    """Return the folders that NLTK looks in: those of ``NLTK_DATA``, then its own where it is installed."""
    folders = os.environ.get("NLTK_DATA", "").split(os.pathsep)
    if find_spec("nltk"):
        folders += require("nltk.data", purpose="looking for NLTK's data").path
    return [Path(folder) for folder in dict.fromkeys(folders) if folder]


def find_resource(folders: Sequence[Path], name: str) -> Path | None:
    """Return the folder or the zip file of a resource such as ``corpora/wordnet``; None where there is none."""
    places = (path for folder in folders for path in (folder / name, folder / f"{name}.zip"))
    return next((path for path in places if path.exists()), None)


def read_member(resource: Path, name: str) -> bytes:
    with file_errors(resource / name, fix=f"get it again: {DOWNLOAD}", noun="NLTK data"):
        if resource.suffix != ".zip":
            return (resource / name).read_bytes()
        with zipfile.ZipFile(resource) as archive:
            member = archive.getinfo(f"{resource.stem}/{name}")
            if member.file_size > _MOST:
                raise ValueError(f"{member.file_size:,} bytes unpacked, more than {_MOST:,}")
            return archive.read(member)


_PARTS = ("weights", "tagdict", "classes")
# A change of how captions are read changes tags, and with this number everything that is kept of them.
_READING = 1
_ENDING = re.compile(r"(?:n['’]t|['’](?:s|re|ve|ll|d|m))$", re.IGNORECASE)
_AFTER_APOSTROPHE = frozenset({"s", "re", "ve", "ll", "d", "m", "t"})
_SENTENCE_ENDS = frozenset(".!?")


class NltkTagger:
    """NLTK's tagger of English, from the JSON files that NLTK 3.9 and later read; nothing is unpickled."""

    def __init__(self, folder: Path | str) -> None:
        found = find_resource([Path(folder)], TAGGER)
        if found is None:
            wrong = f"holds no {TAGGER}" if Path(folder).exists() else "does not exist"
            raise UsageError(f"{folder} {wrong}", f"run: {DOWNLOAD}")
        self.path = found
        self._contents = [read_member(found, f"{found.stem}.{part}.json") for part in _PARTS]
        self.fingerprint: str = fingerprint(_READING, *map(fingerprint_bytes, self._contents))
        self.name: str = f"NLTK averaged perceptron {self.fingerprint[:8]}"

    @cached_property
    def _model(self) -> Any:
        perceptron = require("nltk.tag.perceptron", purpose="tagging parts of speech with NLTK")
        with file_errors(self.path, fix=f"delete it and run: {DOWNLOAD}", noun="JSON"):
            weights, tagdict, classes = map(json.loads, self._contents)
        # Set directly: NLTK itself refuses to read files outside its own data folders.
        model = perceptron.PerceptronTagger(load=False)
        model.model.weights, model.tagdict = weights, tagdict
        model.classes = model.model.classes = set(classes)
        return model

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        read = [as_newspaper(tokens) for tokens in sentences]
        tags = self.tag_as_given([pieces for pieces, _ in read])
        return [[found[first] for first in firsts] for found, (_, firsts) in zip(tags, read, strict=True)]

    def tag_as_given(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the tags of tokens that are read as they stand, as NLTK's own ``pos_tag`` reads them."""
        return [[tag for _, tag in self._model.tag(list(tokens))] for tokens in sentences]


def as_newspaper(tokens: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return tokens as the tagger's training text has them, and the place of each given one's first piece."""
    shouted = sum(map(len, tokens)) > 1 and not any(token != token.upper() for token in tokens)
    pieces: list[str] = []
    firsts: list[int] = []
    begins, opens = True, True
    for token in tokens:
        if pieces and pieces[-1] in ("'", "’") and token.lower() in _AFTER_APOSTROPHE:
            pieces[-1] = f"'{token.lower()}"
            firsts.append(len(pieces) - 1)
            continue
        firsts.append(len(pieces))
        if token == '"':
            pieces.append("``" if opens else "''")
            opens = not opens
            continue
        if shouted or (begins and token[1:] == token[1:].lower()):
            token = token.lower()
        begins = token in _SENTENCE_ENDS
        ending = _ENDING.search(token)
        if ending and ending.start():
            pieces += [token[: ending.start()], ending.group().lower().replace("’", "'")]
        else:
            pieces.append(token)
    return pieces, firsts
