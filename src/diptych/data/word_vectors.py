"""Word vectors that somebody else learned (GloVe, word2vec), read from an .npz file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.reading import file_errors, read_arrays


def read_word_vectors(path: Path | str, setting: str) -> tuple[dict[str, int], np.ndarray]:
    """Return the rows of words and the vectors of an .npz with ``words`` (n,) and ``vectors`` (n, width).

    Returns:
        Word → row, and (n, width) float32.
    """
    noun, fix = "a file of word vectors", f"check {setting}: an .npz with 'words' and 'vectors'"
    with file_errors(path, fix=fix, noun=noun):
        names, numbers = read_arrays(path, ("words", "vectors"), fix=fix, noun=noun).values()
        rows = {str(word): row for row, word in enumerate(names)}
        words, vectors = len(names), np.asarray(numbers, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != words:
        raise StorageError(
            f"{path} is not a file of word vectors: {words} words, vectors of shape {vectors.shape}",
            "an .npz with as many rows in 'vectors' as there are 'words'",
        )
    return rows, vectors
