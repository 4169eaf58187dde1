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
from diptych.index.vectors import check_ids, check_k, count_rows, dense_vectors, largest_norm

ROWS = [[0, 2, 0], [0, 0, 0], [1, 0, 3]]


def test_options():
    hnsw, inverted = ENGINES.get("hnsw"), ENGINES.get("inverted")
    stored = hnsw.resolve({"m": 8, "ef_search": 40})
    assert stored == {"m": 8, "ef_construction": 100, "ef_search": 40, "threads": 1}
    assert (hnsw.resolve_search(stored, {}), inverted.resolve({})) == ({"ef_search": 40}, {"hub_share": 0.05})
    assert hnsw.resolve_search(stored, {"ef_search": 7}) == {"ef_search": 7}
    whole = inverted.resolve({"hub_share": 1})["hub_share"]
    assert (whole, type(whole)) == (1.0, float)
    for error, message, call, *given in (
        (UnknownNameError, "unknown option of index engine hnsw 'ef_serach'", hnsw.resolve, {"ef_serach": 3}),
        (UnknownNameError, "known: ef_search", hnsw.resolve_search, stored, {"m": 3}),
        (UsageError, "m=1 is below 2", hnsw.resolve, {"m": 1}),
        (UsageError, "m='8' is not of type int", hnsw.resolve, {"m": "8"}),
        (UsageError, "m=True is not of type int", hnsw.resolve, {"m": True}),
        (UsageError, "hub_share=True is not of type float", inverted.resolve, {"hub_share": True}),
        *(
            (UsageError, "below 0", Option("share", 0.5, "a share", minimum=0).check, value)
            for value in (-1.0, float("nan"))
        ),
    ):
        refused(error, message, call, *given)


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
    for value, said in ((3e19, "too long"), (1e300, "not finite")):  # for float32
        refused(NumericalError, said, largest_norm, dense_vectors([[value, 0]], 2, "query"), None, "query")
    for value in (np.nan, np.inf, -np.inf):
        rows, names = np.zeros((20_000, 2), dtype=np.float32), [f"i{row}" for row in range(20_000)]
        rows[17_000, 1] = value
        said = r"item vector 'i17000' \(row 17000\) is not finite"
        refused(NumericalError, said, largest_norm, rows, names, "item")


def test_any_form_becomes_the_same_canonical_rows():
    for kind in (np.array, csr_array, csc_array, coo_array, list):
        rows = sparse_vectors(kind(ROWS), 3, None, "query")
        assert (type(rows), rows.dtype, rows.has_canonical_format) == (csr_array, np.float32, True)
        parts = rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()
        assert parts == ([0, 1, 1, 3], [1, 0, 2], [2, 1, 3])


def test_refused():
    refused(UsageError, r"shape \(n, width\), got \(3,\)", sparse_vectors, [1, 2, 3], 3, None, "query")
    refused(UsageError, "must be real numbers", sparse_vectors, [["a", "b"]], 2, None, "query")
    with pytest.raises(DataError, match=r"'b' \(row 1\) has a negative weight \(-2\)"):
        sparse_vectors(csr_array([[1.0, 0], [0, -2]]), 2, ["a", "b"], "item")
    for bad in (np.inf, -np.inf):
        refused(NumericalError, "is not finite", sparse_vectors, [[1, 0], [0, bad]], 2, None, "query")
    with pytest.raises(NumericalError, match=r"'b' \(row 1\) has a weight above 1e\+15"):
        sparse_vectors([[1, 0], [0, 1e16]], 2, ["a", "b"], "item")
    with pytest.raises(UsageError, match="query vectors are sparse, the engine takes dense ones"):
        dense_vectors(csr_array(ROWS), 3, "query")


def test_columns_and_starts_that_lead_elsewhere_in_memory():
    """SciPy does not look at them; compiled code would read, and write, where they lead."""
    wrong = [([0, 2, 3], [0, 1, 3]), ([0, 2, 3], [0, -1, 2])]
    wrong += [([0, 2, 3], [0, 1, 400_000_000]), ([0, 4, 3], [0, 1, 2])]
    for starts, columns in wrong:
        parts = np.ones(3, np.float32), np.array(columns, np.int32), np.array(starts, np.int32)
        for kind, shape in ((csr_array, (2, 3)), (csc_array, (3, 2))):
            with pytest.raises(DataError, match="not those of a sparse array of shape"):
                sparse_vectors(kind(parts, shape=shape), shape[1], None, "query")


def test_columns_of_a_corrupt_file():
    def rows(last):
        return SparseRows.of(csr_array((np.ones(2), np.array([0, last]), np.array([0, 2])), shape=(1, 3)))

    rows(2).check_columns()
    for column in (-1, 3):
        said = f"columns from .*{column}.*, those of 3 terms expected"
        refused(StorageError, said, rows(column).check_columns)


def test_the_exact_engine_of_each_kind_is_the_default_and_the_wrong_kind_is_refused(
    make_embeddings, make_bags
):
    assert build_index(make_embeddings()).engine_name == "exact"
    assert build_index(make_bags()).engine_name == "inverted"
    said = r"inverted engine indexes sparse vectors, these are dense \(200 of.*exact"
    refused(UsageError, said, build_index, make_embeddings(), "inverted")
    for name in ("exact", "hnsw"):
        said = f"the {name} engine indexes dense.*cascade, impacts, inverted"
        refused(UsageError, said, build_index, make_bags(), name)


def test_another_vocabulary_is_refused(make_embeddings, make_bags):
    index = build_index(make_bags(width=5))
    query = np.ones((1, 5))
    assert index.search(query, 1, vocabulary=index.about["vocabulary"]).found.tolist() == [1]
    for call, *given in (
        (index.check_origin,),
        (index.search, query, 1),
        (index.search_exact, query, 1),
        (index.add, ["new"], query),
    ):
        said = r"an index opened with another vocabulary: .* over other"
        refused(MismatchError, said, call, *given, vocabulary="other")
    assert "new" not in index
    dense = build_index(make_embeddings())
    assert dense.terms == ()
    said = "those of the index over none"
    refused(MismatchError, said, dense.search, np.ones((1, 16)), 1, vocabulary="any")
