"""The contracts: a tagger of words, and the language that has one and a WordNet; what a word of a caption is.

Tags are those of the Penn treebank (``NN``, ``JJ``, ``DT``, …), which the published perturbations speak of.
"""

import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

from diptych.core.errors import UsageError
from diptych.data.language.wordnet import WordNet

NOUN_TAGS = frozenset({"NN", "NNS", "NNP", "NNPS"})
ADJECTIVE_TAGS = frozenset({"JJ", "JJR", "JJS"})


class Tagger(Protocol):
    """Finds the part of speech of each word of a sentence."""

    @property
    def name(self) -> str:
        """Return what numbers that depend on it print."""

    @property
    def fingerprint(self) -> str:
        """Name by content: what changes a tag changes it."""

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return a Penn treebank tag for every token of every sentence.

        Args:
            sentences: each the words and marks of a caption (``words_of(caption, marks=True)``).
        """


@dataclass(frozen=True)
class Language:
    """The tagger and the WordNet that are there; None for what is not."""

    name: str
    tagger: Tagger | None = None
    wordnet: WordNet | None = None
    missing: str = "run: diptych data resources"  # how to get what is None

    def need_tagger(self, purpose: str) -> Tagger:
        if self.tagger is None:
            raise UsageError(f"{purpose} needs a part-of-speech tagger, and none is there", self.missing)
        return self.tagger

    def need_wordnet(self, purpose: str) -> WordNet:
        if self.wordnet is None:
            raise UsageError(f"{purpose} needs a WordNet, and none is there", self.missing)
        return self.wordnet

    def line(self) -> str:
        parts = [part.name for part in (self.tagger, self.wordnet) if part is not None]
        return f"{self.name}: {', '.join(parts) or 'nothing'}"


class Word(NamedTuple):
    """A word, or a mark of punctuation, and its place: ``text[start:end]``."""

    text: str
    start: int
    end: int


def words_of(text: str, *, marks: bool = False) -> list[Word]:
    """Return the words of ``text`` in order: runs of letters and digits, whole in every script.

    Apostrophes and hyphens between letters belong to a word (``don't``, ``medium-sized``). What a vocabulary reads
    as words (:mod:`diptych.data.vocabulary`) is never cut apart here.
    """
    return [
        Word(found.group(), found.start(), found.end())
        for found in _pattern().finditer(text)
        if marks or is_word(found.group())
    ]


def is_word(token: str) -> bool:
    return token[0] == "_" or token[0].isalnum()


@cache
def _pattern() -> re.Pattern[str]:
    # Python's \w leaves out combining marks (vowel signs, accents), which belong to the letter before them.
    combining = "".join(
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"
    )
    letters = rf"\w[\w{combining}]*"
    return re.compile(rf"{letters}(?:['’\-]{letters})*|[^\w\s]")
