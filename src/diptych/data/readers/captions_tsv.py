"""Tables of captions and addresses (Conceptual Captions) with the images that were fetched of them.

Nothing is fetched here. An image belongs to a line by its number (``7.jpg`` or ``000000007.jpg``, anywhere below the
folder, counts lines from 0, as img2dataset names them) or by a column with its file. Addresses die, so images are
missing: say so with ``missing=skip``, and they are counted. pyarrow streams the tables; ids, captions and addresses
stay in files.

Source: Sharma et al., Conceptual Captions, ACL 2018; Changpinyo et al., Conceptual 12M, CVPR 2021.
"""

import csv
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint, fingerprint_bytes
from diptych.core.reading import file_errors, open_bytes
from diptych.data.captions import split_named
from diptych.data.collection import WHOLE, Centric, Collection, Shares
from diptych.data.columns import Column
from diptych.data.images import FolderSource, check_inside, is_image_path
from diptych.data.known import centric_of
from diptych.data.readers.contract import choice, listing, looks, matching, reader
from diptych.data.stored import Indexer, Stored, StoredWriter, file_state, stored

_VERSION = 2
_TABLES = ("*.tsv", "*.tsv.gz")
_BLOCK = 1 << 22  # bytes that are read at once; a longer line is refused
_CAPTIONS = ("caption", "text", "title", "alt_text")
_ADDRESSES = ("url", "image_url", "address")
_FILES = ("path", "filepath", "file", "filename", "file_name", "image", "image_path", "image_file")
_MISSING = "lines without an image left out"
_UNNUMBERED = "images whose names are no numbers not used"

# The number of a line, its caption, and address and file of its image, or empty.
Row = tuple[int, str, str, str]


def _arrow(module: str = "") -> Any:
    return require(f"pyarrow{module}", "datasets", "reading tables of captions")


@dataclass(frozen=True)
class _Table:
    """A table, its columns (those that it does not have are empty), the split of all, and where its images are."""

    file: Path
    names: Sequence[str]  # of its columns; where empty its first line has them
    caption: str
    url: str
    image: str
    quoted: bool  # whether fields may be in quotation marks
    split: str | None = None
    folder: Path = Path()

    def rows(self) -> Iterator[Row]:
        arrow, line, columns = _arrow(".csv"), int(not self.names), (self.caption, self.url, self.image)
        read = {"column_names": list(self.names) or None, "block_size": _BLOCK, "use_threads": False}
        quotes = {"quote_char": '"' if self.quoted else False, "newlines_in_values": self.quoted}
        parse = {"delimiter": _delimiter(self.file), "ignore_empty_lines": False, **quotes}
        used = [name for name in columns if name]
        convert = {"include_columns": used, "column_types": dict.fromkeys(used, _arrow().string())}
        with (
            file_errors(self.file, DataError, noun="a table with an image per line"),
            open_bytes(self.file) as file,
        ):
            for batch in arrow.open_csv(
                file, arrow.ReadOptions(**read), arrow.ParseOptions(**parse), arrow.ConvertOptions(**convert)
            ):
                values = [batch.column(name).to_pylist() if name else [""] * len(batch) for name in columns]
                for caption, url, image in zip(*values, strict=True):
                    line += 1
                    yield line, caption, url, image


def _delimiter(file: Path) -> str:
    return "," if file.name.removesuffix(".gz").endswith(".csv") else "\t"


