"""Features of granularity of thesis section 5.3.1: numbers of a caption, counted in its tagged words and a lexicon.

Thesis Table 5.1 often counts something else than its text defines; what reproduces its numbers is ``published``.
Another feature is another file that adds to the registry.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from diptych.analysis.perturbations.caption import Caption
from diptych.analysis.perturbations.english import listed
from diptych.core.errors import UsageError
from diptych.core.reading import read_toml
from diptych.core.registry import Registry
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, Language, PartOfSpeech, WordNet

_LONGEST = 3
_PARTS: tuple[PartOfSpeech, ...] = ("noun", "verb", "adjective", "adverb")
# They carry tense and agreement: that something "is" there names no concept.
_AUXILIARIES = frozenset({"be", "have", "do"})
_ADVERBS = frozenset({"RB", "RBR", "RBS"})
_REMEMBERED = 1 << 16


class Lexicon:
    """A WordNet that looks up every word once."""

    def __init__(self, language: Language) -> None:
        self._language = language
        # Bounded, for a million captions have as many misspellings; per object, so that it goes with it.
        self.usual_sense = lru_cache(_REMEMBERED)(self._usual_sense)
        self.least_depths = lru_cache(_REMEMBERED)(self._least_depths)
        self.synonyms = lru_cache(_REMEMBERED)(self._synonyms)

    @property
    def wordnet(self) -> WordNet:
        return self._language.need_wordnet("granularity")

    def depth(self, synset: str) -> int:
        """Return the steps on the shortest way from a synset to a root."""
        return self.wordnet.depth(synset)[0]

    def concepts(self, caption: Caption, parts: frozenset[PartOfSpeech]) -> list[str]:
        """Return the usual senses of what a caption names, in order, each as often as it is named."""
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
        """Return how many words from ``start`` on are one noun of the WordNet, the longest first, and its sense."""
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
        # WordNet lists forms such as ``sitting``, for which NLTK has no rule; base forms stand in for the lists
        # that a WordNet came without.
        senses = (
            sense
            for part in _PARTS
            for lemma in self.wordnet.morphy(word, part) or self.wordnet.base_forms(word, part)
            for sense in self.wordnet.senses(lemma, part)
        )
        return list(dict.fromkeys(senses))

    def _least_depths(self, word: str) -> tuple[int, ...]:
        return tuple(self.depth(sense) for sense in self._every_sense(word))

    def _synonyms(self, word: str) -> frozenset[str]:
        lemmas = (lemma for sense in self._every_sense(word) for lemma in self.wordnet.lemmas(sense))
        return frozenset(map(str.lower, lemmas))


def part_of(tag: str) -> PartOfSpeech | None:
    kinds = (NOUN_TAGS, [tag] if tag.startswith("VB") else [], ADJECTIVE_TAGS, _ADVERBS)
    return next((part for part, tags in zip(_PARTS, kinds, strict=True) if tag in tags), None)


Count = Callable[[Caption, Lexicon], float]
COMPATS = ("none", "published")
_DECLARED: dict[str, dict[str, Any]] = read_toml(Path(__file__).with_name("features.toml"))
ORDER = tuple(_DECLARED)  # of thesis Table 5.1


class Unmeasured(Exception):
    """A feature is not defined of this caption; the message says why, in words that many captions share."""


@dataclass(frozen=True)
class Feature:
    name: str  # as it is requested and printed
    description: str  # its definition in one line
    unit: str  # of one caption's value, e.g. "per caption"
    source: str
    # from a caption and what words mean to the number; raises Unmeasured where there is none
    count: Count = field(repr=False)
    needs: frozenset[str] = frozenset()  # "tags" and "wordnet", where it looks at them
    # the definition that gives the numbers of thesis Table 5.1, where that is another one and is known
    published: Count | None = field(default=None, repr=False)
    published_description: str = ""
    per_noun: bool = False  # the number per noun, by which the thesis's text defines it, is given besides
    decimals: int = 2  # digits after the point in tables

    def counted_by(self, compat: str) -> Count:
        return self.published if compat == "published" and self.published is not None else self.count

    def definition(self, compat: str) -> str:
        other = compat == "published" and self.published is not None
        return self.published_description if other else self.description


FEATURES: Registry[Feature] = Registry("feature of granularity", __name__)


def choose_features(names: Iterable[str] | None = None) -> list[Feature]:
    """Return the features of these names, each once, in the order of :data:`ORDER`; all by default."""
    order = {name: place for place, name in enumerate(ORDER)}
    every = sorted(FEATURES, key=lambda one: (order.get(one.name, len(ORDER)), one.name))
    requested = None if names is None else [FEATURES.get(name).name for name in names]
    if requested == []:
        raise UsageError("no feature was requested", f"for example {', '.join(ORDER[:2])}")
    return [one for one in every if requested is None or one.name in requested]


_NOUNS: frozenset[PartOfSpeech] = frozenset({"noun"})


def _feature(name: str, published: Count | None = None) -> Callable[[Count], Count]:
    """Register the decorated function as ``count`` of a feature of ``features.toml``."""
    given = {"unit": "per caption", "source": "thesis section 5.3.1", **_DECLARED[name]}
    given["needs"] = frozenset(given.get("needs", ()))

    def add(count: Count) -> Count:
        FEATURES.add(Feature(name, count=count, published=published, **given))
        return count

    return add


# What is named: how specific the things are, and how many different ones there are.
#
# Thesis Table 5.1 takes every word between two blanks, in whatever part of speech NLTK's WordNet gives it: a full
# stop at the end of a caption hides its last word, and ``a`` is the vitamin and the ångström too.
def _published_depth(caption: Caption, lexicon: Lexicon) -> float:
    depths = [max(found) for word in _between_blanks(caption) if (found := lexicon.least_depths(word))]
    if not depths:
        raise Unmeasured("no word that the WordNet has")
    return fmean(depths)


def _published_diversity(caption: Caption, lexicon: Lexicon) -> float:
    words = _between_blanks(caption)
    return len(frozenset().union(*map(lexicon.synonyms, words))) / len(words)


def _between_blanks(caption: Caption) -> list[str]:
    return caption.text.lower().split(" ")


@_feature("concept-depth", _published_depth)
def _concept_depth(caption: Caption, lexicon: Lexicon) -> float:
    depths = [lexicon.depth(sense) for sense in lexicon.concepts(caption, _NOUNS)]
    if not depths:
        raise Unmeasured("no noun that the WordNet has")
    return fmean(depths)


@_feature("concept-diversity", _published_diversity)
def _concept_diversity(caption: Caption, lexicon: Lexicon) -> float:
    return len(set(lexicon.concepts(caption, frozenset(_PARTS))))


# Words that say which and how many: articles and quantifiers.
#
# The numbers of thesis Table 5.1 are those of all determiners and of all cardinal numbers: its articles are every
# word tagged DT, ``some``, ``each`` and ``this`` among them, and its quantifiers every word tagged CD and no other.
_ARTICLES = frozenset({"a", "an", "the"})

# words that quantify, unless they are adverbs (``more beautiful``)
QUANTIFYING = listed(
    "all any both each either enough every few fewer fewest half less least many more most much neither no none several"
    " some"
)
# nouns that quantify what ``of`` brings: ``a couple of dogs``
_MEASURES = listed("bunch couple dozens handful hundreds lot lots plenty thousands")


@_feature("articles", lambda caption, lexicon: list(caption.tags).count("DT"))
def _articles(caption: Caption, lexicon: Lexicon) -> float:
    return sum(
        tag == "DT" and word in _ARTICLES for word, tag in zip(caption.lower, caption.tags, strict=True)
    )


@_feature("quantifiers", lambda caption, lexicon: list(caption.tags).count("CD"))
def _quantifiers(caption: Caption, lexicon: Lexicon) -> float:
    words = caption.lower
    after = [*words, ""][1:]
    return sum(
        tag == "CD" or (word in QUANTIFYING and tag not in _ADVERBS) or (word in _MEASURES and then == "of")
        for word, then, tag in zip(words, after, caption.tags, strict=True)
    )


# How long captions are: in characters, and in words.
#
# The thesis defines "caption length" as the count of characters and, two sentences on, as that of words; the numbers
# of its Table 5.1 are characters. Its words lie between single blanks: a blank at the end of a caption, which every
# seventh of COCO's must have had for the printed 10.59, counts as one more word.
@_feature("characters", lambda caption, lexicon: len(caption.text))
def _characters(caption: Caption, lexicon: Lexicon) -> float:
    return len(" ".join(caption.text.split()))


@_feature("words", lambda caption, lexicon: len(caption.text.split(" ")))
def _words(caption: Caption, lexicon: Lexicon) -> float:
    return len(caption.words)


# Descriptions of nouns: adjectives before or after them, and phrases that follow them.
#
# No code was published for thesis Table 5.1, and no count of part-of-speech tags gives its adjectives and complement
# phrases on both fine-grained collections (benchmarks/results.md has what was tried): they have no published form.
@_feature("adjectives")
def _adjectives(caption: Caption, lexicon: Lexicon) -> float:
    return len(caption.adjectives)


# prepositions and ``that``, ``to``, participles, relative pronouns and adverbs
_BEGINNINGS = frozenset({"IN", "TO", "VBG", "VBN", "WDT", "WP", "WP$", "WRB"})


@_feature("complement-phrases")
def _complement_phrases(caption: Caption, lexicon: Lexicon) -> float:
    tags = caption.tags
    return sum(
        tags[place] in NOUN_TAGS
        and tags[place + 1] in _BEGINNINGS
        # A comma or a full stop ends the noun's phrase.
        and caption.between(place).isspace()
        for place in range(len(tags) - 1)
    )
