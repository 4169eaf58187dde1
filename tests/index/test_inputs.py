"""What comes in: engines and options by name, ids, dense and sparse vectors, rows and ids that grow."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from scipy.sparse import coo_array, csc_array, csr_array

from diptych.core.errors import (
    DataError,
    MismatchError,
    NumericalError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.index import ENGINES, Option, build_index
from diptych.index.sparse_rows import SparseRows, sparse_vectors
from diptych.index.vectors import check_ids, check_k, count_rows, dense_vectors, row_norms

ROWS = [[0, 2, 0], [0, 0, 0], [1, 0, 3]]


def test_options_are_resolved_whole():
    hnsw = ENGINES.get("hnsw")
    assert hnsw.resolve({"m": 8}) == {"m": 8, "ef_construction": 100, "ef_search": 128, "threads": 1}
    stored = hnsw.resolve({"ef_search": 40})
    assert hnsw.resolve_search(stored, {}) == {"ef_search": 40}
    assert hnsw.resolve_search(stored, {"ef_search": 7}) == {"ef_search": 7}


def test_options_refused():
    hnsw = ENGINES.get("hnsw")
    with pytest.raises(UnknownNameError, match="unknown option of index engine hnsw 'ef_serach'"):
        hnsw.resolve({"ef_serach": 3})
    refused(UnknownNameError, "known: ef_search", hnsw.resolve_search, hnsw.resolve({}), {"m": 3})
    refused(UsageError, "m=1 is below 2", hnsw.resolve, {"m": 1})
    refused(UsageError, "m='8' is not of type int", hnsw.resolve, {"m": "8"})
    refused(UsageError, "m=True is not of type int", hnsw.resolve, {"m": True})
    inverted = ENGINES.get("inverted")
    refused(UsageError, "hub_share=True is not of type float", inverted.resolve, {"hub_share": True})
    whole = inverted.resolve({"hub_share": 1})["hub_share"]
    assert (whole, type(whole)) == (1.0, float)
    assert inverted.resolve({}) == {"hub_share": 0.05}
    for value in (-1.0, float("nan")):
        refused(UsageError, "below 0", Option("share", 0.5, "a share", minimum=0).check, value)


def test_ids():
    assert check_ids(("a", "b"), 2) == ["a", "b"]
    refused(DataError, "id 7 is a int", check_ids, ["b", 7], 2)
    for k in (0, -1, 1.0, "3", True, None):
        refused(UsageError, "cannot be requested", check_k, k)
    assert check_k(np.int64(3)) == 3


def test_dense_vectors_refused():
    refused(UsageError, r"pass vector\[None\]", dense_vectors, np.ones(3), 3, "query")
    refused(UsageError, "real numbers", dense_vectors, [["a"]], 1, "query")
    refused(UsageError, "shape", count_rows, np.ones((1, 2, 3)), "query")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_names_the_id(value):
    rows = np.zeros((20_000, 2), dtype=np.float32)
    rows[17_000, 1] = value
    with pytest.raises(NumericalError, match=r"item vector 'i17000' \(row 17000\) is not finite"):
        row_norms(rows, [f"i{row}" for row in range(20_000)], "item")


def test_too_long_for_float32_says_so():
    refused(NumericalError, "too long", row_norms, dense_vectors([[3e19, 0]], 2, "query"), None, "query")
    refused(NumericalError, "not finite", row_norms, dense_vectors([[1e300, 0]], 2, "query"), None, "query")


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


def test_refused():
    refused(UsageError, r"shape \(n, width\), got \(3,\)", sparse_vectors, [1, 2, 3], 3, None, "query")
    refused(UsageError, "must be real numbers", sparse_vectors, [["a", "b"]], 2, None, "query")
    with pytest.raises(DataError, match=r"'b' \(row 1\) has a negative weight \(-2 is the lowest\)"):
        sparse_vectors(csr_array([[1.0, 0], [0, -2]]), 2, ["a", "b"], "item")
    for bad in (np.inf, -np.inf):
        refused(NumericalError, "is not finite", sparse_vectors, [[1, 0], [0, bad]], 2, None, "query")
    with pytest.raises(NumericalError, match=r"'b' \(row 1\) has a weight above 1e\+15"):
        sparse_vectors([[1, 0], [0, 1e16]], 2, ["a", "b"], "item")
    with pytest.raises(UsageError, match="query vectors are sparse, the engine takes dense ones"):
        dense_vectors(csr_array(ROWS), 3, "query")


@pytest.mark.parametrize(
    ("starts", "columns"),
    [
        ([0, 2, 3], [0, 1, 3]),
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


@pytest.mark.parametrize("column", [-1, 3])
def test_columns_of_a_damaged_file(column):
    def rows(last):
        return SparseRows(csr_array((np.ones(2), np.array([0, last]), np.array([0, 2])), shape=(1, 3)))

    rows(2).check_columns()
    refused(StorageError, f"columns from .*{column}.*, those of 3 terms expected", rows(column).check_columns)


def test_the_exact_engine_of_each_kind_is_the_default(make_embeddings, make_bags):
    assert build_index(make_embeddings()).engine_name == "exact"
    assert build_index(make_bags()).engine_name == "inverted"


def test_the_wrong_kind_is_refused_and_suitable_engines_are_named(make_embeddings, make_bags):
    with pytest.raises(
        UsageError, match=r"inverted engine indexes sparse vectors, these are dense \(200 of.*exact"
    ):
        build_index(make_embeddings(), "inverted")
    for name in ("exact", "hnsw"):
        with pytest.raises(UsageError, match=f"the {name} engine indexes dense.*cascade, impacts, inverted"):
            build_index(make_bags(), name)


def test_another_vocabulary_is_refused(make_bags):
    index = build_index(make_bags(width=5))
    query = np.ones((1, 5))
    assert index.search(query, 1, vocabulary=index.about["vocabulary"]).found.tolist() == [1]
    for call in (
        lambda: index.check_origin(vocabulary="other"),
        lambda: index.search(query, 1, vocabulary="other"),
        lambda: index.search_exact(query, 1, vocabulary="other"),
        lambda: index.add(["new"], query, vocabulary="other"),
    ):
        refused(MismatchError, r"an index opened with another vocabulary: .* over other", call)
    assert "new" not in index


def test_a_dense_index_has_no_vocabulary(make_embeddings):
    index = build_index(make_embeddings())
    assert index.terms == ()
    with pytest.raises(MismatchError, match="those of the index over none"):
        index.search(np.ones((1, 16)), 1, vocabulary="any")
