"""Tables of captions and addresses, and the pictures that were fetched of them."""

from __future__ import annotations

import csv
import os
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.core.reading import open_regular, read_lines
from diptych.data.images import PICTURE_ENDINGS, check_inside
from diptych.data.stored import Indexer, LeaveOut, StoredWriter

# Pictures that are called by a number: ``7.jpg``, ``000000007.jpg``, ``00000/000000007.jpg``.
#
# Downloaders name a picture by the place of its address in a list. A folder of them is gone through entry
# by entry; of each picture its number is kept, and of each way of writing names one text.


def _files(root: Path) -> Iterator[tuple[str, str]]:
    """Folder below ``root`` (with a ``/``, or empty) and name of every file, in no order."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
                    else:
                        yield folder, entry.name
        except OSError as error:
            raise DataError(
                f"{root / folder} cannot be read: {error.strerror}", "check its permissions"
            ) from None


def _is_picture(file: str) -> bool:
    return file.rpartition(".")[2].lower() in PICTURE_ENDINGS


def folder_state(root: Path, every: bool = False) -> tuple[int, int]:
    """Return how many pictures, or files at all, are below ``root``, and a number that changes with their names."""
    count = names = 0
    for folder, file in _files(root):
        if not (every or _is_picture(file)):
            continue
        count += 1
        names += zlib.crc32(f"{folder}{file}".encode(errors="surrogateescape"))
    return count, names


class NumberedPictures:
    """The pictures below a folder whose names are numbers, in the order of these: ``numbers`` (n,) int64."""

    def __init__(self, root: Path) -> None:
        numbers, forms = array("q"), array("i")
        known: dict[tuple[str, int, str], int] = {}
        self.strangers = 0  # pictures whose names are no numbers
        for folder, file in _files(root):
            if not _is_picture(file):
                continue
            stem, _, ending = file.rpartition(".")
            # Eighteen digits fit into 64 bits; a longer name is no place in a list.
            if not (stem.isascii() and stem.isdigit() and len(stem) <= 18):
                self.strangers += 1
                continue
            # The width matters where there are leading zeros; 7 and 07 would be two names of one number.
            width = len(stem) if stem[0] == "0" else 0
            numbers.append(int(stem))
            forms.append(known.setdefault((folder, width, ending), len(known)))
        order = np.argsort(np.frombuffer(numbers, dtype=np.int64), kind="stable") if numbers else slice(0)
        self.numbers: np.ndarray = np.array(numbers, dtype=np.int64)[order]
        self._forms: np.ndarray = np.array(forms, dtype=np.int32)[order]
        self._known = list(known)
        twice = np.flatnonzero(np.diff(self.numbers) == 0)
        if len(twice):
            at = int(twice[0])
            raise DataError(
                f"{root} has {self.name(at)} and {self.name(at + 1)}, both number {self.numbers[at]:,}",
                "remove one of them",
            )

    def name(self, place: int) -> str:
        """Return the file below the folder of the picture at that place in :attr:`numbers`."""
        folder, width, ending = self._known[self._forms[place]]
        return f"{folder}{self.numbers[place]:0{width}d}.{ending}"


# Tables of captions in the manner of Conceptual Captions: a caption and an address per line.
#
# CC3M's files have no line of headings and two fields, caption and address; CC12M's has the address first;
# downloaders add headings, and some a column with each picture's file.


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
    """Where what is in a table of captions."""

    file: Path  # the table
    headings: bool  # whether its first line names the columns
    caption: int  # the column of captions
    url: int  # the column of addresses; -1 for none
    image: int  # the column of files of pictures; -1 for none
    n_columns: int  # fields per line
    quoted: bool  # whether fields may be in quotation marks, as CSV files have them

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
        """Return whether a file's first line is a caption and an address, or names such columns; reads that line."""
        try:
            with open_regular(file) as handle:
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


