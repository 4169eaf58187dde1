from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.metrics.sparse_products import SparseProducts
from diptych.sparse.explain import Contribution, explain_match, in_words, marked_terms, readable, top_terms

TERMS = ["[CLS]", "dog", "mo", "##ped", "red", "##s"]


def sparse(*rows: list[float]) -> csr_array:
    return csr_array(np.array(rows, dtype=np.float32))


def test_top_terms() -> None:
    row = sparse([9, 0, 2, 3, 2, 0])
    assert top_terms(row, TERMS, 3) == [("[CLS]", 9), ("##ped", 3), ("mo", 2)]
    assert top_terms(row, TERMS, 9, special={0}) == [("##ped", 3), ("mo", 2), ("red", 2)]
    assert top_terms(sparse([0] * 6), TERMS, 3) == []


def test_own_terms_are_marked() -> None:
    row, own = sparse([9, 1, 2, 3, 2, 0]), sparse([0, 0, 1, 1, 0, 1])
    words = iter([("moped", ["mo", "##ped"])])
    assert marked_terms(row, own, TERMS, 4, {0}, words) == [
        ("-ped (moped)", 3, True),
        ("mo", 2, True),
        ("red", 2, False),
        ("dog", 1, False),
    ]
    assert marked_terms(row, None, TERMS, 2, {0}) == [("-ped", 3, None), ("mo", 2, None)]


def test_a_match_by_hand() -> None:
    query, item = sparse([1, 2, 0, 3, 1, 0]), sparse([2, 0, 5, 2, 2, 1])
    assert explain_match(query, item, TERMS) == [
        Contribution("##ped", 3, 2, 6),
        Contribution("[CLS]", 1, 2, 2),
        Contribution("red", 1, 2, 2),
    ]
    assert explain_match(query, sparse([0, 0, 1, 0, 0, 0]), TERMS) == []


@given(seed=st.integers(0, 2**32))
def test_contributions_add_up_to_the_score(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = csr_array((random.exponential(size=(2, 40)) * (random.random((2, 40)) < 0.6)).astype(np.float32))
    terms = [str(column) for column in range(40)]
    found = explain_match(rows[[0]], rows[[1]], terms)
    score = SparseProducts(rows[[0]], rows[[1]]).pairs(np.array([0]), np.array([0]))[0]
    in_order = sorted(found, key=lambda one: int(one.term))
    total = 0.0
    for one in in_order:
        total += one.contribution
    assert total == score  # the same bits
    assert [one.contribution for one in found] == sorted((one.contribution for one in found), reverse=True)


def test_pieces_of_a_word_are_put_together() -> None:
    found = [
        Contribution("dog", 1, 3, 3.0),
        Contribution("mo", 1, 2, 2.0),
        Contribution("##ped", 1, 1.5, 1.5),
        Contribution("##s", 1, 1, 1.0),
    ]
    words = [("red", ["red"]), ("moped", ["mo", "##ped"]), ("mos", ["mo", "##s"])]
    assert in_words(found, words) == [
        Contribution("moped", 2, 3.5, 3.5),
        Contribution("dog", 1, 3, 3.0),
        Contribution("mos", 1, 1, 1.0),
    ]
    assert in_words(found, []) == found
    # a term that is written like a word in pieces stays apart
    alike = [Contribution("moped", 1, 1, 1.0), Contribution("mo", 1, 2, 2.0)]
    assert in_words(alike, words) == [Contribution("moped", 1, 2, 2.0), Contribution("moped", 1, 1, 1.0)]


def test_readable() -> None:
    assert readable("dog") == "dog"
    assert readable("##ped") == "-ped"
    assert readable("##ped", [("dog", ["dog"]), ("moped", ["mo", "##ped"])]) == "-ped (moped)"


def test_bad_input() -> None:
    with pytest.raises(DataError, match=r"the row has shape \(2, 6\)"):
        top_terms(sparse([1] * 6, [1] * 6), TERMS, 3)
    with pytest.raises(MismatchError, match="6 terms for the query of 5"):
        explain_match(sparse([1] * 5), sparse([1] * 5), TERMS)
    with pytest.raises(UsageError, match="k is 0"):
        top_terms(sparse([1] * 6), TERMS, 0)
