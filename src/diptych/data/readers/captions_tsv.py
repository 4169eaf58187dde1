"""Tables of captions and addresses (Conceptual Captions) with the images that were fetched of them.

Nothing is fetched here. A picture belongs to a line by its number (``7.jpg`` or ``000000007.jpg``, anywhere
below the folder, counts lines from 0, as img2dataset names them) or by a column with its file. Addresses
die, so pictures are missing: say so with ``missing=skip``, and they are counted. Ids, captions and
addresses stay in files: a million pictures need no more memory than a thousand.

Source: Sharma et al., Conceptual Captions, ACL 2018; Changpinyo et al., Conceptual 12M, CVPR 2021.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint
from diptych.data.caption_tables import CaptionTable, Part, PictureOptions, TableIndexer, folder_state
from diptych.data.captions import split_named
from diptych.data.collection import Centric, Collection, Shares
from diptych.data.columns import Column
from diptych.data.images import FolderSource
from diptych.data.known import centric_of
from diptych.data.readers.contract import choice, listing, looks, matching, reader
from diptych.data.stored import Stored, StoredWriter, stored

_VERSION = 2
_TABLES = ("*.tsv", "*.tsv.gz")


class _Records(Column[Mapping[str, Any]]):
    """Line and address of each picture."""

    def __init__(self, found: Stored) -> None:
        self._lines, self._addresses = found.places, found.texts("url")
        super().__init__(len(self._lines))

    def read(self, rows: range | np.ndarray) -> list[Mapping[str, Any]]:
        """Return the records of these stored rows."""
        both = zip(self._lines.read(rows), self._addresses.read(rows), strict=True)
        return [{"line": line, "url": url} for (line,), url in both]


def _tables(path: Path, options: Mapping[str, Any]) -> list[CaptionTable]:
    if not path.is_dir():
        return [CaptionTable.of(path, **options)]
    files = matching(path, listing(path), _TABLES)
    if not files:
        raise DataError(f"{path} has no .tsv file", "give the table itself with --data")
    return [CaptionTable.of(file, **options) for file in files]


def _parts(tables: Sequence[CaptionTable], images: Path | None, split: str | None) -> list[Part]:
    """Return each table with its split and its pictures' folder: the split's or the file's own, else the common one."""
    top = tables[0].file.parent
    root = images if images is not None else top / "images" if (top / "images").is_dir() else top
    if not root.is_dir():
        raise DataError(f"the image folder {root} does not exist", "check --images")
    parts: list[Part] = []
    for table in tables:
        stem = table.file.name.removesuffix(".gz").rpartition(".")[0]
        named = split if split is not None else split_named(stem)
        own = (name for name in (stem, named) if name and (root / name).is_dir())
        folder = next(own, None)
        parts.append(Part(table, named, root, f"{folder}/" if folder else ""))
    folders = Counter(part.prefix for part in parts if part.table.image < 0)
    for part in parts:
        if folders[part.prefix] > 1 and part.table.image < 0:
            files = ", ".join(p.table.file.name for p in parts if p.prefix == part.prefix)
            raise DataError(
                f"{part.folder}: its pictures are numbered, and could be those of {files}",
                f"put them into {root / 'train'}, {root / 'val'} …, or give one table with --data",
            )
    return parts


@reader(
    "captions-tsv",
    "tables of captions and addresses (Conceptual Captions), with the images that were fetched",
    *_TABLES,
    claims=looks(CaptionTable.looks_like),
    image_column="column with each image's file (recognised; else images are numbered by line)",
    quotes="fields may be in quotation marks (default: in .csv, not in .tsv)",
    first_number="number of the first line's image (default: 0)",
    missing="error, or skip: lines without an image",
    split="the split of all (default: as the table's name says)",
)
def read_captions_tsv(
    path: Path | str,
    images: Path | str | None = None,
    image_column: str | None = None,
    caption_column: str | None = None,
    quotes: bool | None = None,
    first_number: int = 0,
    missing: Literal["error", "skip"] = "error",
    split: str | None = None,
    validation: float = 0.1,
    test: float = 0.1,
    skip_bad_captions: bool = False,
    centric: Centric | None = None,
) -> Collection:
    """Read tables of captions and addresses with what was fetched of their pictures."""
    choice("missing", missing, ("error", "skip"))
    shares = Shares(validation, test)
    path = Path(path)
    columns = {"caption_column": caption_column, "image_column": image_column, "quotes": quotes}
    tables = _tables(path, columns)
    parts = _parts(tables, None if images is None else Path(images), split)
    options = PictureOptions(
        first_number=first_number,
        missing=missing,
        validation=validation,
        test=test,
        skip_bad_captions=skip_bad_captions,
    )

    def write(writer: StoredWriter) -> None:
        indexer = TableIndexer(options, writer)
        for part in parts:
            indexer.part(part)
        indexer.finish()

    states = [(str(part.table.file.resolve()), *_state(part.table.file), part.prefix) for part in parts]
    shapes = [{**asdict(part.table), "file": "", "split": part.split} for part in parts]
    root = parts[0].root
    # A file that a column names need not end like a picture.
    places = {part.folder: part.table.image >= 0 for part in parts}
    held = [folder_state(folder, every) for folder, every in places.items()]
    key = fingerprint("captions-tsv", _VERSION, asdict(options), states, shapes, held)
    found = stored(f"captions-tsv-{key}", write, 1, ["url"])
    name = path.resolve().name if path.is_dir() else path.name.split(".")[0]
    source = FolderSource(root, found.texts("image_ids"))
    return found.collection(name, source, _Records(found), centric_of(centric, name), shares)


def _state(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_size, state.st_mtime_ns
