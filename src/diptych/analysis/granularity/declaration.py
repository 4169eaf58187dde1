"""What a measure of granularity declares, and what it counts in: tagged captions, words and a lexicon."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from diptych.analysis.perturbations.caption import Caption
from diptych.core.errors import UsageError
from diptych.core.registry import Registry
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, Language, PartOfSpeech, WordNet

_LONGEST = 3
_PARTS: tuple[PartOfSpeech, ...] = ("noun", "verb", "adjective", "adverb")
# They carry tense and agreement: that something "is" there names no concept.
_AUXILIARIES = frozenset({"be", "have", "do"})
_REMEMBERED = 1 << 16


class Lexicon:
    """A WordNet, asked once for every word."""

    def __init__(self, language: Language) -> None:
        self._language = language
        # Bounded, for a million captions have as many misspellings; per object, so that it goes with it.
        self.usual_sense = lru_cache(_REMEMBERED)(self._usual_sense)
        self.least_depths = lru_cache(_REMEMBERED)(self._least_depths)
        self.synonyms = lru_cache(_REMEMBERED)(self._synonyms)

    @property
    def wordnet(self) -> WordNet:
        """The net of meanings."""
        return self._language.need_wordnet("granularity")

    def depth(self, synset: str) -> int:
        """Steps on the shortest way from a synset to a root."""
        return self.wordnet.depth(synset)[0]

    def concepts(self, caption: Caption, parts: frozenset[PartOfSpeech]) -> list[str]:
        """The usual senses of what a caption names, in order, each as often as it is named."""
        found, place, words = [], 0, caption.words
        while place < len(words):
            length, sense = self._longest(caption, place) if "noun" in parts else (1, None)
            if sense is None and (part := part_of(caption.tags[place])) in parts:
                sense = self.usual_sense(words[place].text.lower(), part)
            if sense is not None:
                found.append(sense)
            place += length
        return found

    def _longest(self, caption: Caption, start: int) -> tuple[int, str | None]:
        """How many words from ``start`` on are one noun of the WordNet, the longest first, and its sense."""
        words = caption.words
        for length in range(min(_LONGEST, len(words) - start), 1, -1):
            last = start + length - 1
            text = caption.text[words[start].start : words[last].end]
            # Nothing but a blank between its words, and a noun at its end.
            whole = text.split() == [word.text for word in words[start : last + 1]]
            if whole and caption.tags[last] in NOUN_TAGS:
                sense = self.usual_sense(" ".join(text.lower().split()), "noun")
                if sense is not None:
                    return length, sense
        return 1, None

    def _usual_sense(self, phrase: str, part: PartOfSpeech) -> str | None:
        for lemma in self.wordnet.base_forms(phrase, part):
            if part == "verb" and lemma in _AUXILIARIES:
                return None
            if senses := self.wordnet.senses(lemma, part):
                return senses[0]
        return None

    def _every_sense(self, word: str) -> list[str]:
        """All synsets that NLTK gives for a word, of all parts of speech.

        WordNet lists forms such as ``sitting``, for which NLTK has no rule; base forms stand in for the lists
        that a WordNet came without.
        """
        return list(
            dict.fromkeys(
                sense
                for part in _PARTS
                for lemma in self.wordnet.morphy(word, part) or self.wordnet.base_forms(word, part)
                for sense in self.wordnet.senses(lemma, part)
            )
        )

    def _least_depths(self, word: str) -> tuple[int, ...]:
        """The least depth of each synset of a word, whatever its part of speech; none where it is unknown."""
        return tuple(self.depth(sense) for sense in self._every_sense(word))

    def _synonyms(self, word: str) -> frozenset[str]:
        """Every lemma of every synset of a word, in small letters, itself among them."""
        return frozenset(
            lemma.lower() for sense in self._every_sense(word) for lemma in self.wordnet.lemmas(sense)
        )


def part_of(tag: str) -> PartOfSpeech | None:
    """The part of speech of a Penn treebank tag; None where a WordNet has none."""
    if tag in NOUN_TAGS:
        return "noun"
    if tag in ADJECTIVE_TAGS:
        return "adjective"
    if tag.startswith("VB"):
        return "verb"
    return "adverb" if tag in ("RB", "RBR", "RBS") else None


Level = Literal["noun phrase", "caption"]
"""What a feature is about, as thesis section 5.3.1 sorts them."""

Count = Callable[[Caption, Lexicon], float]

COMPATS = ("none", "published")

ORDER = (
    "adjectives",
    "complement-phrases",
    "articles",
    "quantifiers",
    "concept-depth",
    "characters",
    "words",
    "concept-diversity",
)
"""Features in the order of thesis Table 5.1; any other comes after them."""


class Unmeasured(Exception):
    """A feature is not defined of this caption; the message says why, in words that many captions share."""


@dataclass(frozen=True)
class Feature:
    """One number of a caption."""

    name: str  # as it is asked for and printed
    description: str  # its definition in one line
    level: Level
    unit: str  # of one caption's value, e.g. "per caption"
    source: str
    # from a caption and what words mean to the number; raises Unmeasured where there is none
    count: Count = field(repr=False)
    needs: frozenset[str] = frozenset()  # "tags" and "wordnet", where it looks at them
    # the definition that gives the numbers of thesis Table 5.1, where that is another one and is known
    published: Count | None = field(default=None, repr=False)
    published_description: str = ""
    per_noun: bool = (
        False  # whether the number per noun, by which the thesis's text defines it, is given besides
    )
    decimals: int = 2  # digits after the point in tables

    def counted_by(self, compat: str) -> Count:
        """Return the definition that ``compat`` asks for; the right one where no other is known."""
        return self.published if compat == "published" and self.published is not None else self.count

    def definition(self, compat: str) -> str:
        """Return that definition in one line."""
        other = compat == "published" and self.published is not None
        return self.published_description if other else self.description


FEATURES: Registry[Feature] = Registry("feature of granularity", "diptych.analysis.granularity.features")


def choose_features(names: Iterable[str] | None = None) -> list[Feature]:
    """Return the features of these names, each once, in the order of :data:`ORDER`; all when none are named."""
    order = {name: place for place, name in enumerate(ORDER)}
    every = sorted(FEATURES, key=lambda one: (order.get(one.name, len(ORDER)), one.name))
    wanted = None if names is None else [FEATURES.get(name).name for name in names]
    if wanted == []:
        raise UsageError("no feature was asked for", f"for example {', '.join(ORDER[:2])}")
    return [one for one in every if wanted is None or one.name in wanted]
