"""The pictures of a collection: are they there, can they be decoded, and what to do where not."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from unicodedata import is_normalized, normalize

import numpy as np

from diptych.core.context import task, track
from diptych.core.errors import ImageError
from diptych.core.table import Table
from diptych.data.collection import Centric, Collection
from diptych.data.images import PICTURE_ENDINGS, FolderSource
from diptych.data.known import captions_text
from diptych.data.loading import read_ahead

_FIRST = 5


def printable(name: str) -> str:
    """Return a file's name as it can be shown: bytes that are no UTF-8 as ``\\udcff``."""
    return name.encode(errors="backslashreplace").decode()


@dataclass(frozen=True)
class Some:
    """How many there are, and the first few by name, printable."""

    count: int = 0
    first: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> Some:
        """Return all of ``names``."""
        rest = iter(names)
        first = tuple(map(printable, islice(rest, _FIRST)))
        return cls(len(first) + sum(1 for _ in rest), first)

    def row(self, what: str) -> tuple[str, str, str]:
        """Return them as a row of a table."""
        return what, f"{self.count:,}", self.listed()

    def listed(self) -> str:
        """Return the first ones, with … where there are more."""
        return ", ".join(self.first) + (", …" if self.count > len(self.first) else "")


@dataclass(frozen=True)
class SplitCheck:
    """A split as it is, beside what is expected of it."""

    split: str  # its name
    images: int  # how many images it has; 0 where it is not there
    captions: int  # how many captions
    expected_images: int | None  # as many are expected; None where nobody knows
    # numbers of captions in use, and what each means; empty where any will do
    expected_captions: Mapping[int, str]
    verdict: str  # "as expected", "differs", "absent", "not expected" or "not known"
    meaning: str = ""  # what the number of captions means, e.g. "the first five of each"


@dataclass(frozen=True)
class Pictures:
    """The pictures' folder beside what the captions refer to."""

    folder: str  # where they are looked for
    wanted: int  # how many pictures the captions refer to
    missing: Some  # those of them that are not there
    # per folder below, how many of how many are missing; only folders that miss some
    missing_by_folder: Mapping[str, tuple[int, int]]
    unused: Some  # pictures there that no caption refers to
    empty: Some | None = None  # files of no bytes; None where they were not looked at
    # files that cannot be decoded, empty ones left aside; None where they were not looked at
    damaged: Some | None = None


@dataclass(frozen=True)
class Problem:
    """Something that has to be put right before numbers can be trusted: what, and how."""

    what: str
    fix: str


