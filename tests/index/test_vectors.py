from __future__ import annotations

import numpy as np
import pytest

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.index.vectors import check_ids, check_k, count_rows, dense_vectors, row_norms


def test_ids():
    assert check_ids(("a", "b"), 2) == ["a", "b"]
    with pytest.raises(DataError, match="2 ids for 3 vectors"):
        check_ids(["a", "b"], 3)
    with pytest.raises(DataError, match="'a' occurs twice"):
        check_ids(["b", "a", "c", "a"], 4)
    with pytest.raises(DataError, match="id 7 is a int"):
        check_ids(["b", 7], 2)  # type: ignore[list-item]
    with pytest.raises(UsageError, match="the string 'abc'"):
        check_ids("abc", 3)


@pytest.mark.parametrize("k", [0, -1, 1.0, "3", True, None])
def test_k_is_a_whole_number_from_1(k):
    with pytest.raises(UsageError, match="cannot be asked for"):
        check_k(k)


def test_k_of_numpy():
    assert check_k(np.int64(3)) == 3


def test_dense_vectors_are_not_copied_without_need():
    rows = np.ones((2, 3), dtype=np.float32)
    assert np.shares_memory(dense_vectors(rows, 3, "item"), rows)
    assert dense_vectors([[1, 2, 3]], 3, "item").dtype == np.float32


def test_dense_vectors_refused():
    with pytest.raises(MismatchError, match="query vectors have width 4, the index holds vectors of width 3"):
        dense_vectors(np.ones((2, 4)), 3, "query")
    with pytest.raises(UsageError, match=r"pass vector\[None\]"):
        dense_vectors(np.ones(3), 3, "query")
    with pytest.raises(UsageError, match="real numbers"):
        dense_vectors([["a"]], 1, "query")
    with pytest.raises(UsageError, match="shape"):
        count_rows(np.ones((1, 2, 3)), "query")


def test_norms():
    rows = np.array([[3, 4], [0, 0]], dtype=np.float32)
    assert row_norms(rows, None, "item").tolist() == [5, 0]
    assert row_norms(rows[:0], None, "item").shape == (0,)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_names_the_id(value):
    rows = np.zeros((20_000, 2), dtype=np.float32)
    rows[17_000, 1] = value
    with pytest.raises(NumericalError, match=r"item vector 'i17000' \(row 17000\) is not finite"):
        row_norms(rows, [f"i{row}" for row in range(20_000)], "item")


def test_too_long_for_float32_says_so():
    with pytest.raises(NumericalError, match="too long"):
        row_norms(dense_vectors([[3e19, 0]], 2, "query"), None, "query")
    with pytest.raises(NumericalError, match="not finite"):
        row_norms(dense_vectors([[1e300, 0]], 2, "query"), None, "query")