def _table(file: Path, caption: str | None, image: str | None, quotes: bool | None) -> _Table:
    """Look at a table's first line: headings, or a caption and an address."""
    quoted = _delimiter(file) == "," if quotes is None else quotes
    with file_errors(file, DataError), open_bytes(file) as handle:
        line = handle.readline(_BLOCK).decode("utf-8-sig").strip("\r\n")
    if not line.strip():
        raise DataError(f"{file} is empty", "fetch it again")
    mark = _delimiter(file)
    fields = next(csv.reader([line], delimiter=mark), []) if quoted else line.split(mark)
    addresses = [text.startswith(("http://", "https://")) for text in fields]
    if sorted(addresses) == [False, True] and caption is None and image is None:
        return _Table(file, ["caption", "url"][:: -1 if addresses[0] else 1], "caption", "url", "", quoted)
    plain = {name.strip().lower(): name for name in reversed(fields)}
    for given in (caption, image):
        if given is not None and given not in fields:
            raise UsageError(f"{file} has no column {given!r}", f"its columns: {', '.join(fields)}")
    found = [
        given or next((plain[name] for name in known if name in plain), "")
        for given, known in ((caption, _CAPTIONS), (None, _ADDRESSES), (image, _FILES))
    ]
    if not found[0] or not any(found[1:]):
        raise DataError(
            f"{file} begins with {line[:80]!r}: neither a caption and an address nor headings",
            "name the columns with --reader-option caption_column=… and image_column=…",
        )
    return _Table(file, (), found[0], found[1], found[2], quoted)


