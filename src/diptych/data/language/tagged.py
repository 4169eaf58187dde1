"""The tags of many captions."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.data.language.contract import Tagger
from diptych.data.language.words import is_word, words_of

__all__ = ["tag_captions"]


def tag_captions(captions: Sequence[str], tagger: Tagger) -> list[list[str]]:
    """A Penn treebank tag for each word (``words_of``) of each caption; marks are read and left out."""
    sentences = [[word.text for word in words_of(caption, marks=True)] for caption in captions]
    return [
        [tag for word, tag in zip(words, tags, strict=True) if is_word(word)]
        for words, tags in zip(sentences, tagger.tag(sentences), strict=True)
    ]
