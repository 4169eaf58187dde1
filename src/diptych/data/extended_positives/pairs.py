"""Positives of one's own: ``{"i2t": {image id: [caption ids]}, "t2i": {caption id: [image ids]}}``."""

from __future__ import annotations

from pathlib import Path

from diptych.core.errors import DataError
from diptych.data.extended_positives.declaration import EXTENDED_POSITIVES, Listed, PositivesReader
from diptych.data.extended_positives.lists import as_lists, listed_of, read_document

_DIRECTIONS = ("i2t", "t2i")


def read_positive_pairs(path: Path | str) -> Listed:
    """Read a JSON file of relevant pairs.

    With one direction alone, the other has the same pairs. What is listed for a query is all that is
    relevant to it, and the listed queries are the ones that ask; the option ``originals`` of
    :func:`~diptych.data.extended_positives.choose.read_extended_positives` adds the collection's own.
    """
    document = read_document(path)
    if not isinstance(document, dict) or not document or not set(document) <= set(_DIRECTIONS):
        keys = ", ".join(map(str, document)) if isinstance(document, dict) else type(document).__name__
        raise DataError(
            f"{path} has {keys or 'no key'} where 'i2t', 't2i' or both are expected",
            'write {"i2t": {image id: [caption ids]}, "t2i": {caption id: [image ids]}}',
        )
    lists = {name: as_lists(document[name], f"{path}, {name}") for name in _DIRECTIONS if name in document}
    return listed_of(f"pairs of {Path(path).name}", lists.get("i2t"), lists.get("t2i"))


EXTENDED_POSITIVES.add(
    PositivesReader(
        "pairs",
        'a JSON file of one\'s own: {"i2t": {image id: [caption ids]}, "t2i": {caption id: [image ids]}}',
        "",
        read_positive_pairs,
        {},
    )
)