def _names_below(root: Path, every: bool) -> Any:
    """Return the images (or all files) below a folder, sorted, as an Arrow array of strings."""

    def found() -> Iterator[str]:
        folders = [""]
        while folders:
            folder = folders.pop()
            with file_errors(root / folder, DataError), os.scandir(root / folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
                    elif every or is_image_path(entry.name):
                        yield f"{folder}{entry.name}"

    return _arrow().array(found(), "string").sort()


class _Indexer(Indexer):
    """Goes through tables and writes the images that are there."""

    def table(self, table: _Table, root: Path, names: Any, first_number: int) -> None:
        """Write a table's lines; those of one image that follow each other are its captions."""
        pairs = self._named(table) if table.image else self._numbered(table, names, first_number)
        pairs = track(pairs, f"reading {table.file.name}", unit="lines")
        for name, group in groupby(pairs, key=lambda pair: pair[0]):
            rows = [row for _, row in group]
            captions = self.captions((caption, f"{table.file}, line {line}") for line, caption, *_ in rows)
            path = (table.folder / name).relative_to(root).as_posix()
            self.writer.add(path, table.split or WHOLE, captions, [rows[0][0]], [rows[0][2]])

    def _numbered(self, table: _Table, names: Any, first: int) -> Iterator[tuple[str, Row]]:
        # Eighteen digits fit into 64 bits; a longer name is no place in a list.
        digits = _arrow(".compute").extract_regex(names, r"^(?:.*/)?(?P<number>[0-9]{1,18})\.[^./]+$")
        numbers = digits.filter(digits.is_valid()).field("number").cast("int64").to_numpy()
        order = np.argsort(numbers, kind="stable")
        numbers, names = numbers[order], names.filter(digits.is_valid()).take(order)
        others = len(digits) - len(numbers)
        self.counts[_UNNUMBERED] += others
        if not len(numbers):
            raise DataError(
                f"{table.folder} has no images that are called by a number ({others:,} others)",
                "give their folder with --images, or the column of their files with image_column=NAME",
            )
        for at in np.flatnonzero(np.diff(numbers) == 0).tolist():
            both = f"{names[at]} and {names[at + 1]}, both number {numbers[at]:,}"
            raise DataError(f"{table.folder} has {both}", "remove one of them")
        at, number = 0, first - 1
        for number, row in enumerate(table.rows(), start=first):
            if at < len(numbers) and numbers[at] < number:
                break
            if at < len(numbers) and numbers[at] == number:
                yield str(names[at]), row
                at += 1
            else:
                self.miss(_MISSING, f"{table.file}, line {row[0]} (image {number:,} in {table.folder})")
        if at < len(numbers):
            raise DataError(
                f"{table.folder / str(names[at])} belongs to no line: those of {table.file} count from {first:,} to "
                f"{number:,}",
                "name another beginning with --reader-option first_number=1, or give the table of these images",
            )

    def _named(self, table: _Table) -> Iterator[tuple[str, Row]]:
        for row in table.rows():
            line, *_, image = row
            check_inside(image, f"{table.folder} ({table.file}, line {line})")
            if image and (table.folder / image).is_file():
                yield image, row
            else:
                self.miss(_MISSING, f"{table.file}, line {line} ({image or 'no file'} in {table.folder})")

    def finish(self) -> None:
        missing, n_images = self.counts[_MISSING], self.writer.n_images
        if not n_images or (missing and self.missing == "error"):
            raise DataError(
                f"{missing:,} lines have no image, {n_images:,} images have one; the first: {self.first}",
                "fetch them, leave them out with --reader-option missing=skip, or check --images",
            )
        self.note(_MISSING, "empty captions left out", _UNNUMBERED)


class _Records(Column[Mapping[str, Any]]):
    def __init__(self, found: Stored) -> None:
        self._lines, self._addresses = found.places, found.texts("url")
        super().__init__(len(self._lines))

    def read(self, rows: range | np.ndarray) -> list[Mapping[str, Any]]:
        both = zip(self._lines.read(rows), self._addresses.read(rows), strict=True)
        return [{"line": line, "url": url} for (line,), url in both]


def _has_addresses(file: Path) -> bool:
    try:
        return bool(_table(file, None, None, None).url)
    except (DataError, UsageError):
        return False


@reader(
    "captions-tsv",
    "tables of captions and addresses (Conceptual Captions), with the images that were fetched",
    *_TABLES,
    claims=looks(_has_addresses),
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
    choice("missing", missing, ("error", "skip"))
    shares = Shares(validation, test)
    path = Path(path)
    files = matching(path, listing(path), _TABLES) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path} has no .tsv file", "give the table itself with --data")
    top = files[0].parent
    root = Path(images) if images is not None else top / "images" if (top / "images").is_dir() else top
    if not root.is_dir():
        raise DataError(f"the image folder {root} does not exist", "check --images")
    tables = []
    for file in files:
        stem = file.name.removesuffix(".gz").rpartition(".")[0]
        named = split if split is not None else split_named(stem)
        # The folder of the file's name or of its split, else the common one.
        folders = (root / name for name in (stem, named) if name and (root / name).is_dir())
        table = _table(file, caption_column, image_column, quotes)
        tables.append(replace(table, split=named, folder=next(folders, root)))
    shared = Counter(table.folder for table in tables if not table.image)
    for folder in (folder for folder, count in shared.items() if count > 1):
        several = ", ".join(table.file.name for table in tables if table.folder == folder)
        raise DataError(
            f"{folder}: its images are numbered, and could be those of {several}",
            f"put them into {root / 'train'}, {root / 'val'} …, or give one table with --data",
        )
    leave_out: dict[str, Any] = {"missing": missing, "skip_bad_captions": skip_bad_captions}
    # A file that a column names need not end like an image.
    names = [_names_below(table.folder, bool(table.image)) for table in tables]

    def write(writer: StoredWriter) -> None:
        indexer = _Indexer(writer=writer, **leave_out)
        for table, below in zip(tables, names, strict=True):
            indexer.table(table, root, below, first_number)
        indexer.finish()

    states = [file_state(file) for file in files]
    shapes = [{**asdict(table), "file": "", "folder": str(table.folder.resolve())} for table in tables]
    held = [[fingerprint_bytes(part.to_pybytes()) for part in below.buffers() if part] for below in names]
    key = fingerprint("captions-tsv", _VERSION, leave_out, first_number, states, shapes, held)
    found = stored(f"captions-tsv-{key}", write, 1, ["url"])
    name = path.resolve().name if path.is_dir() else path.name.split(".")[0]
    source = FolderSource(root, found.texts("image_ids"))
    return found.collection(name, source, _Records(found), centric_of(centric, name), shares)
