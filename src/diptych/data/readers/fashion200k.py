"""Fashion200k as its authors distribute it: files of labels and a folder of cropped pictures.

A line of ``labels/CATEGORY_SPLIT_detect_all.txt`` is a picture, the score of its detection and the
description of its product: ``women/dresses/casual_and_day_dresses/51727804/51727804_0.jpeg``. The pictures
of one product share one description.

Source: Han et al., Automatic Spatially-aware Fashion Concept Discovery, ICCV 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from diptych.core.errors import CaptionError, DataError, UsageError
from diptych.core.reading import read_lines
from diptych.data.captions import assigned_split, check_shares, checked_caption
from diptych.data.collection import Collection
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.readers.gathering import Gathering

_CATEGORIES = ("dress", "jacket", "pants", "skirt", "top")
_SPLITS = ("train", "test")
_ENDING = "_detect_all.txt"
_PICTURES = ("all", "first")


@dataclass
class _Image:
    split: str
    category: str
    score: float
    captions: list[str] = field(default_factory=list)

    def record(self, name: str) -> dict[str, Any]:
        folders = PurePosixPath(name).parts[:-1]
        return {
            "category": self.category,
            "category_path": folders[:-1],
            "product": folders[-1] if folders else name,
            "detection_score": self.score,
        }


def _files(path: Path) -> list[tuple[Path, str, str]]:
    """Return files of labels with their category and split; all ten must be there."""
    folder = path / "labels" if (path / "labels").is_dir() else path
    found = [
        (folder / f"{category}_{split}{_ENDING}", category, split)
        for split in _SPLITS
        for category in _CATEGORIES
    ]
    missing = [file.name for file, _, _ in found if not file.is_file()]
    if missing:
        raise DataError(
            f"{folder} lacks {len(missing)} of {len(found)} files of labels: {', '.join(missing)}",
            "unpack the labels into the folder labels/ of the dataset",
        )
    return found


def _lines(file: Path, encoding: str) -> Iterator[tuple[str, str, float, str]]:
    """Yield where it is, picture, score and description of each line."""
    for number, line in read_lines(file, encoding, error=DataError):
        where = f"{file.name}, line {number}"
        fields = line.split("\t")
        if len(fields) != 3 or not fields[0]:
            raise DataError(
                f"{where} has {len(fields)} fields, not a picture, a score and a description",
                "the fields are separated by tabs: fetch the file again",
            )
        try:
            score = float(fields[1])
        except ValueError:
            raise DataError(f"{where}: {fields[1]!r} is no score", "fetch the file again") from None
        yield where, fields[0], score, fields[2]


def read_fashion200k(
    path: Path | str,
    images: Path | str | None = None,
    pictures: Literal["all", "first"] = "all",
    validation: float = 0.0,
    encoding: str = "utf-8",
    skip_bad_captions: bool = False,
) -> Collection:
    """Read the official files of labels."""
    if pictures not in _PICTURES:
        raise UsageError(f"pictures is {pictures!r}", f"one of {', '.join(_PICTURES)}")
    check_shares(validation, 0.0)
    path = Path(path)
    files = _files(path)
    root = Path(images) if images is not None else (path if (path / "women").is_dir() else path.parent)
    if not (root / "women").is_dir():
        raise DataError(
            f"{root} has no folder of pictures women/", "unpack women.tar.gz there, or check --images"
        )
    found: dict[str, _Image] = {}
    firsts: dict[tuple[str, str], str] = {}
    skipped = repeated = moved = further = 0
    for file, category, split in files:
        for where, name, score, raw in _lines(file, encoding):
            product = str(PurePosixPath(name).parent)
            if pictures == "first" and firsts.setdefault((split, product), name) != name:
                further += 1
                continue
            try:
                caption = checked_caption(raw, where)
            except CaptionError:
                if not skip_bad_captions:
                    raise
                skipped += 1
                caption = ""
            part = split
            if split == "train" and assigned_split(product, validation, 0.0) == "val":
                part = "val"
            image = found.setdefault(name, _Image(part, category, score))
            if image.split != part:
                # A picture of both official splits is a test picture: the test set stays whole.
                image.split, image.category, image.score, image.captions = part, category, score, []
                moved += 1
            if caption and caption in image.captions:
                repeated += 1
            elif caption:
                image.captions.append(caption)
    if not found:
        raise DataError(f"the files of labels in {path} are empty", "fetch them again")
    texts = [caption for image in found.values() for caption in image.captions]
    gathering = Gathering(skip_bad_captions)
    for name, image in found.items():
        gathering.add(name, image.split, image.captions, image.record(name))
    products = {PurePosixPath(name).parent for name in found}
    notes = [
        f"{len(products):,} products, {len(set(texts)):,} different descriptions: pictures of a product share "
        "theirs, and each counts for its own picture alone"
    ]
    for count, what in (
        (further, "further pictures of a product left out"),
        (repeated, "lines that repeat a picture and its description left out"),
        (moved, "pictures of both splits kept in test alone"),
        (skipped, "empty captions left out"),
    ):
        if count:
            notes.append(f"{count} {what}")
    return gathering.collection("fashion200k", root, "object", notes)


def _recognises(path: Path) -> bool:
    folders = (path, path / "labels")
    return any((folder / f"{_CATEGORIES[0]}_train{_ENDING}").is_file() for folder in folders)


READERS.add(
    Reader(
        "fashion200k",
        "Fashion200k: labels/CATEGORY_SPLIT_detect_all.txt and the folder of pictures women/",
        _recognises,
        read_fashion200k,
        {
            "images": "folder that holds women/ (default: the dataset's own)",
            "pictures": "all, or first: one picture of each product (default: all)",
            "validation": "share of the training products to validate on (default: 0)",
            "encoding": "of the files of labels (default: utf-8)",
            "skip_bad_captions": "leave out and count empty captions instead of failing",
        },
    )
)
