"""A WordNet from its files: read once, which takes seconds, and then opened from tables in the cache."""

from __future__ import annotations

import logging
from pathlib import Path

from diptych.core.errors import StorageError
from diptych.core.files import atomic_folder, cache_root
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.data.language.table_wordnet import TableWordNet
from diptych.data.language.wordnet_files import WordNetFiles, wordnet_files
from diptych.data.language.wordnet_tables import WordNetTables

PAGE = "https://en-word.net"
"""Where Open English WordNet is to be had."""

# A change of the tables' layout, or of how the files are read, makes them anew.
_VERSION = 2

logger = logging.getLogger(__name__)


def open_wordnet(path: Path | str) -> TableWordNet:
    """Open a WordNet in one of the forms of :mod:`diptych.data.language.wordnet_files`."""
    files = wordnet_files(path)
    key = fingerprint(_VERSION, files.fingerprint())
    return TableWordNet(_tables(files, key), key)


def _tables(files: WordNetFiles, key: str) -> WordNetTables:
    folder = cache_root() / "wordnet" / key
    found = _opened(folder)
    if found is not None:  # also from a cache that this process may not write to
        return found
    with taking_turns(folder):
        found = _opened(folder)  # another process may have been quicker
        if found is None:
            found = WordNetTables.of(files.read())
            with atomic_folder(folder) as temporary:
                found.save(temporary)
    return found


def _opened(folder: Path) -> WordNetTables | None:
    """What is there; None where nothing is, or it is damaged."""
    if not folder.is_dir():
        return None
    try:
        return WordNetTables.open(folder)
    except StorageError as error:
        logger.warning("%s is damaged and made again: %s", folder, error)
        return None
