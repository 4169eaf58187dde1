"""Words that say which and how many: articles and quantifiers.

The numbers of thesis Table 5.1 are those of all determiners and of all cardinal numbers: its articles are every
word tagged DT, ``some``, ``each`` and ``this`` among them, and its quantifiers every word tagged CD and no other.
"""

from __future__ import annotations

from diptych.analysis.granularity.declaration import FEATURES, Feature
from diptych.analysis.granularity.lexicon import Lexicon
from diptych.analysis.perturbations.caption import Caption

__all__ = ["ARTICLES", "QUANTIFIERS", "QUANTIFYING"]

_TAGS = frozenset({"tags"})
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


def _articles(caption: Caption, lexicon: Lexicon) -> float:
    return sum(
        tag == "DT" and word.text.lower() in _ARTICLES
        for word, tag in zip(caption.words, caption.tags, strict=True)
    )


def _quantifiers(caption: Caption, lexicon: Lexicon) -> float:
    words = [word.text.lower() for word in caption.words]
    after = [*words, ""][1:]
    return sum(
        tag == "CD" or (word in QUANTIFYING and tag not in _ADVERBS) or (word in _MEASURES and then == "of")
        for word, then, tag in zip(words, after, caption.tags, strict=True)
    )


def _tagged(tag: str, caption: Caption) -> float:
    return sum(one == tag for one in caption.tags)


ARTICLES = FEATURES.add(
    Feature(
        name="articles",
        description="the words a, an and the",
        level="noun phrase",
        unit="per caption",
        source="thesis section 5.3.1",
        count=_articles,
        needs=_TAGS,
        published=lambda caption, lexicon: _tagged("DT", caption),
        published_description="words tagged DT, which are all determiners",
        per_noun=True,
    )
)

QUANTIFIERS = FEATURES.add(
    Feature(
        name="quantifiers",
        description="cardinal numbers, words such as some, many, both, no, and nouns such as a couple of",
        level="noun phrase",
        unit="per caption",
        source="thesis section 5.3.1; Barwise and Cooper, Generalized quantifiers and natural language, 1981",
        count=_quantifiers,
        needs=_TAGS,
        published=lambda caption, lexicon: _tagged("CD", caption),
        published_description="words tagged CD, which are cardinal numbers alone",
        per_noun=True,
    )
)
