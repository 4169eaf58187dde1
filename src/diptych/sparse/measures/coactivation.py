"""Dimension co-activation: how many terms a caption's and a picture's row have in common.

Source: Nguyen, Hendriksen, Yates and de Rijke, Multimodal learned sparse retrieval with probabilistic
expansion control, ECIR 2024 (thesis ch. 3, Definition 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.encoders.sparse_embeddings import canonical_rows
from diptych.metrics.paired import shares_of, t_test


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


# Whether two heads differ by more than chance in a value per caption (Exact@k, Semantic@k, overlap …).
#
# The thesis tests values per caption as if captions were drawn one by one (Tables 3.1 and 3.3: paired,
# two-tailed t-test; Bonferroni). Captions of one picture are not: by default what is independent is a picture
# with its captions, as in :func:`diptych.evaluation.compare`, which tests recalls.


@dataclass(frozen=True)
class PairedTest:
    """One difference of means.

    Attributes:
        first, second: the means.
        p: two-sided, of the paired t-test; None where it says nothing (one cluster, or one and the same
            difference everywhere).
        corrected: ``p`` times the number of tests that say something, at most 1.
    """

    first: float
    second: float
    p: float | None
    corrected: float | None

    @property
    def difference(self) -> float:
        """The first mean less the second."""
        return self.first - self.second


def paired_tests(
    pairs: Mapping[str, tuple[np.ndarray, np.ndarray]], cluster: np.ndarray | None
) -> dict[str, PairedTest]:
    """Paired two-tailed t-tests with Bonferroni's correction over all of them.

    Args:
        pairs: by name, values of the same queries by two systems, (n,) each.
        cluster: (n,) whole numbers from 0, the picture of each caption; None: every caption by itself, as
            published.
    """
    if not pairs:
        raise UsageError("no values to test", "give at least one pair")
    found: dict[str, tuple[float, float, float | None]] = {}
    for name, (first, second) in pairs.items():
        n = len(first) if cluster is None else len(cluster)
        if len(first) != n or len(second) != n or not n:
            raise MismatchError(
                f"{name}: {len(first)} and {len(second)} values of {n} queries", "compare the same captions"
            )
        if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
            raise NumericalError(f"{name}: a value is not finite", "leave out queries that have no value")
        of = np.arange(n) if cluster is None else cluster
        shares = shares_of(np.asarray(first) - np.asarray(second), of, int(of.max()) + 1)
        found[name] = (float(np.mean(first)), float(np.mean(second)), t_test([shares]))
    tested = sum(p is not None for _, _, p in found.values())
    return {
        name: PairedTest(first, second, p, None if p is None else min(1.0, p * tested))
        for name, (first, second, p) in found.items()
    }
