"""Pictures and records out of the middle of shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import DataError, ImageError, StorageError
from diptych.core.fingerprint import fingerprint_bytes
from diptych.core.reading import parse_json
from diptych.data.columns import Column
from diptych.data.images import MAX_BYTES, decode_image
from diptych.data.positioned import NumberTable, read_at
from diptych.data.shards.files import Shard

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_TEXT_BYTES = 1 << 20
"""Texts of a sample that are longer (1 MiB) are refused before they are read."""

PLACES = 7
"""Numbers per sample: its shard, then where its picture, its JSON and its class begin and their sizes."""


def json_object(content: bytes, where: str) -> dict[str, Any]:
    """The object that a sample's JSON file holds."""
    value = parse_json(content, where, error=DataError, fix="write the shard again")
    if not isinstance(value, dict):
        raise DataError(f"{where} is no JSON object but {value!r:.40}", "write the shard again")
    return value


class ShardSource:
    """Pictures in shards, read by position; shards are opened for every one, so that any number will do."""

    def __init__(self, shards: Sequence[Shard], places: NumberTable) -> None:
        self._shards, self._places = shards, places

    def _bytes(self, row: int) -> tuple[bytes, str]:
        shard, offset, size, *_ = self._places[row]
        path = self._shards[shard].path
        name = f"{path}, picture at byte {offset:,}"
        if size > MAX_BYTES:
            raise ImageError(
                f"{name} has {size:,} bytes, more than the {MAX_BYTES:,} allowed", "leave it out"
            )
        try:
            return read_at(path, offset, size), name
        except StorageError as error:
            raise ImageError(error.message, "fetch the shard again, then read the dataset again") from None

    def read(self, row: int) -> Image:
        """The picture of source row ``row``, upright, RGB."""
        return decode_image(*self._bytes(row))

    def content(self, row: int) -> str:
        """A fingerprint of the picture's bytes, that of a file which holds them."""
        return fingerprint_bytes(self._bytes(row)[0])


class ShardRecords(Column[Mapping[str, Any]]):
    """What a sample's JSON and class files say, read when asked for; ``shard`` is where it is from."""

    def __init__(self, shards: Sequence[Shard], places: NumberTable, leave_out: str) -> None:
        super().__init__(len(places))
        self._shards, self._places, self._leave_out = shards, places, leave_out

    def read(self, rows: range | np.ndarray) -> list[Mapping[str, Any]]:
        """The records of these stored rows."""
        return [self._record(*place) for place in self._places.read(rows)]

    def _record(self, shard: int, *members: int) -> Mapping[str, Any]:
        _, _, json_at, json_size, class_at, class_size = members
        path = self._shards[shard].path
        record: dict[str, Any] = {"shard": self._shards[shard].name}
        if json_size:
            found = json_object(read_at(path, json_at, json_size), f"{path}, byte {json_at:,}")
            record |= {key: value for key, value in found.items() if key != self._leave_out}
        if class_size:
            text = read_at(path, class_at, class_size).decode("utf-8", "replace").strip()
            record["class"] = int(text) if text.isascii() and text.isdigit() else text
        return record
