"""How long captions are: in characters, and in words.

The thesis defines "caption length" as the count of characters and, two sentences on, as that of words; the numbers
of its Table 5.1 are characters, those of the file with blanks and marks. Its words lie between single blanks: a
blank at the end of a caption, which every seventh of COCO's must have had for the printed 10.59, counts as one more
word, and so does the blank before a full stop in Flickr30k's.
"""

from __future__ import annotations

from diptych.analysis.granularity.declaration import FEATURES, Feature
from diptych.analysis.granularity.lexicon import Lexicon
from diptych.analysis.perturbations.caption import Caption

__all__ = ["CHARACTERS", "WORDS"]


def _characters(caption: Caption, lexicon: Lexicon) -> float:
    return len(" ".join(caption.text.split()))


def _words(caption: Caption, lexicon: Lexicon) -> float:
    return len(caption.words)


CHARACTERS = FEATURES.add(
    Feature(
        name="characters",
        description="characters, marks included, with one blank between words and none around them",
        level="caption",
        unit="per caption",
        source="thesis section 5.3.1; Lewis and Frank, The length of words reflects their conceptual complexity, 2016",
        count=_characters,
        published=lambda caption, lexicon: len(caption.text),
        published_description="characters as the file has them",
    )
)

WORDS = FEATURES.add(
    Feature(
        name="words",
        description="words; marks are none",
        level="caption",
        unit="per caption",
        source="thesis section 5.3.1",
        count=_words,
        published=lambda caption, lexicon: len(caption.text.split(" ")),
        published_description="what lies between single blanks, empty strings included",
    )
)
