"""Dimension co-activation: how many terms a caption's and a picture's row have in common.

Source: Nguyen, Hendriksen, Yates and de Rijke, Multimodal learned sparse retrieval with probabilistic
expansion control, ECIR 2024 (thesis ch. 3, Definition 1).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError
from diptych.encoders.sparse_embeddings import canonical_rows


def flops(texts: csr_array, images: csr_array) -> float:
    """The mean over all pairs of how many terms both rows have: what scoring one pair costs (Eq. 3.1).

    The double sum is over terms of how many captions times how many pictures have them.

    Args:
        texts: (n, |V|) sparse rows of captions.
        images: (m, |V|) sparse rows of pictures, over the same terms.
    """
    texts, images = canonical_rows(texts, "text"), canonical_rows(images, "image")
    if texts.shape[1] != images.shape[1]:
        raise MismatchError(
            f"captions have rows of {texts.shape[1]} terms, pictures of {images.shape[1]}",
            "make both with the same head",
        )
    pairs = int(texts.shape[0]) * int(images.shape[0])
    if not pairs:
        raise DataError(f"{texts.shape[0]} captions and {images.shape[0]} pictures make no pair")
    return float(np.dot(_frequency(texts), _frequency(images)) / pairs)


def nonzeros(rows: csr_array) -> float:
    """The mean number of terms of a row."""
    rows = _some(rows)
    return int(rows.nnz) / int(rows.shape[0])


def empty_share(rows: csr_array) -> float:
    """The share of rows without any term: as queries they find nothing, as items they are never found."""
    return float(np.mean(np.diff(_some(rows).indptr) == 0))


def _frequency(rows: csr_array) -> np.ndarray:
    """(|V|,) how many rows have each term; whole numbers in float64, exact to 2**53."""
    return np.bincount(rows.indices, minlength=rows.shape[1]).astype(np.float64)


def _some(rows: csr_array) -> csr_array:
    rows = canonical_rows(rows)
    if not rows.shape[0]:
        raise DataError("a mean over no rows", "give at least one")
    return rows
