"""The features of granularity of thesis section 5.3.1; another one is another file that adds to the registry.

Thesis Table 5.1 often counts something else than its text defines; what reproduces its numbers is ``published``.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from diptych.analysis.granularity.declaration import FEATURES, Count, Feature, Level, Lexicon, Unmeasured
from diptych.analysis.perturbations.caption import Caption
from diptych.data.language import NOUN_TAGS, PartOfSpeech

_NOUNS: frozenset[PartOfSpeech] = frozenset({"noun"})
_CONTENT: frozenset[PartOfSpeech] = frozenset({"noun", "verb", "adjective", "adverb"})
_BOTH = frozenset({"tags", "wordnet"})
_TAGS = frozenset({"tags"})
_SOURCE = "thesis section 5.3.1"


def _feature(
    name: str,
    description: str,
    level: Level,
    unit: str = "per caption",
    source: str = _SOURCE,
    **declared: Any,
) -> Callable[[Count], Count]:
    """Register the decorated function as ``count`` of a feature."""

    def add(count: Count) -> Count:
        FEATURES.add(Feature(name, description, level, unit, source, count, **declared))
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


@_feature(
    "concept-depth",
    "mean over nouns of how many steps the usual sense is below a root of the WordNet",
    "noun phrase",
    "steps",
    needs=_BOTH,
    published=_published_depth,
    published_description="mean over words of the greatest least depth of any sense of any part of speech",
)
def _concept_depth(caption: Caption, lexicon: Lexicon) -> float:
    depths = [lexicon.depth(sense) for sense in lexicon.concepts(caption, _NOUNS)]
    if not depths:
        raise Unmeasured("no noun that the WordNet has")
    return fmean(depths)


@_feature(
    "concept-diversity",
    "different usual senses of nouns, verbs (not be, have, do), adjectives and adverbs",
    "caption",
    needs=_BOTH,
    published=_published_diversity,
    published_description="different lemmas of all senses of all words, divided by the number of words",
)
def _concept_diversity(caption: Caption, lexicon: Lexicon) -> float:
    return len(set(lexicon.concepts(caption, _CONTENT)))


# Words that say which and how many: articles and quantifiers.
#
# The numbers of thesis Table 5.1 are those of all determiners and of all cardinal numbers: its articles are every
# word tagged DT, ``some``, ``each`` and ``this`` among them, and its quantifiers every word tagged CD and no other.
_ARTICLES = frozenset({"a", "an", "the"})

QUANTIFYING = frozenset({
    "all", "any", "both", "each", "either", "enough", "every", "few", "fewer", "fewest", "half", "less", "least",
    "many", "more", "most", "much", "neither", "no", "none", "several", "some",
})  # fmt: skip
"""Words that quantify, unless they are adverbs (``more beautiful``)."""

_MEASURES = frozenset({
    "bunch", "couple", "dozens", "handful", "hundreds", "lot", "lots", "plenty", "thousands",
})  # fmt: skip
"""Nouns that quantify what ``of`` brings: ``a couple of dogs``."""

_ADVERBS = frozenset({"RB", "RBR", "RBS"})


@_feature(
    "articles",
    "the words a, an and the",
    "noun phrase",
    needs=_TAGS,
    published=lambda caption, lexicon: list(caption.tags).count("DT"),
    published_description="words tagged DT, which are all determiners",
    per_noun=True,
)
def _articles(caption: Caption, lexicon: Lexicon) -> float:
    return sum(
        tag == "DT" and word in _ARTICLES for word, tag in zip(caption.lower, caption.tags, strict=True)
    )


@_feature(
    "quantifiers",
    "cardinal numbers, words such as some, many, both, no, and nouns such as a couple of",
    "noun phrase",
    source="thesis section 5.3.1; Barwise and Cooper, Generalized quantifiers and natural language, 1981",
    needs=_TAGS,
    published=lambda caption, lexicon: list(caption.tags).count("CD"),
    published_description="words tagged CD, which are cardinal numbers alone",
    per_noun=True,
)
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
# of its Table 5.1 are characters, those of the file with blanks and marks. Its words lie between single blanks: a
# blank at the end of a caption, which every seventh of COCO's must have had for the printed 10.59, counts as one more
# word, and so does the blank before a full stop in Flickr30k's.
@_feature(
    "characters",
    "characters, marks included, with one blank between words and none around them",
    "caption",
    source="thesis section 5.3.1; Lewis and Frank, The length of words reflects their conceptual complexity, 2016",
    published=lambda caption, lexicon: len(caption.text),
    published_description="characters as the file has them",
)
def _characters(caption: Caption, lexicon: Lexicon) -> float:
    return len(" ".join(caption.text.split()))


@_feature(
    "words",
    "words; marks are none",
    "caption",
    published=lambda caption, lexicon: len(caption.text.split(" ")),
    published_description="what lies between single blanks, empty strings included",
)
def _words(caption: Caption, lexicon: Lexicon) -> float:
    return len(caption.words)


# What is said about nouns: adjectives before or after them, and phrases that follow them.
#
# No code was published for thesis Table 5.1, and no count of part-of-speech tags gives its adjectives and
# complement phrases on both fine-grained collections (docs/brittleness.md has what was tried): here they have no
# published form.
_BEGINNINGS = frozenset({"IN", "TO", "VBG", "VBN", "WDT", "WP", "WP$", "WRB"})
"""Prepositions and ``that``, ``to``, participles, relative pronouns and adverbs."""


@_feature(
    "adjectives",
    "adjectives (tags JJ, JJR, JJS), whatever they describe",
    "noun phrase",
    needs=_TAGS,
    per_noun=True,
)
def _adjectives(caption: Caption, lexicon: Lexicon) -> float:
    return len(caption.adjectives)


@_feature(
    "complement-phrases",
    "phrases that follow a noun directly: prepositional, participial, relative, or with to",
    "noun phrase",
    needs=_TAGS,
    per_noun=True,
)
def _complement_phrases(caption: Caption, lexicon: Lexicon) -> float:
    words, tags, text = caption.words, caption.tags, caption.text
    return sum(
        tags[place] in NOUN_TAGS
        and tags[place + 1] in _BEGINNINGS
        # A comma or a full stop ends the noun's phrase.
        and text[words[place].end : words[place + 1].start].isspace()
        for place in range(len(words) - 1)
    )
