"""``a`` or ``an``: by the sound a word begins with, which its letters mostly tell."""

from __future__ import annotations

import re
import unicodedata

from diptych.analysis.perturbations.english.word_lists import listed

# Letters whose names begin with a vowel, for words that are spelled out: an SUV, an X-ray, a U-turn.
_SPOKEN = "aefhilmnorsx"
_SPELLED = listed("atm atv fbi hd hiv lcd led mp3 mri nba nfl rv suv ufo usb")
_LETTER = re.compile(r"[a-z](?:-|$)")

_CONSONANT_SOUND = re.compile(
    r"eu|ewe|one(?![a-z])|once|oneself|oui|"  # a European, a ewe, a one-way street
    r"u(?:ni(?!n|m|d)|nan|s[aeu]|t[eio]|r[aiou]|k|biq|vu|gand)"  # a unicorn, a useful, a utensil, a ukulele
)
_VOWEL_SOUND = re.compile(r"[aeiou]|hour|honest|hono|heir|8|1[18](?!\d)")


def article_before(word: str) -> str:
    """``a`` or ``an``, whichever goes before ``word``.

    >>> [article_before(word) for word in ("dog", "apple", "hour", "unicorn", "umbrella", "SUV", "8")]
    ['a', 'an', 'an', 'a', 'an', 'an', 'an']
    """
    plain = unicodedata.normalize("NFD", word.lower())
    spelled = plain in _SPELLED or _LETTER.match(plain) or _without_vowels(word)
    if spelled and plain[:1].isalpha():
        return "an" if plain[0] in _SPOKEN else "a"
    if _CONSONANT_SOUND.match(plain):
        return "a"
    return "an" if _VOWEL_SOUND.match(plain) else "a"


def _without_vowels(word: str) -> bool:
    """Whether it is an abbreviation that can only be spelled out: ``HDTV``."""
    return len(word) > 1 and word.isupper() and not set(word) & set("AEIOUY")
