"""Image–text pairs: a CSV, TSV, JSON Lines or Parquet file, or a DataFrame, with a folder of images.

One row per caption: an image column, a caption column, optionally a split column. Rows of the same image
become its captions; every other column is kept as the image's record (from its first row). Parquet files may
hold the images themselves, as Hugging Face writes them: then every row is an image, with one caption or a list.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import DataError, ImageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint_bytes
from diptych.core.reading import file_errors, open_regular, open_text, read_jsonl
from diptych.data.captions import split_named
from diptych.data.collection import WHOLE, Centric, Collection
from diptych.data.images import decode_image, read_image_bytes
from diptych.data.readers.contract import (
    Gathering,
    image_folder,
    listing,
    matching,
    named_columns,
    one_file,
    reader,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

COLUMNS = {
    "image": ("image", "filename", "file_name", "image_path", "filepath", "path"),
    "caption": ("caption", "captions", "text", "texts", "sentence", "sentences", "title", "description"),
}
_TEXTS = ("*.csv", "*.tsv", "*.jsonl")
_PARQUET = ("*.parquet", "data/*.parquet", "train/*.parquet", "val*/*.parquet", "test/*.parquet")
_KEPT_GROUPS = 4  # row groups of embedded images that are held
_BATCH = 1024


class CellSource:
    """Images in the cells of a table, undecoded: ``{"bytes", "path"}`` as Hugging Face writes them, or bytes."""

    def __init__(self, cell: Callable[[int], Any], names: list[str]) -> None:
        self._cell, self._names = cell, names

    def _bytes(self, row: int) -> bytes:
        cell = self._cell(row)
        if isinstance(cell, Mapping):
            cell = read_image_bytes(Path(cell["path"])) if cell.get("bytes") is None else cell["bytes"]
        if cell is None:
            raise ImageError(f"{self._names[row]} has no image", "leave the row out")
        return bytes(cell)

    def read(self, row: int) -> Image:
        return decode_image(self._bytes(row), self._names[row])

    def content(self, row: int) -> str:
        return fingerprint_bytes(self._bytes(row))


def texts_of(cell: Any) -> list[str]:
    """Return the captions of a cell: a text, ``{"raw": text}``, or a list of them."""
    if isinstance(cell, Mapping):
        return [str(cell["raw"])]
    if isinstance(cell, list | tuple | np.ndarray):
        return [text for item in cell for text in texts_of(item)]
    return [] if _is_missing(cell) else [str(cell)]


def _is_missing(value: Any) -> bool:
    return value is None or value != value  # NaN, as pandas has it


# Where a row is, as errors call it, and its fields.
Row = tuple[str, Mapping[str, Any]]


def _rows_of(file: Path) -> Iterator[Row]:
    if file.suffix == ".jsonl":
        for number, value in read_jsonl(file, DataError, "give one JSON object per line"):
            if not isinstance(value, dict):
                raise DataError(f"{file}, line {number}: not a JSON object", "one object per line")
            yield f"{file.name}, line {number}", value
        return
    with open_text(file, newline="", error=DataError, fix="save it as UTF-8") as handle:
        table = csv.DictReader(handle, delimiter="\t" if file.suffix == ".tsv" else ",", restkey="")
        for fields in table:
            yield f"{file.name}, line {table.line_num}", fields


# Of images, captions and splits, as they were named.
Columns = Mapping[str, str | None]


def _gather(gathered: Gathering, rows: Iterable[Row], name: str, given: Columns) -> None:
    columns: list[str] = []
    named = {what: given[what] for what in COLUMNS}
    for where, fields in rows:
        columns = columns or [*named_columns(fields, named, COLUMNS, where), str(given["split"])]
        cell, caption, split = map(fields.get, columns)
        if _is_missing(cell) or not str(cell):
            raise DataError(f"{where}: no image name", f"fill column {columns[0]!r}")
        part = WHOLE if _is_missing(split) or not split else str(split)
        record = {key: value for key, value in fields.items() if key not in columns}
        gathered.add(str(cell), texts_of(caption) or [""], part, record, where)
    if not gathered.items:
        raise DataError(f"{name} has no rows", "one row per caption, with a header line in CSV and TSV")


class _Parquet:
    """Parquet files of one dataset: rows counted through them, and the cells of images by row."""

    def __init__(self, files: list[Path], top: Path) -> None:
        parquet = require("pyarrow.parquet", "datasets", "reading Parquet files")
        self._files: list[Any] = []
        self.splits: list[str] = []  # of each file
        for file in files:
            with file_errors(file, DataError, "write the file again"):
                open_regular(file).close()  # no device or pipe
                self._files.append(parquet.ParquetFile(file))
            self.splits.append(split_named(file.relative_to(top).as_posix()) or WHOLE)
        groups = [
            (number, group, opened.metadata.row_group(group).num_rows)
            for number, opened in enumerate(self._files)
            for group in range(opened.num_row_groups)
        ]
        self._groups = [group[:2] for group in groups]
        self._starts = np.concatenate([[0], np.cumsum([group[2] for group in groups], dtype=np.int64)])
        self.schema = self._files[0].schema_arrow
        self.group = lru_cache(_KEPT_GROUPS)(self._group)

    def rows(self, columns: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for opened, split in zip(self._files, self.splits, strict=True):
            for batch in opened.iter_batches(_BATCH, columns=columns):
                yield from ((split, row) for row in batch.to_pylist())

    def _group(self, number: int, column: str) -> Any:
        file, group = self._groups[number]
        return self._files[file].read_row_group(group, columns=[column]).column(0)

    def cell(self, row: int, column: str) -> Any:
        """Return the value of a row; row groups that were read last are kept."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self.group(number, column)[row - int(self._starts[number])].as_py()


