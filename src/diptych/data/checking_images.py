"""The image files of a collection: are they there, can they be decoded, and what to do where not."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Self
from unicodedata import is_normalized, normalize

import numpy as np

from diptych.core.context import task, track
from diptych.core.errors import ImageError
from diptych.data.collection import Collection
from diptych.data.images import PICTURE_ENDINGS, FolderSource
from diptych.data.loading import read_ahead

_FIRST = 5
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


def _printable(name: str) -> str:
    """Return a file's name as it can be shown: bytes that are no UTF-8 as ``\\udcff``."""
    return name.encode(errors="backslashreplace").decode()


@dataclass(frozen=True)
class NamedCount:
    """A count, and the first few by name, printable."""

    count: int = 0
    first: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        rest = iter(names)
        first = tuple(map(_printable, islice(rest, _FIRST)))
        return cls(len(first) + sum(1 for _ in rest), first)

    def listed(self) -> str:
        return ", ".join(self.first) + (", …" if self.count > len(self.first) else "")

    def row(self, what: str) -> tuple[str, str, str]:
        return what, f"{self.count:,}", self.listed()


@dataclass(frozen=True)
class Pictures:
    """The images' folder, held against what the captions refer to."""

    folder: str
    expected: int  # how many images the captions refer to
    missing: NamedCount  # those of them that are not there
    missing_by_folder: Mapping[str, tuple[int, int]]  # how many of how many, of folders that miss some
    unused: NamedCount  # images there that no caption refers to
    empty: NamedCount | None = None  # files of no bytes; None where they were not looked at
    corrupt: NamedCount | None = (
        None  # other files that cannot be decoded; None where they were not looked at
    )

    def rows(self) -> list[tuple[str, str, str]]:
        there = f"{self.expected - self.missing.count:,} of {self.expected:,}"
        rows = [(f"images in {self.folder}", there, self.missing.listed())]
        folders = list(self.missing_by_folder.items())
        for below, (missing, count) in folders[:_FIRST] if dict(folders).keys() - {"."} else ():
            rows.append((f"missing in {below}", f"{missing:,} of {count:,}", ""))
        if len(folders) > _FIRST:
            rows.append((f"and {len(folders) - _FIRST:,} more folders", "", ""))
        rows.append(self.unused.row("images that no caption uses"))
        if self.empty is not None and self.corrupt is not None:
            rows += [self.empty.row("empty files"), self.corrupt.row("images that cannot be decoded")]
        return rows


@dataclass(frozen=True)
class Problem:
    """Something that has to be put right before numbers can be trusted: what, and how."""

    what: str
    fix: str


@dataclass(frozen=True, eq=False)
class Scan:
    """Result of one walk through a folder."""

    there: np.ndarray  # (n_names,) whether each name is there
    unused: list[str]  # images that have none of the names, sorted
    archives: list[str]  # sorted