@dataclass(frozen=True)
class Part:
    """A table and where its pictures are."""

    table: CaptionTable  # the table
    split: str | None  # of all of its lines; None where nothing says one
    root: Path  # what pictures' names are below
    prefix: str  # the folder of this table's pictures below it, with a / at its end, or empty

    @property
    def folder(self) -> Path:
        """Return the folder of this table's pictures."""
        return self.root / self.prefix


@dataclass(frozen=True, kw_only=True)
class PictureOptions(LeaveOut):
    """What decides what is stored; attributes as :func:`read_captions_tsv` describes them."""

    first_number: int


_MISSING = "lines without picture left out"
_STRANGERS = "pictures whose names are no numbers not used"


class TableIndexer(Indexer):
    """Goes through tables and writes which picture each line has."""

    def __init__(self, options: PictureOptions, writer: StoredWriter) -> None:
        super().__init__(options, writer)
        self._options = options

    def part(self, part: Part) -> None:
        """Write a table's lines."""
        pairs = self._numbered(part) if part.table.image < 0 else self._named(part)
        name, rows = "", list[Row]()
        for row, picture in track(pairs, f"reading {part.table.file.name}", unit="lines"):
            # Lines of one picture that follow each other are its captions.
            if rows and picture != name:
                self._write(part, name, rows)
                rows = []
            name = picture
            rows.append(row)
        if rows:
            self._write(part, name, rows)

    def _numbered(self, part: Part) -> Iterator[tuple[Row, str]]:
        pictures = NumberedPictures(part.folder)
        if not len(pictures.numbers):
            raise DataError(
                f"{part.folder} has no pictures that are called by a number ({pictures.strangers:,} others)",
                "give their folder with --images, or the column of their files with image_column=NAME",
            )
        self._counts[_STRANGERS] += pictures.strangers
        at, number = 0, self._options.first_number - 1
        for row in part.table.rows():
            number += 1
            if at < len(pictures.numbers) and pictures.numbers[at] < number:
                break
            if at < len(pictures.numbers) and pictures.numbers[at] == number:
                yield row, f"{part.prefix}{pictures.name(at)}"
                at += 1
            else:
                self.miss(
                    _MISSING, f"{part.table.file}, line {row.line} (picture {number:,} in {part.folder})"
                )
        if at < len(pictures.numbers):
            raise DataError(
                f"{part.folder / pictures.name(at)} belongs to no line: those of {part.table.file} count from "
                f"{self._options.first_number:,} to {number:,}",
                "lines count from 0: name another beginning with --reader-option first_number=1, or give the "
                "table these pictures were fetched from",
            )

    def _named(self, part: Part) -> Iterator[tuple[Row, str]]:
        for row in part.table.rows():
            where = f"{part.table.file}, line {row.line}"
            if row.image:
                check_inside(row.image, f"{part.folder} ({where})")
            if row.image and (part.folder / row.image).is_file():
                yield row, f"{part.prefix}{row.image}"
            else:
                self.miss(_MISSING, f"{where} ({row.image or 'no file'} in {part.folder})")

    def _write(self, part: Part, name: str, rows: Sequence[Row]) -> None:
        captions = self.captions((row.caption, f"{part.table.file}, line {row.line}") for row in rows)
        self._writer.add(name, part.split or self.split_of(name), captions, [rows[0].line], [rows[0].url])

    def finish(self) -> None:
        """Say what was left out, or refuse."""
        missing, n_images = self._counts[_MISSING], self._writer.n_images
        if missing and self._options.missing == "error":
            raise DataError(
                f"{missing:,} lines have no picture, {n_images:,} images have one; the first: {self._first}",
                "fetch them, or leave them out with --reader-option missing=skip",
            )
        if not n_images:
            raise DataError(f"no line has a picture, the first: {self._first or 'none'}", "check --images")
        self.note(_MISSING, "empty captions left out", _STRANGERS)
