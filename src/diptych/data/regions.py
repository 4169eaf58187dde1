"""Region features of images, computed elsewhere: rows of .npy files, memory-mapped.

A file holds (n, regions, d), or (n, d) when an image is one vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.errors import DataError, ImageError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.reading import map_array, read_text
from diptych.data.columns import first_duplicate

if TYPE_CHECKING:
    from PIL.Image import Image

    from diptych.data.collection import ImageSource


def open_regions(path: Path | str) -> np.ndarray:
    """Memory-map a file of region features: (n, regions, d), or (n, d)."""
    path = Path(path)
    rows = map_array(path, error=DataError, fix="save it with np.save")
    if rows.ndim not in (2, 3) or rows.dtype.kind != "f":
        raise DataError(
            f"{path} holds {rows.dtype} of shape {rows.shape}, no region features",
            "expected floating-point numbers of shape (images, regions, features) or (images, features)",
        )
    return rows


class RegionSource:
    """Region features of images, and their pixels where there are any.

    Args:
        arrays: (n, regions, d) or (n, d) each, all of one regions and d; rows count through them in
            order.
        images: where the images of the same source rows are; None when it is not known.
    """

    def __init__(
        self,
        arrays: Sequence[np.ndarray],
        name: str,
        images: ImageSource | None = None,
        rows: np.ndarray | None = None,
    ) -> None:
        self.name = name
        self.images = images
        self._arrays = arrays
        self._rows = rows
        self._starts = np.concatenate([[0], np.cumsum([len(array) for array in arrays])])
        shapes = sorted({(array.shape[1:] if array.ndim == 3 else (1, *array.shape[1:])) for array in arrays})
        if len(shapes) != 1:
            raise DataError(
                f"{name} holds region features of different shapes: {shapes}", "extract them anew"
            )
        self.shape: tuple[int, ...] = shapes[0]

    def regions(self, row: int) -> np.ndarray:
        """(regions, d) float32 of source row ``row``; one vector per image is one region."""
        if self._rows is not None:
            row = int(self._rows[row])
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        values = np.asarray(self._arrays[part][row - self._starts[part]], dtype=np.float32)
        return values.reshape(self.shape)

    def read(self, row: int) -> Image:
        if self.images is None:
            raise ImageError(
                f"{self.name} holds region features and no images", "use an encoder with a region tower"
            )
        return self.images.read(row)

    def content(self, row: int) -> str:
        return fingerprint_arrays({"regions": self.regions(row)})


def region_rows(names: Sequence[str], regions: np.ndarray, ids: Path | str | None, what: str) -> np.ndarray:
    """(n_images,) int64: the row of each image's features.

    Args:
        regions: (rows, …) features.
        ids: a text file with one image per line, in the order of ``regions``, named by its file with
            or without folder and ending; None when ``regions`` are in the order of ``names``.
    """
    if ids is None:
        if len(regions) != len(names):
            raise DataError(
                f"{what} holds features of {len(regions):,} images, the data has {len(names):,}",
                "give a file with one image name per row with --reader-option region_ids=FILE",
            )
        return np.arange(len(names), dtype=np.int64)
    lines = read_text(ids, error=DataError, fix="give one image name per line").split("\n")
    listed = [PurePosixPath(line.strip()).stem for line in lines if line.strip()]
    if len(listed) != len(regions):
        raise DataError(
            f"{ids} names {len(listed):,} images, {what} holds features of {len(regions):,}",
            "one image name per row of the features",
        )
    known = {stem: row for row, stem in enumerate(listed)}
    if (twice := first_duplicate(listed)) is not None:
        raise DataError(f"{ids} names {twice!r} twice, the second time in line {known[twice] + 1}")
    stems = [PurePosixPath(name).stem for name in names]
    missing = [name for name, stem in zip(names, stems, strict=True) if stem not in known]
    if missing:
        raise DataError(
            f"{ids} does not name {len(missing):,} of {len(names):,} images, the first: {missing[0]}",
            "extract their features too, or leave the images out of the data",
        )
    return np.asarray([known[stem] for stem in stems], dtype=np.int64)
