"""Reading the files of a saved index back: arrays of known shape and type, lists of ids."""

from __future__ import annotations

from pathlib import Path
from tokenize import TokenError

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.reading import read_json


def load_array(
    path: Path, shape: tuple[int | None, ...], kind: type[np.generic], *, mapped: bool
) -> np.ndarray:
    """An array of a saved index."""
    try:
        array: np.ndarray = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (OSError, ValueError, EOFError, TokenError) as error:
        raise StorageError(f"{path} cannot be opened: {error}", "build the index again") from None
    if not isinstance(array, np.ndarray):
        raise StorageError(f"{path} is no array", "build the index again")
    fits = len(array.shape) == len(shape) and all(
        length in (None, got) for length, got in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != kind or not (array.flags.c_contiguous and array.flags.aligned):
        wanted = tuple("any" if length is None else length for length in shape)
        raise StorageError(
            f"{path}: {np.dtype(kind)} {wanted} expected, got {array.dtype} {array.shape}",
            "build the index again",
        )
    return array


def load_ids(path: Path) -> list[str]:
    """The ids of a saved index."""
    ids = read_json(path)
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise StorageError(f"{path} does not hold a list of ids", "build the index again")
    return ids
