"""Hugging Face ``datasets``: saved on disk, or by hub name.

Rows are images with one caption, a list of captions, or a list of ``{"raw"}`` objects; the pictures
stay in the Arrow files and are decoded by our own decoder when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import DataError, ImageError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint_arrays
from diptych.data.collection import Centric, Collection
from diptych.data.images import decode_image, read_image, read_image_bytes
from diptych.data.known import centric_of
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.readers.gathering import Gathering, named_columns

if TYPE_CHECKING:
    from PIL.Image import Image

_CAPTION_COLUMNS = ("caption", "captions", "text", "texts", "sentences", "sentence", "answer")


class _TableSource:
    """Pictures in the image column of a table, undecoded."""

    def __init__(self, table: Any, column: str, names: list[str]) -> None:
        self._table = table
        self._column = column
        self._names = names

    def _bytes(self, row: int) -> bytes:
        cell = self._table[row][self._column]
        if cell is None:
            raise ImageError(f"{self._names[row]} has no picture", "leave the row out")
        if cell.get("bytes") is not None:
            return bytes(cell["bytes"])
        return read_image_bytes(Path(cell["path"]))

    def read(self, row: int) -> Image:
        cell = self._table[row][self._column]
        if cell is not None and cell.get("bytes") is None and cell.get("path"):
            return read_image(Path(cell["path"]))
        return decode_image(self._bytes(row), self._names[row])

    def content(self, row: int) -> str:
        return fingerprint_arrays({"bytes": np.frombuffer(self._bytes(row), dtype=np.uint8)})


def _tables(path: Path, name: str | None) -> Mapping[str, Any]:
    datasets = require("datasets", "datasets", "reading Hugging Face datasets")
    if path.exists():
        try:
            loaded = datasets.load_from_disk(str(path))
        except FileNotFoundError:
            raise DataError(
                f"{path} was not written by save_to_disk",
                "save the dataset with dataset.save_to_disk(folder)",
            ) from None
    else:
        # The hub's own errors (no network, no such dataset) say what they need to.
        loaded = datasets.load_dataset(str(path), name)
    if isinstance(loaded, datasets.DatasetDict):
        return dict(loaded)
    return {str(loaded.split) if loaded.split is not None else "train": loaded}


def _texts(cell: Any) -> list[str]:
    if isinstance(cell, str):
        return [cell]
    if isinstance(cell, Mapping):
        return [str(cell["raw"])]
    return [text for item in (cell or []) for text in _texts(item)]


def read_huggingface(
    path: Path | str,
    image_column: str | None = None,
    caption_column: str | None = None,
    split_column: str | None = None,
    config: str | None = None,
    skip_bad_captions: bool = False,
    centric: Centric | None = None,
) -> Collection:
    """Read a Hugging Face dataset from a ``save_to_disk`` folder or by hub name."""
    datasets = require("datasets", "datasets", "reading Hugging Face datasets")
    tables = _tables(Path(path), config)
    gathered = Gathering(skip_bad_captions)
    parts = []
    image_name = ""
    for split, table in tables.items():
        columns = table.column_names
        found = [name for name, feature in table.features.items() if isinstance(feature, datasets.Image)]
        given = {"image": image_column, "caption": caption_column}
        known = {"image": found, "caption": _CAPTION_COLUMNS}
        image_name, caption_name = named_columns(columns, given, known, path)
        if split_column is not None and split_column not in columns:
            raise UsageError(f"{path} has no column {split_column!r}", f"its columns: {', '.join(columns)}")
        texts = table.select_columns([caption_name] + ([split_column] if split_column else []))
        for row, cell in enumerate(texts):
            where = f"{path}, split {split}, row {row}"
            kept = [gathered.checked(text, where) for text in _texts(cell[caption_name])]
            gathered.add(
                f"{split}-{row:07d}",
                str(cell[split_column]) if split_column else str(split),
                [text for text in kept if text is not None],
            )
        parts.append(table.select_columns([image_name]).cast_column(image_name, datasets.Image(decode=False)))
    joined = datasets.concatenate_datasets(parts) if len(parts) > 1 else parts[0]
    name = Path(path).name
    source = _TableSource(joined, image_name, gathered.names)
    return gathered.collection(name, source, centric_of(centric, name))


def _recognises(path: Path) -> bool:
    return path.is_dir() and (
        (path / "dataset_dict.json").is_file() or (path / "dataset_info.json").is_file()
    )


READERS.add(
    Reader(
        "huggingface",
        "a Hugging Face dataset: a save_to_disk folder, or a hub name with --reader huggingface",
        _recognises,
        read_huggingface,
        {
            "image_column": "column of pictures (the first of type Image)",
            "caption_column": "column of captions (recognised)",
            "split_column": "column of split names, where the table's own splits are not meant",
            "config": "the hub configuration's name",
            "skip_bad_captions": "leave out and count empty captions instead of failing",
            "centric": "what the pictures show: scene or object (default: as known of the dataset)",
        },
    )
)
