"""The pictures of a collection: are they there, can they be decoded, and what to do where not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from diptych.data.checking.findings import Pictures, Problem, Some, printable
from diptych.data.checking.pictures import decode_all, scan, where_they_are
from diptych.data.collection import Collection
from diptych.data.images import FolderSource

__all__ = ["inspected"]


def inspected(
    collection: Collection,
    rows: np.ndarray,
    layout: str,
    decode: bool,
    workers: int | None,
) -> tuple[Pictures | None, list[Problem]]:
    """Look for the pictures of image rows ``rows``, and decode them when asked.

    Args:
        collection: all of it: files that other rows use are not unused.
        rows: the images to look at.
        layout: where it says how the folder should be.
        decode: whether to decode.
        workers: threads to decode with.

    Returns:
        What was found, None where pictures are not files of a folder; and what has to be put right. Items
        without a picture are not counted.
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

    def counted(names: Sequence[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for name in names:
            folder = str(PurePosixPath(name).parent)
            counts[folder] = counts.get(folder, 0) + 1
        return counts

    if not missing:
        return {}
    whole = counted(wanted)
    return {folder: (count, whole[folder]) for folder, count in sorted(counted(missing).items())}


def _unpack(root: Path, present: int, archives: Sequence[str], layout: str) -> str:
    if archives:
        return f"unpack {', '.join(archives[:3])} in {root}"
    if not present:
        return f"unpack the pictures into {root}, or give their folder with --images; {layout}"
    return f"unpack the pictures' archive again, into {root}: it stopped half-way, or files were removed"
