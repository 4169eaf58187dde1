"""What a caption must be before anything is done with it."""

from __future__ import annotations

import re

from diptych.core.errors import CaptionError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection

MAX_CHARACTERS = 20_000
"""Longer texts are documents, not captions, and are refused."""


def checked_caption(text: str, name: str) -> str:
    """Return the caption without surrounding white space."""
    stripped = text.strip()
    if not any(character.isalnum() for character in stripped):
        raise CaptionError(
            f"{name} is empty: {text[:40]!r}",
            "correct it, or leave it out with --reader-option skip_bad_captions=true",
        )
    if len(stripped) > MAX_CHARACTERS:
        raise CaptionError(
            f"{name} has {len(stripped):,} characters, more than the {MAX_CHARACTERS:,} allowed",
            "shorten it, or leave it out with --reader-option skip_bad_captions=true",
        )
    try:
        stripped.encode()
    except UnicodeEncodeError:  # JSON can say half a character (a lone surrogate), no file can hold it
        raise CaptionError(
            f"{name} holds half a character: {stripped[:40]!r}",
            "correct it, or leave it out with --reader-option skip_bad_captions=true",
        ) from None
    return stripped


SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""What splits are called in names of files and folders, and what they are called here."""


def split_named(name: str) -> str | None:
    """``train``, ``val`` or ``test`` when a name of a file says so, its last part first; else None."""
    for part in reversed(name.split("/")):
        for word in re.split(r"[^a-z]+", part.lower()):
            if word in SPLIT_WORDS:
                return SPLIT_WORDS[word]
    return None


def check_shares(validation: float, test: float) -> None:
    """See that two shares of a collection leave something, or nothing, to train on."""
    if min(validation, test) < 0 or validation + test > 1:
        raise UsageError(
            f"validation={validation} and test={test} are no shares of one collection",
            "give two numbers from 0 to 1 that add up to at most 1",
        )


def assigned_split(name: str, validation: float, test: float) -> str:
    """``train``, ``val`` or ``test`` by a hash of ``name``: adding others never moves this one."""
    place = int(fingerprint("split", name)[:8], 16) / 16**8
    return "test" if place < test else "val" if place < test + validation else "train"


CAPTION_CHOICES = "all, first, first:K, random or random:SEED"
"""The words there are."""

_WORD = re.compile(r"(?P<what>first|random)(:(?P<number>[0-9]+))?")


def choose_captions(collection: Collection, choice: str) -> Collection:
    """Return the same images with the captions that a word names."""
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
