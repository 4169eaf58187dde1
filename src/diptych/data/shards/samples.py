"""Samples: members of a shard that share a key and follow each other.

``000123.jpg``, ``000123.txt`` and ``000123.json`` are one sample, ``000123``; the key ends at the first dot
of the file's name. What is neither picture nor text is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from diptych.core.errors import DataError
from diptych.data.images import PICTURE_ENDINGS
from diptych.data.shards.members import Member, Members

TEXT_ENDINGS = frozenset({"txt", "json", "cls"})
"""Endings of the texts of a sample: its captions, whatever else is known of it, its class."""


@dataclass
class Sample:
    """Files of one key.

    Attributes:
        key: what they share.
        start: byte of the first of them in the shard.
        parts: where each is, by its ending in lower case.
    """

    key: str
    start: int
    parts: dict[str, Member] = field(default_factory=dict)

    def picture(self, ending: str | None = None) -> Member | None:
        """The picture, or the one of that ending; None where there is none."""
        if ending is not None:
            return self.parts.get(ending)
        found = sorted(PICTURE_ENDINGS & self.parts.keys())
        if len(found) > 1:
            raise DataError(
                f"{self.key} has {len(found)} pictures: {', '.join(found)}",
                f"name one with --reader-option picture={found[0]}",
            )
        return self.parts[found[0]] if found else None


def samples_of(path: Path, members: Members, picture: str | None = None) -> Iterator[Sample]:
    """The samples of a shard; of one that is cut off, those that are surely whole."""
    endings = (PICTURE_ENDINGS if picture is None else {picture}) | TEXT_ENDINGS
    current: Sample | None = None
    for member in members:
        folder, slash, file = member.name.rpartition("/")
        stem, dot, ending = file.partition(".")
        if not stem or not dot:
            continue
        key, ending = f"{folder}{slash}{stem}", ending.lower()
        if current is None or current.key != key:
            if current is not None:
                yield current
            current = Sample(key, member.offset)
        if ending not in endings:
            continue
        if ending in current.parts:
            raise DataError(
                f"{path}, byte {member.offset:,}: {member.name} is there twice", "write the shard again"
            )
        current.parts[ending] = member
    if current is not None and members.cut is None:
        yield current
