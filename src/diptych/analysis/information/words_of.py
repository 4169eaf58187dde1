"""Words as questions, for collections that say no facts: is the word in the captions?

Of an image: do all of its captions have the word, or none (shared); exactly one, or none (specific);
several but not all, or none (partial). Of a caption: does it have the word? A word that an image's
captions disagree about is not asked in the other kinds, so that yes and no mean what they say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from diptych.analysis.information.answers import Answers
from diptych.core.errors import DataError
from diptych.data.collection import Collection

MOST_WORDS = 50
"""How many words are asked."""

LEAST_IMAGES, MOST_SHARE = 40, 0.5
"""A word is in the captions of at least so many training images and at most this share of them."""

WORD_IMAGE_GROUPS = {
    "shared": "words that all captions of the image have, against images none of whose captions has them",
    "partial": "words that several captions have, not all, against none",
    "specific": "words that exactly one of several captions has, against none",
}
"""Kinds of word presence in an image's row."""

WORD_CAPTION_GROUPS = {"words": "words that the caption has or has not"}
"""Kinds of word presence in a caption's row."""

_FUNCTION_WORDS = """
a about above after against all along an and another are around as at away back be behind being below beside
between both but by can do does doing down each for from front get getting go going has have he her here him
his how i in inside into is it it's its just look looking looks made make near next no not of off on one
onto or other out outside over own picture photo image several she side so some something stand standing
stands such than that the their them then there these they this those through to together top toward towards
two three four under up upon very was way we were what when where which while who will with you your
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that say little about a picture; the same for every collection."""

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


def content_words(
    collection: Collection, most: int = MOST_WORDS, fix: str = "audit a collection with more images"
) -> tuple[str, ...]:
    """The ``most`` words in the captions of the most images, the most frequent first."""
    counts: Counter[str] = Counter()
    for image in range(collection.n_images):
        counts.update({word for caption in collection.captions_of(image) for word in _words_in(caption)})
    highest = MOST_SHARE * collection.n_images
    fit = [
        word
        for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if LEAST_IMAGES <= count <= highest and word not in FUNCTION_WORDS and len(word) > 1
    ]
    if not fit:
        raise DataError(
            f"{collection.name}: no content word is in the captions of {LEAST_IMAGES} to {highest:.0f} of "
            f"{collection.n_images:,} training images",
            fix,
        )
    return tuple(fit[:most])


def image_words(collection: Collection, words: Sequence[str]) -> Answers:
    """Three questions per word about every image; see :data:`WORD_IMAGE_GROUPS`."""
    has = _has(collection, words)
    times = np.zeros((collection.n_images, len(words)), dtype=np.int64)
    np.add.at(times, np.asarray(collection.caption_image), has)
    k = collection.captions_per_image[:, None]
    none = (times == 0) & (k > 0)
    kinds = {
        "shared": ("all captions", (times == k) & (k > 0)),
        "partial": ("several captions", (times > 1) & (times < k)),
        "specific": ("one caption", (times == 1) & (k > 1)),
    }
    images = np.arange(collection.n_images)
    nobody = Answers((), np.empty((len(images), 0), dtype=object), {}, images)
    for group, (which, yes) in kinds.items():
        values = np.full(yes.shape, None, dtype=object)
        values[none], values[yes] = "no", "yes"
        keys = tuple(f"{word} ({which})" for word in words)
        nobody = nobody.beside(Answers(keys, values, {group: (yes | none).astype(np.float64)}, images))
    return nobody


def caption_words(collection: Collection, words: Sequence[str]) -> Answers:
    """Whether every caption has every word."""
    values = np.where(_has(collection, words), "yes", "no").astype(object)
    return Answers(
        tuple(words), values, {"words": np.ones(values.shape)}, np.asarray(collection.caption_image)
    )


def _words_in(caption: str) -> list[str]:
    return _WORD.findall(caption.lower())


def _has(collection: Collection, words: Sequence[str]) -> np.ndarray:
    """(n_captions, words)."""
    column = {word: number for number, word in enumerate(words)}
    has = np.zeros((collection.n_captions, len(words)), dtype=bool)
    for row, caption in enumerate(collection.captions):
        has[row, [column[word] for word in _words_in(caption) if word in column]] = True
    return has
