"""Arrays in one ``npz`` file, wholly there or not at all; never pickled."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import StorageError
from diptych.core.files import atomic_path

if TYPE_CHECKING:
    import numpy as np


def write_arrays(file: Path, **arrays: np.ndarray) -> None:
    """Write an ``npz`` file, wholly or not at all; the same arrays are the same bytes."""
    import numpy as np

    with atomic_path(file) as temporary, open(temporary, "wb") as handle:
        np.savez(handle, allow_pickle=False, **arrays)


def read_arrays(file: Path, names: tuple[str, ...]) -> list[np.ndarray]:
    """Arrays of an ``npz`` file."""
    import numpy as np

    try:
        # From memory: NumPy leaves a file open that turns out to be no archive.
        with np.load(BytesIO(file.read_bytes()), allow_pickle=False) as held:
            return [held[name] for name in names]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise StorageError(
            f"{file} cannot be read: {error}",
            "it is damaged: remove it, and give the command that made it once more",
        ) from None
