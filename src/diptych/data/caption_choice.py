"""Which captions of each image count: a choice of the protocol, said in one word."""

from __future__ import annotations

import re

from diptych.core.errors import UsageError
from diptych.data.collection import Collection

CAPTION_CHOICES = "all, first, first:K, random or random:SEED"
"""The words there are."""

_WORD = re.compile(r"(?P<what>first|random)(:(?P<number>[0-9]+))?")


def choose_captions(collection: Collection, choice: str) -> Collection:
    """The same images with the captions that a word names."""
    what, number = _parsed(choice)
    if what == "first":
        return collection.first_captions(1 if number is None else number)
    return collection if what == "all" else collection.random_captions(seed=number or 0)


def check_caption_choice(choice: str) -> None:
    """Refuse a word that :func:`choose_captions` does not know."""
    _parsed(choice)


def _parsed(choice: str) -> tuple[str, int | None]:
    found = _WORD.fullmatch(choice)
    if choice == "all":
        return choice, None
    if found is None or (found["what"] == "first" and found["number"] and not int(found["number"])):
        raise UsageError(f"captions is {choice!r}", f"{CAPTION_CHOICES}, e.g. first:5 or random:0")
    return found["what"], None if found["number"] is None else int(found["number"])
