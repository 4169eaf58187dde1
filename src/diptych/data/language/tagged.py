"""The tags of many captions: each distinct one is tagged once, and the tags are kept in the cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self
from unicodedata import unidata_version

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.context import task
from diptych.core.files import cache_root
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import cached
from diptych.data.language.contract import Tagger, is_word, words_of

# A change of what a word is, or of the file, tags anew.
_VERSION = 1
_BLOCK = 256
# Fewer are tagged again sooner than a file is found.
_WORTH_KEEPING = 1000


@dataclass(frozen=True, eq=False)
class Tags(Artifact, kind="tags"):
    """All tags end to end as numbers, the names of the numbers, and where each caption's tags start."""

    names: list[str]
    codes: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, tags: Sequence[Sequence[str]]) -> Self:
        flat = [tag for of_caption in tags for tag in of_caption]
        names, codes = np.unique(np.array(flat, dtype=object), return_inverse=True)
        kind = np.uint8 if len(names) <= 256 else np.uint32
        return cls(names.tolist(), codes.astype(kind), np.cumsum([0, *map(len, tags)], dtype=np.int64))


def tag_captions(captions: Sequence[str], tagger: Tagger) -> list[list[str]]:
    """Return a Penn treebank tag for each word (``words_of``) of each caption; marks are read and left out.

    The tags of many captions are kept in the cache, by the content of the tagger and the captions.
    """
    distinct = list(dict.fromkeys(captions))
    if len(distinct) < _WORTH_KEEPING:
        tags = _tag(distinct, tagger)
    else:
        # Python's tables of characters say what a word is, and grow from version to version.
        key = fingerprint(_VERSION, unidata_version, tagger.fingerprint, distinct)
        path = cache_root() / "tags" / f"{key}.npz"
        kept = cached(path, Tags.open, lambda file: Tags.of(_tag(distinct, tagger)).save(file))
        flat = [kept.names[code] for code in kept.codes.tolist()]
        tags = [flat[start:end] for start, end in pairwise(kept.starts.tolist())]
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
