"""From a file's way of naming pictures and captions to a collection's rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_NUMBERED = re.compile(r"(?:COCO_[a-z]+[0-9]{4}_)?0*([0-9]+)")
_SENTENCE = ":sentid:"


def image_name(name: str) -> str:
    """Return a picture's name without folders and suffix; COCO's ``COCO_val2014_000000391895`` as ``391895``."""
    stem = name.rsplit("/", 1)[-1]
    stem = stem.rsplit(".", 1)[0] if "." in stem else stem
    found = _NUMBERED.fullmatch(stem)
    return found[1] if found else stem


def caption_name(name: str) -> str:
    """Return a caption's number in CxC's ``COCO_val2014:sentid:732091``; any other id as it is."""
    return name.rsplit(_SENTENCE, 1)[-1]


class RowsById:
    """Rows by id: the same id, or else the only one with the same plain name."""

    def __init__(self, ids: Sequence[str], plain: Callable[[str], str]) -> None:
        self._plain = plain
        self._exact = {name: row for row, name in enumerate(ids)}
        self._by_plain: dict[str, int] = {}
        for row, name in enumerate(ids):
            key = plain(name)
            self._by_plain[key] = -1 if key in self._by_plain else row

    def of(self, name: str) -> int:
        """Return the row, -1 for none or for several that could be meant."""
        row = self._exact.get(name)
        return self._by_plain.get(self._plain(name), -1) if row is None else row
