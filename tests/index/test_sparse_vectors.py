from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.index.sparse_rows import sparse_vectors
from diptych.index.vectors import dense_vectors

ROWS = [[0, 2, 0], [0, 0, 0], [1, 0, 3]]


@pytest.mark.parametrize("kind", [np.array, csr_array, csc_array, coo_array, list])
def test_any_form_becomes_the_same_canonical_rows(kind):
    rows = sparse_vectors(kind(ROWS), 3, None, "query")
    assert isinstance(rows, csr_array)
    assert rows.dtype == np.float32
    assert rows.has_canonical_format
    assert (rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()) == (
        [0, 1, 1, 3],
        [1, 0, 2],
        [2, 1, 3],
    )


def test_columns_out_of_order_twice_and_zero():
    unsorted = csr_array(
        (np.array([1.0, 2.0, 4.0, 0.0]), np.array([2, 0, 2, 1]), np.array([0, 4])), shape=(1, 3)
    )
    rows = sparse_vectors(unsorted, 3, None, "query")
    assert (rows.indices.tolist(), rows.data.tolist()) == ([0, 2], [2, 5])
    assert unsorted.indices.tolist() == [2, 0, 2, 1]  # the caller's are left as they were


def test_canonical_rows_are_not_copied():
    given = csr_array(np.array(ROWS, dtype=np.float32))
    assert np.shares_memory(sparse_vectors(given, 3, None, "query").data, given.data)


def test_refused():
    with pytest.raises(MismatchError, match="query vectors have width 3, the index holds vectors of width 4"):
        sparse_vectors(csr_array(ROWS), 4, None, "query")
    with pytest.raises(UsageError, match=r"shape \(n, width\), got \(3,\)"):
        sparse_vectors([1, 2, 3], 3, None, "query")
    with pytest.raises(UsageError, match="must be real numbers"):
        sparse_vectors([["a", "b"]], 2, None, "query")
    with pytest.raises(DataError, match=r"'b' \(row 1\) has a negative weight \(-2 is the lowest\)"):
        sparse_vectors(csr_array([[1.0, 0], [0, -2]]), 2, ["a", "b"], "item")
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(NumericalError, match=r"query vector \(row 1\) is not finite"):
            sparse_vectors([[1, 0], [0, bad]], 2, None, "query")
    with pytest.raises(NumericalError, match=r"'b' \(row 1\) has a weight above 1e\+15"):
        sparse_vectors([[1, 0], [0, 1e16]], 2, ["a", "b"], "item")
    with pytest.raises(UsageError, match="query vectors are sparse, the engine takes dense ones"):
        dense_vectors(csr_array(ROWS), 3, "query")


@pytest.mark.parametrize(
    ("starts", "columns"),
    [
        ([0, 2, 3], [0, 1, 7]),
        ([0, 2, 3], [0, -1, 2]),
        ([0, 2, 3], [0, 1, 400_000_000]),
        ([0, 4, 3], [0, 1, 2]),
    ],
)
@pytest.mark.parametrize("kind", [csr_array, csc_array])
def test_columns_and_starts_that_lead_elsewhere_in_memory(kind, starts, columns):
    """SciPy does not look at them; compiled code would read, and write, where they lead."""
    parts = (
        np.ones(3, dtype=np.float32),
        np.array(columns, dtype=np.int32),
        np.array(starts, dtype=np.int32),
    )
    shape = (2, 3) if kind is csr_array else (3, 2)
    with pytest.raises(DataError, match="not those of a sparse array of shape"):
        sparse_vectors(kind(parts, shape=shape), shape[1], None, "query")


def test_rows_changed_behind_scipys_back():
    rows = csr_array(np.array(ROWS, dtype=np.float32))
    rows.data = rows.data[:1]
    with pytest.raises(DataError, match="not those of a sparse array"):
        sparse_vectors(rows, 3, None, "query")


def test_half_precision():
    assert sparse_vectors(np.array(ROWS, dtype=np.float16), 3, None, "query").data.tolist() == [2, 1, 3]
