"""Sparse embeddings: canonical rows, what is written is read back, damage is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refused
from scipy.sparse import coo_array, csc_array, csr_array

from diptych.core.errors import DataError, NumericalError, StorageError
from diptych.encoders.embeddings import SparseEmbeddings, canonical_rows

TERMS = ("dog", "cat", "tree", "##s")


def made(rows: object, **said: object) -> SparseEmbeddings:
    matrix = canonical_rows(rows)
    fields = {"encoder": "head", "data": "photos", "kind": "image", "about": {"split": "test"}, **said}
    return SparseEmbeddings([f"p{row}" for row in range(matrix.shape[0])], matrix, TERMS, **fields)  # type: ignore[arg-type]


def test_duplicates_are_summed_columns_sorted_and_zeros_dropped() -> None:
    rows = csr_array(
        (np.array([1.0, 2.0, 0.0, 3.0]), np.array([3, 1, 2, 3]), np.array([0, 4, 4])), shape=(2, 4)
    )
    found = canonical_rows(rows)
    assert found.indices.tolist() == [1, 3]
    assert found.data.tolist() == [2.0, 4.0]
    assert found.indptr.tolist() == [0, 2, 2]
    assert (found.data.dtype, found.indices.dtype, found.indptr.dtype) == (np.float32, np.int32, np.int32)
    assert rows.nnz == 4, "what was given is left as it was"


@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(-4, 4, width=16)))
def test_any_matrix_keeps_its_numbers(dense: np.ndarray) -> None:
    for rows in (dense, coo_array(dense), csc_array(dense)):
        found = canonical_rows(rows)
        assert np.array_equal(found.toarray(), dense.astype(np.float32))
        assert found.has_canonical_format
        assert np.all(found.data != 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_row_that_is_not_finite_is_named(bad: float) -> None:
    refused(NumericalError, "row 1", canonical_rows, np.array([[0.0, 1.0], [bad, 0.0]]))


def test_rows_need_their_ids_and_terms() -> None:
    with pytest.raises(DataError, match="4 terms"):
        SparseEmbeddings(["a"], canonical_rows(np.ones((2, 4))), TERMS, "e", "d", "image", {})


@pytest.mark.parametrize(
    ("file", "damaged"),
    [
        ("indptr", [0, 900_000_000, 2]),
        ("indptr", [1, 1, 2]),
        ("indptr", [0, -5, 2]),
        ("indices", [0, 4]),
        ("indices", [-1, 2]),
    ],
)
def test_places_outside_of_the_rows_are_found(file: str, damaged: list[int], tmp_path: Path) -> None:
    folder = made(np.array([[1.0, 0, 0, 0], [0, 0, 2.0, 0]])).save(tmp_path / "e")
    kind = np.load(folder / f"{file}.npy").dtype
    np.save(folder / f"{file}.npy", np.array(damaged, dtype=kind))
    refused(StorageError, "row starts do not ascend|beyond its 4 terms", SparseEmbeddings.open, folder)
