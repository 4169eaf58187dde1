"""Word vectors that somebody else learned (GloVe, word2vec), read from an .npz file."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from diptych.core.errors import StorageError


def read_word_vectors(path: Path | str, setting: str) -> tuple[dict[str, int], np.ndarray]:
    """The rows of words and the vectors of an .npz with ``words`` (n,) and ``vectors`` (n, width).

    Returns:
        Word → row, and (n, width) float32.
    """
    try:
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as file:
            rows = {str(word): row for row, word in enumerate(file["words"])}
            words, vectors = len(file["words"]), np.asarray(file["vectors"], dtype=np.float32)
    except FileNotFoundError:
        raise StorageError(f"{path} does not exist", f"check {setting}") from None
    except (OSError, ValueError, KeyError, EOFError, TypeError, BadZipFile) as error:  # TypeError: an .npy
        raise StorageError(
            f"{path} is not a file of word vectors: {error}", "an .npz with 'words' and 'vectors'"
        ) from None
    if vectors.ndim != 2 or len(vectors) != words:
        raise StorageError(
            f"{path} is not a file of word vectors: {words} words, vectors of shape {vectors.shape}",
            "an .npz with as many rows in 'vectors' as there are 'words'",
        )
    return rows, vectors
