"""The tags of many captions: each distinct one is tagged once, and what was tagged is kept in the cache."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from unicodedata import unidata_version

import numpy as np

from diptych.core.context import task
from diptych.core.errors import StorageError
from diptych.core.files import atomic_path, cache_root
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_arrays
from diptych.data.language.contract import Tagger, is_word, words_of

# A change of what a word is, or of the file, tags anew.
_VERSION = 1
_BLOCK = 256
# Fewer are tagged again sooner than a file is found.
_WORTH_KEEPING = 1000

logger = logging.getLogger(__name__)


def tag_captions(captions: Sequence[str], tagger: Tagger) -> list[list[str]]:
    """A Penn treebank tag for each word (``words_of``) of each caption; marks are read and left out.

    The tags of many captions are kept in the cache, by the content of the tagger and the captions.
    """
    distinct = list(dict.fromkeys(captions))
    if len(distinct) < _WORTH_KEEPING:
        tags = _tag(distinct, tagger)
    else:
        # Python's tables of characters say what a word is, and grow from version to version.
        key = fingerprint(_VERSION, unidata_version, tagger.fingerprint, distinct)
        path = cache_root() / "tags" / f"{key}.npz"
        kept = _read(path, len(distinct))
        tags = _tag(distinct, tagger) if kept is None else kept
        if kept is None:
            _write(path, tags)
    row = {caption: number for number, caption in enumerate(distinct)}
    return [tags[row[caption]] for caption in captions]


def _tag(captions: Sequence[str], tagger: Tagger) -> list[list[str]]:
    tags: list[list[str]] = []
    with task("tagging parts of speech", len(captions), "captions") as bar:
        for start in range(0, len(captions), _BLOCK):
            block = captions[start : start + _BLOCK]
            sentences = [[word.text for word in words_of(caption, marks=True)] for caption in block]
            for words, found in zip(sentences, tagger.tag(sentences), strict=True):
                tags.append([tag for word, tag in zip(words, found, strict=True) if is_word(word)])
            bar.advance(len(block))
    return tags


def _write(path: Path, tags: Sequence[Sequence[str]]) -> None:
    """All tags end to end as numbers, what the numbers mean, and where each caption's tags start."""
    flat = [tag for of_caption in tags for tag in of_caption]
    names = sorted(set(flat))
    number = {name: code for code, name in enumerate(names)}
    codes = np.fromiter(
        (number[tag] for tag in flat), np.uint8 if len(names) <= 256 else np.uint32, len(flat)
    )
    starts = np.cumsum([0, *map(len, tags)], dtype=np.int64)
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, names=np.asarray(names, dtype=np.str_), codes=codes, starts=starts)


def _read(path: Path, n_captions: int) -> list[list[str]] | None:
    """What :func:`_write` wrote; None where it is not there, or is damaged."""
    if not path.exists():
        return None
    try:
        names, codes, starts = read_arrays(path, ("names", "codes", "starts")).values()
        if len(starts) != n_captions + 1 or starts[-1] != len(codes):
            raise ValueError(f"{len(starts) - 1} captions, {len(codes)} tags")
        flat = names[codes].tolist()
    except (StorageError, ValueError, IndexError, TypeError) as error:
        logger.warning("%s is damaged and made again: %s", path, error)
        return None
    return [flat[start:end] for start, end in pairwise(starts.tolist())]