def _gather_parquet(
    gathered: Gathering, path: Path, files: list[Path], images: Path, given: Columns
) -> Path | CellSource:
    with file_errors(files[0], DataError, "write the files again"):
        table = _Parquet(files, path if path.is_dir() else path.parent)
        types = require("pyarrow", "datasets", "reading Parquet files").types
        columns, split_column = table.schema.names, str(given["split"])
        image, caption = named_columns(columns, {what: given[what] for what in COLUMNS}, COLUMNS, path)
        kind = table.schema.field(image).type
        embedded = types.is_struct(kind) or types.is_binary(kind) or types.is_large_binary(kind)
        plain = [one for one in columns if one != image or not embedded]
        rows = (
            (f"{path.name}, row {number}", {split_column: split, **row})
            for number, (split, row) in enumerate(table.rows(plain))
        )
        if not embedded:
            _gather(gathered, rows, path.resolve().stem, given)
            return images
        for row, (where, fields) in enumerate(rows):
            part = str(fields[split_column] or WHOLE)
            record = {key: value for key, value in fields.items() if key not in (caption, split_column)}
            gathered.add(f"{part}-{row:07d}", texts_of(fields[caption]), part, record, where)
        return CellSource(lambda row: table.cell(row, image), list(gathered.items))


@reader(
    "pairs",
    "image–caption pairs: a CSV, TSV, JSONL or Parquet file, one pair per row, and a folder of images",
    *_TEXTS,
    *_PARQUET,
    general=4,
)
def read_pairs(
    path: Path | str | Any,
    images: Path | str | None = None,
    image_column: str | None = None,
    caption_column: str | None = None,
    split_column: str = "split",
    validation: float = 0.1,
    test: float = 0.1,
    skip_bad_captions: bool = False,
    centric: Centric | None = None,
) -> Collection:
    gathered = Gathering(skip_bad_captions, validation, test, join=True)
    given = {"image": image_column, "caption": caption_column, "split": split_column}
    if not isinstance(path, str | Path):
        read = getattr(path, "iter_rows", None)  # of polars
        rows = read(named=True) if read else path.to_dict("records") if hasattr(path, "to_dict") else path
        _gather(gathered, ((f"row {number}", row) for number, row in enumerate(rows)), "pairs", given)
        return gathered.collection("pairs", Path(images or "."), centric)
    path = Path(path)
    parquet = matching(path, listing(path), _PARQUET)
    source: Path | CellSource
    if parquet and not matching(path, listing(path), _TEXTS):
        name, folder = path.resolve().stem, path if path.is_dir() else path.parent
        source = _gather_parquet(gathered, path, parquet, image_folder(images, folder), given)
    else:
        file = one_file(path, *_TEXTS)
        name, source = file.stem, image_folder(images, file.parent)
        _gather(gathered, _rows_of(file), name, given)
    return gathered.collection(name, source, centric)
