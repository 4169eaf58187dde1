"""Vectors of terms from which terms stand together in captions: positive PMI and its largest components."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array

_OVERSAMPLING = 16
_POWER_STEPS = 4
_NOTHING = 1e-10


def positive_pmi(terms: csr_array) -> csr_array:
    """(|V|, |V|) float64: max(0, ln(n · n_ij / (n_i · n_j))) of captions that contain both terms.

    The diagonal is that of a term with itself, ln(n / n_i): the rarer, the more it says. Church and Hanks
    1990; Levy and Goldberg 2014.

    Args:
        terms: (n, |V|), non-zero where a caption contains a term.
    """
    contains = csr_array(terms, copy=True).astype(np.float64)
    contains.data[:] = 1.0
    counts = np.asarray(contains.sum(axis=0)).ravel()
    together = csr_array(contains.T @ contains)
    inverse = np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)
    ratio = csr_array(diags_array(inverse) @ together @ diags_array(inverse))
    ratio.data = np.maximum(0.0, np.log(ratio.data * contains.shape[0]))
    ratio.eliminate_zeros()
    ratio.sort_indices()
    return ratio


def largest_components(matrix: csr_array, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (r,) of largest size and eigenvectors (n, r) of a symmetric matrix; r ≤ ``count``, n.

    By subspace iteration from a random start (Halko et al. 2011, algorithm 4.4), so the same seed gives
    the same components; the largest entry of each is positive.
    """
    size = matrix.shape[0]
    generator = np.random.default_rng(seed)
    basis = generator.standard_normal((size, min(size, count + _OVERSAMPLING)))
    for _ in range(_POWER_STEPS + 1):
        basis, _ = np.linalg.qr(matrix @ basis)
    values, inner = np.linalg.eigh(basis.T @ (matrix @ basis))
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    vectors = basis @ inner[:, order]
    if vectors.size:
        peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
        vectors = vectors * np.where(peaks < 0, -1.0, 1.0)
    return values[order], vectors


def term_vectors(terms: csr_array, width: int, seed: int, spread: float = 0.02) -> np.ndarray:
    """(|V|, width) float32 rows of one length: eigenvectors of the positive PMI times √|eigenvalue|.

    A term that stands in no caption, or in all, gets a random direction; with fewer than ``width`` components
    the last columns are 0.

    Args:
        terms: (n, |V|), which terms each caption contains.
    """
    size = terms.shape[1]
    vectors = np.zeros((size, width))
    values, components = largest_components(positive_pmi(terms), width, seed)
    sizes = np.abs(values)
    sizes[sizes <= _NOTHING * sizes.max(initial=0.0)] = 0.0  # noise, which the square root would raise
    vectors[:, : len(values)] = components * np.sqrt(sizes)
    lengths = np.linalg.norm(vectors, axis=1)
    lost = lengths <= _NOTHING * lengths.max(initial=0.0)
    vectors[lost] = np.random.default_rng([seed, 1]).standard_normal((int(lost.sum()), width))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: np.ndarray = (vectors / lengths * (spread * np.sqrt(width))).astype(np.float32)
    return scaled
