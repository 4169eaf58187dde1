"""Captions of an index's items by id: of a collection, or out of the saved index."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.reading import parse_json
from diptych.data.columns import StringTable, write_strings

if TYPE_CHECKING:
    from diptych.data.collection import Collection

Captions = Mapping[str, list[str]]
FILES = frozenset({"captions.utf8", "captions.ends"})


class CollectionCaptions(Captions):
    """The captions of each image of a collection, or each caption by its own id.

    Attributes:
        rows: the row of each id.
    """

    def __init__(self, collection: Collection, kind: str) -> None:
        self.collection, self._of_images = collection, kind == "image"
        ids = collection.image_ids if self._of_images else collection.caption_ids
        self.rows = {name: row for row, name in enumerate(ids)}

    def __getitem__(self, name: str) -> list[str]:
        row = self.rows[name]
        return self.collection.captions_of(row) if self._of_images else [self.collection.captions[row]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class StoredCaptions(Captions):
    """Lines ``[id, caption, …]`` in the order of ids; opening reads none, a search those of its hits."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lines = folder / "captions.utf8", StringTable(folder / "captions")

    def _parsed(self, line: str) -> list[Any]:
        found = parse_json(line, self._path, fix="build the index again")
        return found if isinstance(found, list) and found else [""]

    def __getitem__(self, name: str) -> list[str]:
        place = bisect_left(self._lines, name, key=lambda line: str(self._parsed(line)[0]))
        found = self._parsed(self._lines[place]) if place < len(self._lines) else [None]
        if found[0] != name:
            raise KeyError(name)
        return list(map(str, found[1:]))

    def __iter__(self) -> Iterator[str]:
        return (str(self._parsed(line)[0]) for line in self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def write_captions(folder: Path, captions: Captions) -> None:
    """Write what :class:`StoredCaptions` reads."""
    write_strings(folder / "captions", (json.dumps([name, *captions[name]]) for name in sorted(captions)))
