"""What is said about nouns: adjectives before or after them, and phrases that follow them.

No code was published for thesis Table 5.1, and no count of part-of-speech tags gives its adjectives and
complement phrases on both fine-grained collections (docs/brittleness.md has what was tried): here they have no
published form.
"""

from __future__ import annotations

from diptych.analysis.granularity.declaration import FEATURES, Feature
from diptych.analysis.granularity.lexicon import Lexicon
from diptych.analysis.perturbations.caption import Caption
from diptych.data.language import NOUN_TAGS

__all__ = ["ADJECTIVES", "COMPLEMENT_PHRASES"]

_TAGS = frozenset({"tags"})
_BEGINNINGS = frozenset({"IN", "TO", "VBG", "VBN", "WDT", "WP", "WP$", "WRB"})
"""Prepositions and ``that``, ``to``, participles, relative pronouns and adverbs."""


def _adjectives(caption: Caption, lexicon: Lexicon) -> float:
    return len(caption.adjectives)


def _complement_phrases(caption: Caption, lexicon: Lexicon) -> float:
    words, tags, text = caption.words, caption.tags, caption.text
    return sum(
        tags[place] in NOUN_TAGS
        and tags[place + 1] in _BEGINNINGS
        # A comma or a full stop ends the noun's phrase.
        and text[words[place].end : words[place + 1].start].isspace()
        for place in range(len(words) - 1)
    )


ADJECTIVES = FEATURES.add(
    Feature(
        name="adjectives",
        description="adjectives (tags JJ, JJR, JJS), whatever they describe",
        level="noun phrase",
        unit="per caption",
        source="thesis section 5.3.1",
        count=_adjectives,
        needs=_TAGS,
        per_noun=True,
    )
)

COMPLEMENT_PHRASES = FEATURES.add(
    Feature(
        name="complement-phrases",
        description="phrases that follow a noun directly: prepositional, participial, relative, or with to",
        level="noun phrase",
        unit="per caption",
        source="thesis section 5.3.1",
        count=_complement_phrases,
        needs=_TAGS,
        per_noun=True,
    )
)
