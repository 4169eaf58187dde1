"""Tokens as the thesis's published code had them: NLTK's, and what stands in for spaCy's.

NLTK's are those of one sentence, for a caption is one: of a thousand real captions about one holds two, of which
NLTK's own ``word_tokenize`` would cut the first one's full stop off as well, by a model of sentence ends that it
would need for it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from diptych.analysis.perturbations.caption import Caption
from diptych.core.extras import require
from diptych.data.language import is_word, words_of

_CONTRACTION = r"(?:n['’]t|['’](?:s|re|ve|ll|d|m))$"
_PIECE = re.compile(rf"{_CONTRACTION}|-|(?:(?!{_CONTRACTION})[^-])+", re.IGNORECASE)


def nltk_tokens(text: str) -> list[str]:
    """The tokens of NLTK's word tokenizer, which cuts by rules."""
    tokens: list[str] = _tokenizer().tokenize(text)
    return tokens


@cache
def _tokenizer() -> Any:
    return require("nltk.tokenize", "language", "a published form that reads tokens").NLTKWordTokenizer()


def spacy_like_tokens(caption: Caption) -> tuple[list[str], list[str]]:
    """Words and marks with their tags, words cut at hyphens and before contractions, where spaCy cuts them.

    The pieces of a word have its tag; hyphens, contractions and marks are their own tags.
    """
    tokens: list[str] = []
    tags: list[str] = []
    tag_of = iter(caption.tags)
    for word in words_of(caption.text, marks=True):
        if not is_word(word.text):
            tokens.append(word.text)
            tags.append(word.text)
            continue
        tag = next(tag_of)
        for number, piece in enumerate(_PIECE.findall(word.text)):
            tokens.append(piece)
            tags.append(piece if piece == "-" or (number and re.match(_CONTRACTION, piece, re.I)) else tag)
    return tokens, tags