@dataclass(frozen=True)
class Check:
    """What was found in a dataset."""

    dataset: str | None  # the known dataset that it was held against; None for any other
    reader: str  # who read it
    collection: str  # what was read, in one line
    centric: Centric | None  # what its pictures show
    form: str | None  # the form of splits that it was held against
    splits: tuple[SplitCheck, ...]  # each split, found beside expected
    pictures: Pictures | None  # the folder of pictures; None where pictures are not files of a folder
    without_captions: Some  # images that no caption describes
    repeated: Some  # captions that an image has twice
    shared: Some  # captions whose very words also describe another image
    notes: tuple[str, ...]  # what the reader says, and what is worth knowing though nothing has to be done
    problems: tuple[Problem, ...]  # what has to be put right

    @property
    def complete(self) -> bool:
        """Return whether nothing has to be put right."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """Return one line."""
        if self.complete:
            return "complete: nothing has to be done"
        count = len(self.problems)
        return f"not complete: {count} {'thing has' if count == 1 else 'things have'} to be put right"

    def tables(self) -> list[Table]:
        """Return the splits, and what was counted besides."""
        rows = []
        for one in self.splits:
            expected = "" if one.expected_images is None else f"{one.expected_images:,}"
            verdict = f"{one.verdict}: {one.meaning}" if one.meaning else one.verdict
            captions = f"{one.captions:,}", captions_text(one.expected_captions)
            rows.append((one.split, f"{one.images:,}", expected, *captions, verdict))
        title = f"splits, held against {self.form}" if self.form else "splits"
        columns = ("split", "images", "expected", "captions", "expected captions", "verdict")
        counts, found = [], self.pictures
        if found is not None:
            there = f"{found.wanted - found.missing.count:,} of {found.wanted:,}"
            counts.append((f"pictures in {found.folder}", there, found.missing.listed()))
            folders = list(found.missing_by_folder.items())
            for below, (missing, wanted) in folders[:_FIRST] if dict(folders).keys() - {"."} else ():
                counts.append((f"missing in {below}", f"{missing:,} of {wanted:,}", ""))
            if len(folders) > _FIRST:
                counts.append((f"and {len(folders) - _FIRST:,} more folders", "", ""))
            counts.append(found.unused.row("pictures that no caption uses"))
            if found.empty is not None and found.damaged is not None:
                counts.append(found.empty.row("empty files"))
                counts.append(found.damaged.row("pictures that cannot be decoded"))
        counts += [
            self.without_captions.row("images without captions"),
            self.repeated.row("captions that repeat another of their image"),
            self.shared.row("captions whose words describe another image too"),
        ]
        return [
            Table.of(title, "", columns, rows),
            Table.of("files and texts", "", ("what", "how many", "first"), counts),
        ]


_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, eq=False)
class Scan:
    """What one walk through a folder found."""

    there: np.ndarray  # (n_names,) whether each wanted name is there
    unused: list[str]  # pictures that are not wanted, sorted
    archives: list[str]  # archives that lie about, sorted


def _files(root: Path) -> Iterator[str]:
    """Yield names below ``root`` of all files, with ``/``; one listing per folder, no look at any file."""
    waiting = [("", str(root))]
    seen: set[Path] = set()
    while waiting:
        below, folder = waiting.pop()
        try:
            entries = os.scandir(folder)
        except OSError:  # gone meanwhile, or not ours to read: its pictures count as missing
            continue
        with entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                if not entry.is_dir():
                    yield name
                    continue
                if entry.is_symlink():  # a link may lead back up
                    real = Path(entry.path).resolve()
                    if real in seen or root.resolve().is_relative_to(real):
                        continue
                    seen.add(real)
                waiting.append((f"{name}/", entry.path))


def scan(root: Path, names: Sequence[str]) -> Scan:
    """Look for ``names`` below ``root``, in one walk."""
    wanted: dict[str, int] = {}
    first = np.zeros(len(names), dtype=np.int64)  # the row of each name's first occurrence
    for row, name in enumerate(names):
        plain = str(PurePosixPath(name)) if "//" in name or "./" in name or "\\" in name else name
        first[row] = wanted.setdefault(plain, row)
    there = np.zeros(len(names), dtype=bool)
    unused: list[str] = []
    archives: list[str] = []
    with task(f"looking through {root.name}", unit="files") as bar:
        for count, name in enumerate(_files(root), 1):
            row_there = wanted.get(name)
            if row_there is not None:
                there[row_there] = True
            elif name.rpartition(".")[2].lower() in PICTURE_ENDINGS:
                unused.append(name)
            elif name.lower().endswith(_ARCHIVES):
                archives.append(name)
            if count % 1000 == 0:
                bar.advance(1000)
    return Scan(there[first], sorted(unused), sorted(archives))


def where_they_are(root: Path, missing: Sequence[str], unused: Sequence[str]) -> str:
    """Return how to make most of the missing pictures be found among those that are not used; empty where not so."""
    by_stem = {_stem(name): name for name in unused}
    pairs = [(name, by_stem.get(_stem(name))) for name in missing]
    found = [(name, other) for name, other in pairs if other is not None]
    if 2 * len(found) < len(missing) or not found:
        return ""
    name, other = found[0]
    if normalize("NFC", name) == normalize("NFC", other):
        return (
            f"{name} is there with its accents written otherwise (Unicode's NFC and NFD, as an unpacking on macOS "
            f"leaves them): rename, e.g. convmv -r -f utf8 -t utf8 --{'nfc' if is_normalized('NFC', name) else 'nfd'} "
            f"--notest {root}"
        )
    if other.endswith(f"/{name}"):
        return f"they lie one folder further: give --images {root / other[: -len(name) - 1]}"
    if name.endswith(f"/{other}"):
        above = PurePosixPath(name[: -len(other) - 1])
        depth = len(above.parts)
        if root.parts[-depth:] == above.parts:
            return f"the captions say {name}: give the folder above, --images {root.parents[depth - 1]}"
        return f"the captions say {name} and the folder has {other}: move the pictures into {root / above}"
    return f"the captions say {name} and the folder has {other}: name the pictures as the captions do"


def _stem(name: str) -> str:
    return normalize("NFC", PurePosixPath(name).stem.lower())


def decode_all(
    collection: Collection, rows: Sequence[int], workers: int | None = None
) -> tuple[list[str], list[tuple[str, str]]]:
    """Decode the pictures of ``rows``: names of files without a byte, and name and reason of other failures."""
    source = collection.source

    def look(row: int) -> tuple[str, str] | None:
        place = int(collection.source_rows[row])
        name = collection.image_ids[row]
        try:
            if isinstance(source, FolderSource) and source.path(place).stat().st_size == 0:
                return name, ""
            source.read(place)
        except ImageError as error:
            return name, error.message
        except OSError as error:
            return name, f"{name} cannot be read: {error.strerror}"
        return None

    looked = track(read_ahead(look, rows, workers), "decoding", len(rows), "pictures")
    bad = [found for found in looked if found is not None]
    return [name for name, why in bad if not why], [(name, why) for name, why in bad if why]


def inspected(
    collection: Collection,
    rows: np.ndarray,
    layout: str,
    decode: bool,
    workers: int | None,
) -> tuple[Pictures | None, list[Problem]]:
    """Look for the pictures of image rows ``rows``, decode them when asked, and say what has to be put right.

    Returns no pictures where they are not files of a folder; items without a picture are not counted.
    """
    source = collection.source
    problems: list[Problem] = []
    rows = rows[collection.pictured[rows]]  # a product without a picture lacks none
    present = rows
    pictures = None
    if isinstance(source, FolderSource):
        names = [source.names[row] if row >= 0 else "" for row in collection.source_rows.tolist()]
        pictured = np.flatnonzero(collection.pictured)
        walked = scan(source.root, [names[row] for row in pictured.tolist()])
        there = np.zeros(collection.n_images, dtype=bool)
        there[pictured] = walked.there
        present = rows[there[rows]]
        missing = [names[row] for row in rows[~there[rows]].tolist()]
        by_folder = _by_folder([names[row] for row in rows.tolist()], missing)
        pictures = Pictures(str(source.root), len(rows), Some.of(missing), by_folder, Some.of(walked.unused))
        if missing:
            problems.append(
                Problem(
                    f"{len(present):,} of {len(rows):,} pictures are there, {len(missing):,} are missing: "
                    f"{pictures.missing.listed()}",
                    printable(
                        where_they_are(source.root, missing, walked.unused)
                        or _unpack(source.root, len(present), walked.archives, layout)
                    ),
                )
            )
    if decode and collection.holds == "pictures":
        empty, damaged = decode_all(collection, present.tolist(), workers)
        if pictures is not None:
            broken = Some.of(name for name, _ in damaged)
            pictures = replace(pictures, empty=Some.of(empty), damaged=broken)
        if empty or damaged:
            first = damaged[0][1] if damaged else f"{empty[0]} is empty (0 bytes)"
            problems.append(
                Problem(
                    f"{len(empty) + len(damaged):,} pictures cannot be read, {len(empty):,} of them are empty "
                    f"files; {first}",
                    "unpack or fetch them again, or leave them out with --skip-bad-images",
                )
            )
    return pictures, problems


def _by_folder(wanted: Sequence[str], missing: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    """Per folder: how many of how many are missing."""
    lost, whole = (Counter(str(PurePosixPath(name).parent) for name in names) for names in (missing, wanted))
    return {folder: (count, whole[folder]) for folder, count in sorted(lost.items())}


def _unpack(root: Path, present: int, archives: Sequence[str], layout: str) -> str:
    if archives:
        return f"unpack {', '.join(archives[:3])} in {root}"
    if not present:
        return f"unpack the pictures into {root}, or give their folder with --images; {layout}"
    return f"unpack the pictures' archive again, into {root}: it stopped half-way, or files were removed"