def _files(root: Path) -> Iterator[str]:
    """Yield the names below ``root`` of all files; links to folders are followed once, and never up."""
    seen, top = {root.resolve()}, root.resolve()
    for folder, folders, files in os.walk(root, followlinks=True):
        below = Path(folder).relative_to(root).as_posix()
        yield from files if below == "." else (f"{below}/{name}" for name in files)
        for name in [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            real = Path(folder, name).resolve()
            if real in seen or top.is_relative_to(real):
                folders.remove(name)
            seen.add(real)


def scan(root: Path, names: Sequence[str]) -> Scan:
    plain = [str(PurePosixPath(one)) if "/" in one or "\\" in one else one for one in names]
    found: set[str] = set()
    unused, archives, expected = [], [], set(plain)
    with task(f"looking through {root.name}", unit="files") as bar:
        for count, name in enumerate(_files(root), 1):
            if name in expected:
                found.add(name)
            elif name.rpartition(".")[2].lower() in PICTURE_ENDINGS:
                unused.append(name)
            elif name.lower().endswith(_ARCHIVES):
                archives.append(name)
            if count % 1000 == 0:
                bar.advance(1000)
    there = np.fromiter((name in found for name in plain), bool, len(plain))
    return Scan(there, sorted(unused), sorted(archives))


def _where_they_are(root: Path, missing: Sequence[str], unused: Sequence[str]) -> str:
    """Return how most of the missing images are found among those that are not used; empty where not so."""

    def stem(name: str) -> str:
        return normalize("NFC", PurePosixPath(name).stem.lower())

    by_stem = {stem(name): name for name in unused}
    found = [(name, by_stem[stem(name)]) for name in missing if stem(name) in by_stem]
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
        return f"the captions say {name} and the folder has {other}: move the images into {root / above}"
    return f"the captions say {name} and the folder has {other}: name the images as the captions do"


def _decoded(
    collection: Collection, rows: Sequence[int], workers: int | None
) -> tuple[list[str], list[tuple[str, str]]]:
    """Decode the images of ``rows``: names of files without a byte, and name and reason of other failures."""
    source = collection.source

    def look(row: int) -> tuple[str, str] | None:
        place, name = int(collection.source_rows[row]), collection.image_ids[row]
        try:
            if isinstance(source, FolderSource) and source.path(place).stat().st_size == 0:
                return name, ""
            source.read(place)
        except ImageError as error:
            return name, error.message
        except OSError as error:
            return name, f"{name} cannot be read: {error.strerror}"
        return None

    looked = track(read_ahead(look, rows, workers), "decoding", len(rows), "images")
    bad = [found for found in looked if found is not None]
    return [name for name, why in bad if not why], [(name, why) for name, why in bad if why]


def inspected(
    collection: Collection, rows: np.ndarray, layout: str, decode: bool, workers: int | None
) -> tuple[Pictures | None, list[Problem]]:
    """Look for the images of ``rows``, decode them where that is chosen, and return what has to be put right.

    Returns no images where they are not files of a folder; items without an image are not counted.
    """
    source, pictures, problems = collection.source, None, list[Problem]()
    present = rows = rows[collection.pictured[rows]]
    if isinstance(source, FolderSource):
        root, every = source.root, np.flatnonzero(collection.pictured)
        names = [source.names[row] if row >= 0 else "" for row in collection.source_rows.tolist()]
        walked = scan(root, [names[row] for row in every.tolist()])
        there = np.zeros(collection.n_images, dtype=bool)
        there[every] = walked.there
        present = rows[there[rows]]
        missing = [names[row] for row in rows[~there[rows]].tolist()]
        lost, whole = (
            Counter(str(PurePosixPath(name).parent) for name in some)
            for some in (missing, (names[row] for row in rows.tolist()))
        )
        by_folder = {folder: (count, whole[folder]) for folder, count in sorted(lost.items())}
        pictures = Pictures(
            str(root), len(rows), NamedCount.of(missing), by_folder, NamedCount.of(walked.unused)
        )
        if missing:
            fix = _where_they_are(root, missing, walked.unused)
            if not fix and walked.archives:
                fix = f"unpack {', '.join(walked.archives[:3])} in {root}"
            elif not fix and not len(present):
                fix = f"unpack the images into {root}, or give their folder with --images; {layout}"
            fix = fix or (
                f"unpack the images' archive again, into {root}: it stopped half-way, or files were removed"
            )
            what = f"{len(present):,} of {len(rows):,} images are there, {len(missing):,} are missing"
            problems.append(Problem(f"{what}: {pictures.missing.listed()}", _printable(fix)))
    if decode and collection.holds == "pictures":
        empty, corrupt = _decoded(collection, present.tolist(), workers)
        if pictures is not None:
            broken = NamedCount.of(name for name, _ in corrupt)
            pictures = replace(pictures, empty=NamedCount.of(empty), corrupt=broken)
        if empty or corrupt:
            first = corrupt[0][1] if corrupt else f"{empty[0]} is empty (0 bytes)"
            what = (
                f"{len(empty) + len(corrupt):,} images cannot be read, {len(empty):,} of them are empty files"
            )
            fix = "unpack or fetch them again, or leave them out with --skip-bad-images"
            problems.append(Problem(f"{what}; {first}", fix))
    return pictures, problems
