"""Splits for data that come without: as a file's name says it, or a function of a name alone."""

from __future__ import annotations

import re

from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint

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
