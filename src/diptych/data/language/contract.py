"""The contracts: a tagger of words, a net of their meanings, and the language that has both.

Tags are those of the Penn treebank (``NN``, ``JJ``, ``DT``, …), which the published perturbations speak of.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, Protocol

from diptych.core.errors import UsageError

PartOfSpeech = Literal["noun", "verb", "adjective", "adverb"]

NOUN_TAGS = frozenset({"NN", "NNS", "NNP", "NNPS"})
ADJECTIVE_TAGS = frozenset({"JJ", "JJR", "JJS"})


class Tagger(Protocol):
    """Says which part of speech each word of a sentence is."""

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


class WordNet(Protocol):
    """Words, their senses (synsets), and how senses lie to each other. Source: Fellbaum, WordNet, 1998."""

    @property
    def name(self) -> str:
        """Return what numbers that depend on it print."""

    @property
    def fingerprint(self) -> str:
        """Name by content."""

    def base_forms(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        """Return the lemmas that ``word`` may be a form of, likeliest first: ``dogs`` → ``dog``; none if unknown."""

    def morphy(self, word: str, part: PartOfSpeech) -> Sequence[str]:
        """Return the lemmas that NLTK looks ``word`` up by, in its order: itself first, nothing but WordNet's rules."""

    def senses(self, lemma: str, part: PartOfSpeech | None = None) -> Sequence[str]:
        """Return names of a lemma's synsets, its usual sense first; of all parts of speech by default."""

    def lemmas(self, synset: str) -> Sequence[str]:
        """Return the words of a synset, in its order, with blanks (``traffic light``)."""

    def hypernyms(self, synset: str) -> Sequence[str]:
        """Return the synsets that it is a kind of, directly."""

    def hyponyms(self, synset: str) -> Sequence[str]:
        """Return the synsets that are a kind of it, directly."""

    def depth(self, synset: str) -> tuple[int, int]:
        """Return the shortest and the longest way to a root, in steps; (0, 0) for a root."""


@dataclass(frozen=True)
class Language:
    """What is at hand of a language."""

    name: str  # how it was asked for
    tagger: Tagger | None = None  # parts of speech; None where there is none
    wordnet: WordNet | None = None  # meanings; None where there is none
    missing: str = "run: diptych data resources"  # what to do about a part that is None

    def need_tagger(self, purpose: str) -> Tagger:
        """Return the tagger."""
        if self.tagger is None:
            raise UsageError(f"{purpose} needs a part-of-speech tagger, and none is there", self.missing)
        return self.tagger

    def need_wordnet(self, purpose: str) -> WordNet:
        """Return the net of meanings."""
        if self.wordnet is None:
            raise UsageError(f"{purpose} needs a WordNet, and none is there", self.missing)
        return self.wordnet

    def line(self) -> str:
        """Return what numbers that depend on it print."""
        parts = [part.name for part in (self.tagger, self.wordnet) if part is not None]
        return f"{self.name}: {', '.join(parts) or 'nothing'}"


# Words of a caption: runs of letters and digits, and where each stands.
#
# A word may hold apostrophes and hyphens between letters (``don't``, ``medium-sized``); what a vocabulary reads
# as words (:mod:`diptych.data.vocabulary`) is never cut apart here. Vowel signs and accents that are characters
# of their own belong to the letter before them, so words of every script are whole.


class Word(NamedTuple):
    """A word, or a mark of punctuation, and its place: ``text[start:end]``."""

    text: str
    start: int
    end: int


def words_of(text: str, *, marks: bool = False) -> list[Word]:
    """Return the words of ``text`` in order."""
    return [
        Word(found.group(), found.start(), found.end())
        for found in _pattern().finditer(text)
        if marks or is_word(found.group())
    ]


def is_word(token: str) -> bool:
    """Return whether one of :func:`words_of` is a word rather than a mark."""
    return token[0] == "_" or token[0].isalnum()


@cache
def _pattern() -> re.Pattern[str]:
    """Return a word or one other character. Python's ``\\w`` leaves out combining marks; they are added."""
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    combining = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    letters = rf"\w[\w{combining}]*"
    return re.compile(rf"{letters}(?:['’\-]{letters})*|[^\w\s]")
