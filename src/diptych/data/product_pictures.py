"""Pictures of products that lie in a folder by their product's id, as the downloader writes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.data.images import PICTURE_ENDINGS, FolderSource
from diptych.data.products import picture_name

MISSING = ("none", "error", "skip")
"""What becomes of a product without a picture: kept without one, an error, left out."""


def check_missing(missing: str) -> None:
    """See that an option ``missing`` is one of :data:`MISSING`."""
    if missing not in MISSING:
        raise UsageError(f"missing is {missing!r}", f"one of {', '.join(MISSING)}")


def picture_folder(given: Path | str | None, beside: Path) -> Path:
    """The folder of pictures: as given, else ``images/`` beside the data, which need not be there."""
    if given is None:
        return beside / "images"
    folder = Path(given)
    if not folder.is_dir():
        raise DataError(f"the image folder {folder} does not exist", "check --images")
    return folder


def find_pictures(
    folder: Path, ids: Sequence[str], missing: Literal["none", "error", "skip"] = "none"
) -> tuple[FolderSource, np.ndarray, list[str]]:
    """The picture file of each product.

    A file is a product's when its name without the ending is :func:`~diptych.data.products.picture_name` of the id, or
    else the id itself (if that holds no ``~``: it could be the name of another one's picture); of several endings the
    first in alphabetical order counts.

    Returns:
        The pictures that were found, (n,) int64 the row of each product's picture among them or -1, and notes.
    """
    files: dict[str, str] = {}
    if folder.is_dir():
        with os.scandir(folder) as entries:
            for entry in entries:
                stem, _, ending = entry.name.rpartition(".")
                if stem and ending.lower() in PICTURE_ENDINGS and entry.name < files.get(stem, "\U0010ffff"):
                    files[stem] = entry.name
    rows = np.full(len(ids), -1, dtype=np.int64)
    names: list[str] = []
    lost: list[str] = []
    for place, product in enumerate(ids):
        name = files.get(picture_name(product)) or (files.get(product) if "~" not in product else None)
        if name is None:
            lost.append(product)
        else:
            rows[place] = len(names)
            names.append(name)
    if lost and missing == "error":
        raise DataError(
            f"{len(lost):,} of {len(ids):,} products have no picture in {folder}, the first: {lost[0]}",
            "fetch them with diptych categories download, or keep them without one with --reader-option missing=none",
        )
    what = "left out" if missing == "skip" else "kept without one"
    notes = (
        [f"{len(lost):,} of {len(ids):,} products have no picture in {folder.name}/: {what}"] if lost else []
    )
    return FolderSource(folder, names), rows, notes
