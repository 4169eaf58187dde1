"""Captions as the thesis's published code changed them, faults included: typos, and how it cut texts into tokens.

Typos are those of the package typo 0.1.7 (R. Kumar, MIT licence), begun anew with seed 42 for every caption: a swap of
two equal letters is the caption again, a letter outside a–z its own neighbour. Its exceptions are :class:`Unchanged`.
"""

import re
import string
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.core.errors import UsageError
from diptych.core.extras import require
from diptych.core.options import Options
from diptych.data.language import is_word, words_of

# A key and its neighbours in the package's order, which decides what a draw means.
_LETTERS = (
    "aqwsz bvghn cxdfv dserfcx erdsw fdrtgvc gftyhbv hnbgyuj iokju jhuikmn kjiolm lkop mnjk nbhjm oiklp pol "
    "qaw redft sazxdew trfgy uyhji vcfgb wqasde xzsdc ytghu zasx"
)
_NUMBER_PAD = "012 14520 2014563 3256 478521 578946123 698523 7854 874569 9856"
_LETTERS_NEAR, _DIGITS_NEAR = (
    {entry[0]: entry[1:] for entry in table.split()} for table in (_LETTERS, _NUMBER_PAD)
)


def published_slip(name: str, text: str, seed: int) -> str:
    """Make one slip of the package at a word character, or at two of them for a swap; equal ones are drawn too."""
    random = Random(seed)
    pattern = r"(?=\w\w)" if name == "character-swap" else r"\w"
    places = [found.start() for found in re.finditer(pattern, text)]
    if len(places) < (2 if name == "missing-character" else 1):
        return text
    place = random.choice(places)
    before, letter, after = text[:place], text[place], text[place + 1 :]
    if name == "character-swap":
        return before + _cased(after[0], letter) + _cased(letter, after[0]) + after[1:]
    if name == "missing-character":
        return before + after
    neighbour = _neighbour(letter, random)
    return before + (neighbour + letter if name == "extra-character" else _cased(neighbour, letter)) + after


def _cased(letter: str, place: str) -> str:
    return letter.upper() if place.isupper() else letter.lower()


def letter_change(text: str, seed: int) -> str:
    """Of what stands between blanks, each with chance .1 gets one of 52 letters at one of its places."""
    random = Random(seed)
    words = text.split(" ")
    for row, word in enumerate(words):
        if random.random() <= 0.1:
            if not word:
                raise Unchanged("the published code fails: IndexError")
            place = random.choice(range(len(word)))
            words[row] = word[:place] + random.choice(string.ascii_letters) + word[place + 1 :]
    return " ".join(words)


def _neighbour(character: str, random: Random) -> str:
    if character.isdecimal():
        if random.choice([True, False]):
            if character not in _DIGITS_NEAR:
                raise Unchanged("the published code fails: KeyError")
            return random.choice(_DIGITS_NEAR[character])
        if character == "0":
            return "9"
        if character == "1":
            return "2"
        return str(int(character) + (-1) ** random.randint(0, 1))
    near = _LETTERS_NEAR.get(character.lower())
    if near is None:
        return character
    neighbour = random.choice(near)
    return neighbour.upper() if character.isupper() else neighbour


def published_form(change: Callable[[str, int], str]) -> Callable[[Caption, int, Any], str]:
    """Return ``published`` of a perturbation from a function of text and seed; options are refused."""

    def published(caption: Caption, seed: int, options: Options) -> str:
        if options != type(options)():
            given = ", ".join(f"{key}={value}" for key, value in options if key in options.model_fields_set)
            raise UsageError(f"compat=published with options ({given})", "the published code has none")
        return change(caption.text, seed)

    return published


_CONTRACTION = r"(?:n['’]t|['’](?:s|re|ve|ll|d|m))$"
_PIECE = re.compile(rf"{_CONTRACTION}|-|(?:(?!{_CONTRACTION})[^-])+", re.IGNORECASE)


def nltk_tokens(text: str) -> list[str]:
    tokens: list[str] = _tokenizer().tokenize(text)
    return tokens


@cache
def _tokenizer() -> Any:
    return require("nltk.tokenize", purpose="a published form that reads tokens").NLTKWordTokenizer()


def spacy_like_tokens(caption: Caption) -> tuple[list[str], list[str]]:
    """Return words and marks with their tags, words cut at hyphens and before contractions, as spaCy cuts them.

    The pieces of a word have its tag; hyphens, contractions and marks are their own tags.
    """
    tagged: list[tuple[str, str]] = []
    tag_of = iter(caption.tags)
    for word in words_of(caption.text, marks=True):
        if not is_word(word.text):
            tagged.append((word.text, word.text))
            continue
        tag = next(tag_of)
        for number, piece in enumerate(_PIECE.findall(word.text)):
            is_own = piece == "-" or (number and re.match(_CONTRACTION, piece, re.I))
            tagged.append((piece, piece if is_own else tag))
    return [token for token, _ in tagged], [tag for _, tag in tagged]
