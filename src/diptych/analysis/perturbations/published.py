"""Captions as the thesis's published code changed them, faults included.

- Typos are those of the package typo 0.1.7 (R. Kumar, MIT licence), begun anew with seed 42 for every caption: a swap
  of two equal letters is the caption again, and a letter outside a–z is its own neighbour. Where the package raises
  an exception, the published evaluation kept the caption as it was; that is :class:`Unchanged`.
- Changes of word order are the ``TextShuffler`` of ARO (Yuksekgonul et al., ICLR 2023). There NumPy's and Python's
  global generators were never seeded, so published captions cannot be made again; here each call begins generators
  of its own, so that what a seed gives is what the published functions give after ``numpy.random.seed(seed)`` and
  ``random.seed(seed)``. A shuffle may leave everything where it was. Tokens are joined with blanks, marks among them.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.core.errors import UsageError
from diptych.core.extras import require
from diptych.core.options import Options
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, is_word, words_of

_WORD_CHARACTER = re.compile(r"\w")
_TWO_WORD_CHARACTERS = re.compile(r"(?=\w\w)")

# A key and its neighbours in the package's order, which decides what a draw means.
_LETTERS = (
    "aqwsz bvghn cxdfv dserfcx erdsw fdrtgvc gftyhbv hnbgyuj iokju jhuikmn kjiolm lkop mnjk nbhjm oiklp pol "
    "qaw redft sazxdew trfgy uyhji vcfgb wqasde xzsdc ytghu zasx"
)
_NUMBER_PAD = "012 14520 2014563 3256 478521 578946123 698523 7854 874569 9856"
_LETTERS_NEAR, _DIGITS_NEAR = (
    {entry[0]: entry[1:] for entry in table.split()} for table in (_LETTERS, _NUMBER_PAD)
)


def swapped_characters(text: str, seed: int) -> str:
    """Two adjacent word characters change places and keep the case of the place; equal ones are drawn too."""
    random = Random(seed)
    places = [found.start() for found in _TWO_WORD_CHARACTERS.finditer(text)]
    if not places:
        return text
    place = random.choice(places)
    first, second = text[place], text[place + 1]
    as_first = second.upper() if first.isupper() else second.lower()
    as_second = first.upper() if second.isupper() else first.lower()
    return text[:place] + as_first + as_second + text[place + 2 :]


def missing_character(text: str, seed: int) -> str:
    """A word character goes, where there are at least two."""
    random = Random(seed)
    places = _places(text)
    if len(places) < 2:
        return text
    place = random.choice(places)
    return text[:place] + text[place + 1 :]


def extra_character(text: str, seed: int) -> str:
    """A neighbour of a word character comes before it."""
    random = Random(seed)
    places = _places(text)
    if not places:
        return text
    place = random.choice(places)
    return text[:place] + _neighbour(text[place], random) + text[place:]


def nearby_character(text: str, seed: int) -> str:
    """A neighbour of a word character comes in its place, in its case."""
    random = Random(seed)
    places = _places(text)
    if not places:
        return text
    place = random.choice(places)
    neighbour = _neighbour(text[place], random)
    neighbour = neighbour.upper() if text[place].isupper() else neighbour.lower()
    return text[:place] + neighbour + text[place + 1 :]


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


def _places(text: str) -> list[int]:
    return [found.start() for found in _WORD_CHARACTER.finditer(text)]


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
    """What ``published`` of a perturbation takes, from a function of text and seed.

    The published code had no options: others than the usual ones are refused.
    """

    def published(caption: Caption, seed: int, options: Options) -> str:
        if options != type(options)():
            given = ", ".join(f"{key}={value}" for key, value in options if key in options.model_fields_set)
            raise UsageError(f"compat=published with options ({given})", "the published code has none")
        return change(caption.text, seed)

    return published


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
