"""Going through tables of captions once: which picture is whose, and which are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from diptych.core.context import track
from diptych.core.errors import CaptionError, DataError
from diptych.data.assigned import assigned_split
from diptych.data.caption_tables.numbered import NumberedPictures
from diptych.data.caption_tables.table import CaptionTable, Row
from diptych.data.captions import checked_caption
from diptych.data.images import check_inside
from diptych.data.stored import StoredWriter


@dataclass(frozen=True)
class Part:
    """A table and where its pictures are.

    Attributes:
        table: the table.
        split: of all of its lines; None where nothing says one.
        root: what pictures' names are below.
        prefix: the folder of this table's pictures below it, with a ``/`` at its end, or empty.
    """

    table: CaptionTable
    split: str | None
    root: Path
    prefix: str

    @property
    def folder(self) -> Path:
        """The folder of this table's pictures."""
        return self.root / self.prefix


@dataclass(frozen=True)
class PictureOptions:
    """What decides what is stored; attributes as :func:`read_captions_tsv` describes them."""

    first_number: int
    missing: str
    validation: float
    test: float
    skip_bad_captions: bool


class TableIndexer:
    """Goes through tables and writes which picture each line has."""

    def __init__(self, options: PictureOptions, writer: StoredWriter) -> None:
        self._options, self._writer = options, writer
        self._counts: Counter[str] = Counter()
        self._lost = ""

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
        self._counts["strangers"] += pictures.strangers
        at, number = 0, self._options.first_number - 1
        for row in part.table.rows():
            number += 1
            if at < len(pictures.numbers) and pictures.numbers[at] < number:
                break
            if at < len(pictures.numbers) and pictures.numbers[at] == number:
                yield row, f"{part.prefix}{pictures.name(at)}"
                at += 1
            else:
                self._missing(f"{part.table.file}, line {row.line} (picture {number:,} in {part.folder})")
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
                self._missing(f"{where} ({row.image or 'no file'} in {part.folder})")

    def _missing(self, where: str) -> None:
        self._counts["missing"] += 1
        self._lost = self._lost or where

    def _write(self, part: Part, name: str, rows: Sequence[Row]) -> None:
        options = self._options
        captions = []
        for row in rows:
            try:
                captions.append(checked_caption(row.caption, f"{part.table.file}, line {row.line}"))
            except CaptionError:
                if not options.skip_bad_captions:
                    raise
                self._counts["empty"] += 1
        split = part.split or assigned_split(name, options.validation, options.test)
        self._writer.add(name, split, captions, [rows[0].line], [rows[0].url])

    def finish(self) -> None:
        """Say what was left out, or refuse."""
        counts, n_images = self._counts, self._writer.n_images
        if counts["missing"] and self._options.missing == "error":
            raise DataError(
                f"{counts['missing']:,} lines have no picture, {n_images:,} images have one; the first: {self._lost}",
                "fetch them, or leave them out with --reader-option missing=skip",
            )
        if not n_images:
            raise DataError(f"no line has a picture, the first: {self._lost or 'none'}", "check --images")
        self._writer.notes += [
            f"{count:,} {what}"
            for count, what in (
                (counts["missing"], "lines without picture left out"),
                (counts["empty"], "empty captions left out"),
                (counts["strangers"], "pictures whose names are no numbers not used"),
            )
            if count
        ]
