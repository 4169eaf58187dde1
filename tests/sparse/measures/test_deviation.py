from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.sparse.measures import CaptionWords, exact_at, leading_terms, semantic_at

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "d2s_metrics.json").read_text())


def sparse(values: object) -> csr_array:
    return csr_array(np.asarray(values, dtype=np.float32))


def ones(ids: list[list[int]], width: int) -> csr_array:
    dense = np.zeros((len(ids), width))
    for row, columns in enumerate(ids):
        dense[row, columns] = 1
    return sparse(dense)


ROWS = sparse([[0, 3, 1, 0, 3, 2], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]])
SAID = ones([[1, 2], [0], [3]], 6)


def test_leading_terms_by_hand() -> None:
    assert leading_terms(ROWS, 3).tolist() == [[1, 4, 5], [5, -1, -1], [-1, -1, -1]]
    assert leading_terms(ROWS, 3, left_out=[1, 5]).tolist() == [[4, 2, -1], [-1] * 3, [-1] * 3]
    filled = leading_terms(ROWS, 5, positive_only=False)
    assert filled.tolist() == [[1, 4, 5, 2, 0], [5, 0, 1, 2, 3], [0, 1, 2, 3, 4]]
    every = leading_terms(ROWS, 7, positive_only=False, left_out=[0, 2])
    assert every.tolist() == [[1, 4, 5, 3, -1, -1, -1], [5, 1, 3, 4, -1, -1, -1], [1, 3, 4, 5, -1, -1, -1]]


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 9), positive_only=st.booleans())
def test_leading_terms_as_a_stable_sort(seed: int, k: int, positive_only: bool) -> None:
    random = np.random.default_rng(seed)
    dense = random.integers(0, 3, (5, 7)) * (random.random((5, 7)) < 0.6)
    out = set(random.choice(7, random.integers(0, 3), replace=False).tolist())
    for row, found in zip(
        dense, leading_terms(sparse(dense), k, left_out=out, positive_only=positive_only), strict=True
    ):
        order = [int(column) for column in np.argsort(-row, kind="stable") if column not in out]
        if positive_only:
            order = [column for column in order if row[column] > 0]
        assert found.tolist() == (order + [-1] * k)[:k]


@pytest.mark.parametrize("k", [1, 3, 5, 10, 20])
@pytest.mark.parametrize("positive_only", [True, False])
def test_golden(k: int, positive_only: bool) -> None:
    rows = sparse(GOLDEN["sparse_text"])
    said = ones(GOLDEN["caption_token_ids"], rows.shape[1])
    vectors = np.array(GOLDEN["static_embeddings"])
    suffix = f"{'_pos' if positive_only else ''}@{k}"
    exact = exact_at(rows, said, k, positive_only=positive_only)
    assert exact == pytest.approx(GOLDEN["results"][f"exact{suffix}"], abs=1e-12)
    semantic = semantic_at(rows, said, vectors, k, positive_only=positive_only)
    assert semantic == pytest.approx(GOLDEN["results"][f"semantic{suffix}"], abs=1e-9)


def test_exact_by_hand() -> None:
    assert exact_at(ROWS, SAID, 2).tolist() == [0.5, 0, 0]
    assert exact_at(ROWS, SAID, 4).tolist() == [0.5, 0, 0]
    assert exact_at(ROWS, SAID, 3, left_out=[4, 5]).tolist() == pytest.approx([2 / 3, 0, 0])
    # terms without weight would count, in the order of the vocabulary
    assert exact_at(ROWS, SAID, 4, positive_only=False).tolist() == [0.5, 0.25, 0.25]


def test_semantic_by_hand() -> None:
    s = np.sqrt(0.5)
    vectors = np.array([[1, 0], [0, 0], [2, 0], [0, 1], [3, 3], [0, -1]], dtype=np.float32)
    # row 0: leading 1, 4, 5; said 1 and 2. 1 is said (1, though it has no vector); 4 is near 2; 5 is at 90°
    assert semantic_at(ROWS, SAID, vectors, 3) == pytest.approx([(1 + s + 0) / 3, 0, 0])
    # row 1: leading 5, said 0; at 90° too. Said 3 instead: opposite
    assert semantic_at(ROWS[[1]], ones([[3]], 6), vectors, 1) == pytest.approx([-1])
    # a caption whose words have no vector, or that says nothing
    assert semantic_at(ROWS[[0]], ones([[1]], 6), vectors, 3) == pytest.approx([1 / 3])
    assert semantic_at(ROWS[[0]], ones([[]], 6), vectors, 3).tolist() == [0]


def test_words_of_captions_take_the_place_of_terms() -> None:
    vectors = np.array([[1, 0], [0, 0], [2, 0], [0, 1], [3, 3], [0, -1]], dtype=np.float32)
    words = CaptionWords(
        sparse([[1, 0], [0, 1], [0, 0]]), np.array([[0, -5], [0, 0]], dtype=np.float32), ["joined", "unknown"]
    )
    found = semantic_at(ROWS, SAID, vectors, 3, words=words)
    assert found == pytest.approx([(1 - np.sqrt(0.5) + 1) / 3, 0, 0])
    assert words.unknown == 0.5


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 8))
def test_semantic_is_at_least_exact_and_at_most_one(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    rows = sparse(random.random((6, 10)) * (random.random((6, 10)) < 0.5))
    said = sparse(random.random((6, 10)) < 0.3)
    vectors = np.abs(random.normal(size=(10, 3))) * (random.random((10, 1)) < 0.8)
    semantic = semantic_at(rows, said, vectors, k)
    assert np.all(semantic >= exact_at(rows, said, k) - 1e-12)
    assert np.all(semantic <= 1 + 1e-12)


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="k is 0"):
        leading_terms(ROWS, 0)
    with pytest.raises(DataError, match="a weight is -1"):
        leading_terms(-ROWS[[1]], 2)
    with pytest.raises(MismatchError, match=r"shape \(3, 6\) and caption terms of shape \(2, 6\)"):
        exact_at(ROWS, SAID[:2], 3)
    with pytest.raises(MismatchError, match="5 vectors for 6 terms"):
        semantic_at(ROWS, SAID, np.ones((5, 2)), 3)
    words = CaptionWords(SAID, np.ones((6, 3)), [""] * 6)
    with pytest.raises(MismatchError, match="with the same static embedding"):
        semantic_at(ROWS, SAID, np.ones((6, 2)), 3, words=words)
