"""Tables of captions in the manner of Conceptual Captions: a caption and an address per line.

CC3M's files have no line of headings and two fields, caption and address; CC12M's has the address first;
downloaders add headings, and some a column with each picture's file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_lines

_CAPTIONS = ("caption", "text", "title", "alt_text")
_ADDRESSES = ("url", "image_url", "address")
_FILES = ("path", "filepath", "file", "filename", "file_name", "image", "image_path", "image_file")
# Enough for every heading and first line; what is longer is none.
_LOOK_BYTES = 1 << 16


@dataclass(frozen=True)
class Row:
    """One line: its number in the file, its caption, and address and file of its picture, or empty."""

    line: int
    caption: str
    url: str
    image: str


@dataclass(frozen=True)
class CaptionTable:
    """Where what is in a table of captions.

    Attributes:
        file: the table.
        headings: whether its first line names the columns.
        caption: the column of captions.
        url: the column of addresses; -1 for none.
        image: the column of files of pictures; -1 for none.
        n_columns: fields per line.
        quoted: whether fields may be in quotation marks, as CSV files have them.
    """

    file: Path
    headings: bool
    caption: int
    url: int
    image: int
    n_columns: int
    quoted: bool

    @classmethod
    def of(
        cls,
        file: Path,
        caption_column: str | None = None,
        image_column: str | None = None,
        quotes: bool | None = None,
    ) -> CaptionTable:
        """Look at a table's first line."""
        quoted = _is_csv(file) if quotes is None else quotes
        first = next(_fields(file, quoted), None)
        if first is None:
            raise DataError(f"{file} is empty", "fetch it again")
        fields = first[1]
        columns = [name.strip().lower() for name in fields]
        addresses = [at for at, text in enumerate(fields) if _is_address(text)]
        if len(fields) == 2 and len(addresses) == 1 and caption_column is None and image_column is None:
            return cls(file, False, 1 - addresses[0], addresses[0], -1, 2, quoted)

        def place(given: str | None, known: Sequence[str]) -> int:
            if given is not None and given not in fields:
                raise UsageError(f"{file} has no column {given!r}", f"its columns: {', '.join(fields)}")
            if given is not None:
                return fields.index(given)
            return next((columns.index(name) for name in known if name in columns), -1)

        caption, url, image = (
            place(given, known)
            for given, known in ((caption_column, _CAPTIONS), (None, _ADDRESSES), (image_column, _FILES))
        )
        if caption < 0 or (url < 0 and image < 0):
            raise DataError(
                f"{file} begins with {' | '.join(fields)[:80]!r}: neither a caption and an address nor headings",
                "name the columns with --reader-option caption_column=… and image_column=…",
            )
        return cls(file, True, caption, url, image, len(fields), quoted)

    @classmethod
    def looks_like(cls, file: Path) -> bool:
        """Whether a file's first line is a caption and an address, or names such columns; reads that line."""
        try:
            with open(file, "rb") as handle:
                line = handle.readline(_LOOK_BYTES)
        except OSError:
            return False
        fields = line.decode("utf-8", "replace").removeprefix("\ufeff").strip("\r\n").split("\t")
        names = {name.strip().lower() for name in fields}
        named = bool(names & set(_CAPTIONS)) and bool(names & set(_ADDRESSES))
        return named or (len(fields) == 2 and sum(map(_is_address, fields)) == 1)

    def rows(self) -> Iterator[Row]:
        """Lines, one at a time."""
        lines = _fields(self.file, self.quoted)
        if self.headings:
            next(lines)
        for number, fields in lines:
            if len(fields) != self.n_columns:
                raise DataError(
                    f"{self.file}, line {number} has {len(fields)} fields, {self.n_columns} expected",
                    "every line is one picture: numbers of pictures count lines",
                )
            url = fields[self.url] if self.url >= 0 else ""
            image = fields[self.image] if self.image >= 0 else ""
            yield Row(number, fields[self.caption], url, image)


def _is_csv(file: Path) -> bool:
    return file.name.removesuffix(".gz").endswith(".csv")


def _is_address(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _fields(file: Path, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    lines = read_lines(file, error=DataError)
    mark = "," if _is_csv(file) else "\t"
    if not quoted:
        for number, line in lines:
            yield number, line.split(mark)
        return
    reader = csv.reader((f"{line}\n" for _, line in lines), delimiter=mark)
    try:
        for fields in reader:
            yield reader.line_num, fields
    except csv.Error as error:
        raise DataError(
            f"{file}, line {reader.line_num}: {error}", "save it as UTF-8 with closed quotation marks"
        ) from None
