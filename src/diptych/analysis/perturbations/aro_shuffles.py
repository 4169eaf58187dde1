"""Changes of word order as the thesis's published code made them: the ``TextShuffler`` of ARO.

There NumPy's and Python's global generators were never seeded, so published captions cannot be made again; here
each call begins generators of its own with ``seed``, in the same algorithms, so that what a seed gives is what
the published functions give after ``numpy.random.seed(seed)`` and ``random.seed(seed)``. A shuffle may leave
everything where it was. Tokens are joined with blanks, marks among them.

Source: Yuksekgonul et al., When and Why Vision-Language Models Behave like Bags-of-Words, ICLR 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS


def shuffle_nouns_and_adjectives(tokens: Sequence[str], tags: Sequence[str], seed: int) -> str:
    """Nouns are permuted among the places of nouns, then adjectives among those of adjectives."""
    nouns = [place for place, tag in enumerate(tags) if tag in NOUN_TAGS]
    adjectives = [place for place, tag in enumerate(tags) if tag in ADJECTIVE_TAGS]
    return _permuted(tokens, [nouns, adjectives], seed)


def shuffle_all_words(tokens: Sequence[str], seed: int) -> str:
    """All tokens are permuted."""
    return _permuted(tokens, [range(len(tokens))], seed)


def shuffle_allbut_nouns_and_adjectives(tokens: Sequence[str], tags: Sequence[str], seed: int) -> str:
    """All tokens but nouns and adjectives are permuted among their places, marks with them."""
    kept = NOUN_TAGS | ADJECTIVE_TAGS
    return _permuted(tokens, [[place for place, tag in enumerate(tags) if tag not in kept]], seed)


def shuffle_within_trigrams(tokens: Sequence[str], seed: int) -> str:
    """The tokens of each three in turn are permuted; at the end, those that are left."""
    random = Random(seed)
    trigrams = _trigrams(tokens)
    for trigram in trigrams:
        random.shuffle(trigram)
    return " ".join(token for trigram in trigrams for token in trigram)


def shuffle_trigrams(tokens: Sequence[str], seed: int) -> str:
    """Each three tokens in turn stay together, and the threes are permuted."""
    trigrams = _trigrams(tokens)
    Random(seed).shuffle(trigrams)
    return " ".join(token for trigram in trigrams for token in trigram)


def _permuted(tokens: Sequence[str], groups: Sequence[Sequence[int]], seed: int) -> str:
    if not 0 <= seed < 2**32:
        raise UsageError(f"seed {seed} with compat=published", "give one from 0 to 4,294,967,295")
    state = np.random.RandomState(seed)
    result = list(tokens)
    for places in groups:
        # Places are permuted, not tokens: an array of texts would lose what ends in NUL.
        for to, of in zip(places, state.permutation(np.asarray(places, dtype=np.int64)), strict=True):
            result[to] = tokens[of]
    return " ".join(result)


def _trigrams(tokens: Sequence[str]) -> list[list[str]]:
    return [list(tokens[start : start + 3]) for start in range(0, len(tokens), 3)]
