"""What is named: how specific the things are, and how many different ones there are.

Thesis Table 5.1 takes every word between two blanks, in whatever part of speech NLTK's WordNet gives it: a full
stop at the end of a caption hides its last word, and ``a`` is the vitamin and the ångström too.
"""

from __future__ import annotations

from statistics import fmean

from diptych.analysis.granularity.declaration import FEATURES, Feature, Unmeasured
from diptych.analysis.granularity.lexicon import Lexicon
from diptych.analysis.perturbations.caption import Caption
from diptych.data.language import PartOfSpeech

__all__ = ["CONCEPT_DEPTH", "CONCEPT_DIVERSITY"]

_NOUNS: frozenset[PartOfSpeech] = frozenset({"noun"})
_CONTENT: frozenset[PartOfSpeech] = frozenset({"noun", "verb", "adjective", "adverb"})
_BOTH = frozenset({"tags", "wordnet"})


def _concept_depth(caption: Caption, lexicon: Lexicon) -> float:
    depths = [lexicon.depth(sense) for sense in lexicon.concepts(caption, _NOUNS)]
    if not depths:
        raise Unmeasured("no noun that the WordNet has")
    return fmean(depths)


def _published_depth(caption: Caption, lexicon: Lexicon) -> float:
    depths = [max(found) for word in _between_blanks(caption) if (found := lexicon.least_depths(word))]
    if not depths:
        raise Unmeasured("no word that the WordNet has")
    return fmean(depths)


def _concept_diversity(caption: Caption, lexicon: Lexicon) -> float:
    return len(set(lexicon.concepts(caption, _CONTENT)))


def _published_diversity(caption: Caption, lexicon: Lexicon) -> float:
    words = _between_blanks(caption)
    return len(frozenset().union(*map(lexicon.synonyms, words))) / len(words)


def _between_blanks(caption: Caption) -> list[str]:
    return caption.text.lower().split(" ")


CONCEPT_DEPTH = FEATURES.add(
    Feature(
        name="concept-depth",
        description="mean over nouns of how many steps the usual sense is below a root of the WordNet",
        level="noun phrase",
        unit="steps",
        source="thesis section 5.3.1",
        count=_concept_depth,
        needs=_BOTH,
        published=_published_depth,
        published_description="mean over words of the greatest least depth of any sense of any part of speech",
    )
)

CONCEPT_DIVERSITY = FEATURES.add(
    Feature(
        name="concept-diversity",
        description="different usual senses of nouns, verbs (not be, have, do), adjectives and adverbs",
        level="caption",
        unit="per caption",
        source="thesis section 5.3.1",
        count=_concept_diversity,
        needs=_BOTH,
        published=_published_diversity,
        published_description="different lemmas of all senses of all words, divided by the number of words",
    )
)
