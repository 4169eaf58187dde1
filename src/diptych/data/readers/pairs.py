"""Image–text pairs in a CSV, TSV or JSON Lines file beside a folder of pictures.

One line per caption: an image column, a caption column, optionally a split column. Lines of the same
image become its captions; every other column is kept as the image's record (from its first line).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError
from diptych.core.reading import open_text, read_jsonl
from diptych.data.captions import assigned_split, check_shares
from diptych.data.collection import Centric, Collection
from diptych.data.known import centric_of
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.readers.gathering import Gathering, image_folder, named_columns

_COLUMNS = {
    "image": ("image", "filename", "file_name", "image_path", "filepath", "path"),
    "caption": ("caption", "text", "sentence", "title", "description"),
}
_SUFFIXES = (".csv", ".tsv", ".jsonl")


def _rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and fields, one line at a time."""
    if file.suffix == ".jsonl":
        for number, value in read_jsonl(file, DataError, "give one JSON object per line"):
            if not isinstance(value, dict):
                raise DataError(f"{file}, line {number}: not a JSON object", "one object per line")
            yield number, value
        return
    with open_text(file, newline="", error=DataError, fix="save it as UTF-8") as handle:
        delimiter = "\t" if file.suffix == ".tsv" else ","
        reader = csv.DictReader(handle, delimiter=delimiter, restkey="")
        for row in reader:
            yield reader.line_num, row


def _find_file(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(file for file in path.glob("*") if file.suffix in _SUFFIXES)
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise DataError(
            f"one CSV, TSV or JSONL file expected in {path}, found: {names}", "name it with --data"
        )
    return found[0]


def read_pairs(
    path: Path | str,
    images: Path | str | None = None,
    image_column: str | None = None,
    caption_column: str | None = None,
    split_column: str = "split",
    validation: float = 0.1,
    test: float = 0.1,
    skip_bad_captions: bool = False,
    centric: Centric | None = None,
) -> Collection:
    """Read a folder of pictures with a CSV, TSV or JSONL file of captions."""
    check_shares(validation, test)
    file = _find_file(Path(path))
    folder = image_folder(images, file.parent)
    gathered = Gathering(skip_bad_captions)
    captions: dict[str, list[str]] = {}
    splits: dict[str, str] = {}
    records: dict[str, dict[str, Any]] = {}
    columns: list[str] = []
    for number, fields in _rows(file):
        if not columns:
            given = {"image": image_column, "caption": caption_column}
            columns = named_columns(fields, given, _COLUMNS, file)
        image, raw = str(fields.get(columns[0]) or ""), str(fields.get(columns[1]) or "")
        if not image:
            raise DataError(f"{file}, line {number}: no image name", f"fill column {columns[0]!r}")
        split = fields.get(split_column)
        split = str(split) if split else assigned_split(image, validation, test)
        if splits.setdefault(image, split) != split:
            raise DataError(
                f"{file}, line {number}: {image} is in split {splits[image]!r} and in {split!r}",
                "an image belongs to one split",
            )
        if image not in captions:
            captions[image] = []
            records[image] = {k: v for k, v in fields.items() if k not in (*columns, split_column)}
        caption = gathered.checked(raw, f"{file.name}, line {number}")
        captions[image] += [] if caption is None else [caption]
    if not captions:
        raise DataError(f"{file} has no rows", "one line per caption, with a header line in CSV and TSV")
    for name, texts in captions.items():
        gathered.add(name, splits[name], texts, records[name])
    return gathered.collection(file.stem, folder, centric_of(centric, file.stem))


def _recognises(path: Path) -> bool:
    if path.is_dir():
        return any(file.suffix in _SUFFIXES for file in path.iterdir())
    return path.suffix in _SUFFIXES


READERS.add(
    Reader(
        "pairs",
        "a folder of pictures with a CSV, TSV or JSONL file: one image–caption pair per line",
        _recognises,
        read_pairs,
        {
            "images": "folder of pictures (default: images/ beside the file)",
            "image_column": "column of file names (recognised)",
            "caption_column": "column of captions (recognised)",
            "split_column": "column of split names (default: split)",
            "validation": "share of images in val where there is no split column (default: 0.1)",
            "test": "share of images in test where there is no split column (default: 0.1)",
            "skip_bad_captions": "leave out and count empty captions instead of failing",
            "centric": "what the pictures show: scene or object (default: as known of the dataset)",
        },
        general=2,
    )
)
