"""Names of splits, and the choice of captions."""

import re

from diptych.core.errors import UsageError
from diptych.data.collection import Collection

# Names of splits in files and folders, and what they are called here.
SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def split_named(name: str) -> str | None:
    """``train``, ``val`` or ``test`` when a name of a file says so, its last part first; else None."""
    for part in reversed(name.split("/")):
        for word in re.split(r"[^a-z]+", part.lower()):
            if word in SPLIT_WORDS:
                return SPLIT_WORDS[word]
    return None


# The words there are.
CAPTION_CHOICES = "all, first, first:K, random or random:SEED"

_WORD = re.compile(r"(?P<what>first|random)(:(?P<number>[0-9]+))?")


def choose_captions(collection: Collection, choice: str) -> Collection:
    """Return the same images with the captions that a word names."""
    what, number = parse_caption_choice(choice)
    if what == "first":
        return collection.first_captions(1 if number is None else number)
    return collection if what == "all" else collection.random_captions(seed=number or 0)


def parse_caption_choice(choice: str) -> tuple[str, int | None]:
    """Return a choice and its number; a word that :func:`choose_captions` does not know is refused."""
    found = _WORD.fullmatch(choice)
    if choice == "all":
        return choice, None
    if found is None or (found["what"] == "first" and found["number"] and not int(found["number"])):
        raise UsageError(f"captions is {choice!r}", f"{CAPTION_CHOICES}, e.g. first:5 or random:0")
    return found["what"], None if found["number"] is None else int(found["number"])
