"""Words of titles and category names, as BM25 and LSA count them.

Titles are short and category names shorter, so no word is dropped: a stop word of prose may be all that a category
is ("For Her"). Names are plural where titles are singular ("Dresses", "dress"), so plurals are folded.
"""

import re
from collections.abc import Callable
from typing import Any, Literal

from diptych.core.extras import require

# ``plural``: :func:`fold_plural`; ``stem``: Snowball's English stemmer; ``none``: words as they are.
Fold = Literal["plural", "stem", "none"]

_WORD = re.compile(r"\w+(?:['’\-]\w+)*")
_JOINT = re.compile(r"['’\-]")


def title_words(text: str) -> list[str]:
    """Lower-case words; what hyphens and apostrophes join is one word: a T-shirt is a tshirt.

    >>> title_words("Men's T-shirt & Tops")
    ['mens', 'tshirt', 'tops']
    """
    return [_JOINT.sub("", word) for word in _WORD.findall(text.lower())]


def fold_plural(word: str) -> str:
    """Return one form for an English noun's singular and plural, which need not be either.

    Harman's S-stemmer, with the endings that English adds ``es`` to, and one form for ``ie`` and ``ies``.

    >>> [fold_plural(word) for word in ("dresses", "dress", "watches", "shoes", "hoodies", "hoodie", "jeans", "bus")]
    ['dress', 'dress', 'watch', 'shoe', 'hoody', 'hoody', 'jean', 'bus']
    """
    if len(word) <= 3:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("ie"):
        return word[:-2] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def folded_by(fold: Fold) -> Callable[[str], list[str]]:
    """Return a text's words, folded in that way."""
    if fold == "none":
        return title_words
    if fold == "plural":
        return lambda text: [fold_plural(word) for word in title_words(text)]
    stemmer: Any = require("Stemmer", purpose="BM25 over stems").Stemmer("english")
    return lambda text: [str(word) for word in stemmer.stemWords(title_words(text))]
