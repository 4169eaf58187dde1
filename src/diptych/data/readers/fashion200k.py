"""Fashion200k as its authors distribute it: files of labels and a folder of cropped images.

A line of ``labels/CATEGORY_SPLIT_detect_all.txt`` is an image, the score of its detection and the
description of its product: ``women/dresses/casual_and_day_dresses/51727804/51727804_0.jpeg``. The images
of one product share one description.

Source: Han et al., Automatic Spatially-aware Fashion Concept Discovery, ICCV 2017.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from diptych.core.errors import DataError
from diptych.core.reading import read_lines
from diptych.data.collection import Collection
from diptych.data.readers.contract import Gathering, choice, reader

_CATEGORIES = ("dress", "jacket", "pants", "skirt", "top")
_SPLITS = ("train", "test")
_ENDING = "_detect_all.txt"


def _record(name: str, category: str, score: float) -> dict[str, Any]:
    folders = PurePosixPath(name).parts[:-1]
    return {
        "category": category,
        "category_path": folders[:-1],
        "product": folders[-1] if folders else name,
        "detection_score": score,
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
    for number, line in read_lines(file, encoding, error=DataError):
        where = f"{file.name}, line {number}"
        fields = line.split("\t")
        if len(fields) != 3 or not fields[0]:
            raise DataError(
                f"{where} has {len(fields)} fields, not an image, a score and a description",
                "the fields are separated by tabs: fetch the file again",
            )
        try:
            score = float(fields[1])
        except ValueError:
            raise DataError(f"{where}: {fields[1]!r} is no score", "fetch the file again") from None
        yield where, fields[0], score, fields[2]


@reader(
    "fashion200k",
    "Fashion200k: labels/CATEGORY_SPLIT_detect_all.txt and the folder of images women/",
    *(f"{below}{_CATEGORIES[0]}_train{_ENDING}" for below in ("", "labels/")),
)
def read_fashion200k(
    path: Path | str,
    images: Path | str | None = None,
    pictures: Literal["all", "first"] = "all",
    validation: float = 0.0,
    encoding: str = "utf-8",
    skip_bad_captions: bool = False,
) -> Collection:
    choice("pictures", pictures, ("all", "first"))
    path = Path(path)
    files = _files(path)
    root = Path(images) if images is not None else (path if (path / "women").is_dir() else path.parent)
    if not (root / "women").is_dir():
        raise DataError(
            f"{root} has no folder of images women/", "unpack women.tar.gz there, or check --images"
        )
    gathered = Gathering(skip_bad_captions, validation, 0.0, join=True)
    # An image of both official splits is a test image: the test set stays whole.
    tested = {name for file, _, split in files if split == "test" for _, name, _, _ in _lines(file, encoding)}
    firsts: dict[tuple[str, str], str] = {}
    moved: set[str] = set()
    for file, category, split in files:
        for where, name, score, text in _lines(file, encoding):
            product = str(PurePosixPath(name).parent)
            if pictures == "first" and firsts.setdefault((split, product), name) != name:
                gathered.counts["further images of a product left out"] += 1
                continue
            if split == "train" and name in tested:
                moved.add(name)
                continue
            known = gathered.items.get(name)
            if known is not None and text.strip() in known.captions:
                gathered.counts["lines that repeat an image and its description left out"] += 1
                continue
            part = gathered.shares.split_of(product) if split == "train" else split
            gathered.add(name, [text], part, _record(name, category, score), where)
    if not gathered.items:
        raise DataError(f"the files of labels in {path} are empty", "fetch them again")
    gathered.counts["images of both splits kept only in test"] = len(moved)
    products = {PurePosixPath(name).parent for name in gathered.items}
    texts = {text for item in gathered.items.values() for text in item.captions}
    note = (
        f"{len(products):,} products, {len(texts):,} different descriptions: images of a product share theirs, "
        "and each counts for its own image"
    )
    return gathered.collection("fashion200k", root, "object", [note])
