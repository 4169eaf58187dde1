from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from diptych.sparse.initialise import largest_components, positive_pmi, term_vectors

CAPTIONS = np.array(
    [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 1, 0, 0],
        [1, 0, 0, 1, 0],
    ],
    dtype=np.float32,
)
"""Term 0 stands everywhere, term 3 once and alone with it, term 4 nowhere."""


def slow_pmi(captions: np.ndarray) -> np.ndarray:
    count, size = captions.shape
    table = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            both = sum(bool(row[i] and row[j]) for row in captions)
            if both:
                share = (
                    both / count / (captions[:, i].astype(bool).mean() * captions[:, j].astype(bool).mean())
                )
                table[i, j] = max(0.0, math.log(share))
    return table


def test_positive_pmi_of_four_captions() -> None:
    table = positive_pmi(csr_array(CAPTIONS)).toarray()
    # 1 and 2: together once of 4, each twice: 4 · 1 / (2 · 2) = 1, whose logarithm is 0.
    expected = np.diag([0.0, math.log(2), math.log(2), math.log(4), 0.0])
    np.testing.assert_allclose(table, expected, atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_positive_pmi_agrees_with_counting(seed: int) -> None:
    captions = (np.random.default_rng(seed).random((12, 6)) < 0.4).astype(np.float32)
    rows = csr_array(captions * 3.0)  # how large a weight is does not matter
    np.testing.assert_allclose(positive_pmi(rows).toarray(), slow_pmi(captions), atol=1e-12)
    assert rows.data.size == 0 or set(rows.data) == {3.0}


def symmetric(values: list[float], seed: int) -> np.ndarray:
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((40, 40)))
    return np.asarray((basis[:, : len(values)] * np.array(values)) @ basis[:, : len(values)].T)


def test_the_largest_components_of_a_known_matrix() -> None:
    matrix = symmetric([9.0, -7.0, 5.0, 3.0, 0.1], seed=1)
    values, vectors = largest_components(csr_array(matrix), 4, seed=0)
    np.testing.assert_allclose(values, [9.0, -7.0, 5.0, 3.0])
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-12)
    assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(4)] > 0).all()
    again = largest_components(csr_array(matrix), 4, seed=5)[1]
    np.testing.assert_allclose(again, vectors, atol=1e-9)


def test_a_matrix_smaller_than_the_components_asked_for() -> None:
    values, vectors = largest_components(csr_array(np.diag([2.0, -3.0])), 5, seed=0)
    np.testing.assert_allclose(values, [-3.0, 2.0])
    np.testing.assert_allclose(vectors, [[0, 1], [1, 0]], atol=1e-12)


def test_terms_of_the_same_captions_have_vectors_alike() -> None:
    # Terms 0 and 1 always stand together, so do 2 and 3; 4 stands with either.
    topics = [[1, 1, 0, 0, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 0]]
    vectors = term_vectors(csr_array(np.array(topics * 5, dtype=np.float32)), 4, seed=0, spread=0.5)
    likeness = vectors @ vectors.T
    np.testing.assert_allclose(likeness[[0, 2], [1, 3]], 1.0, atol=1e-6)
    np.testing.assert_allclose(likeness[[0, 1], [2, 3]], 0.0, atol=1e-6)


def test_every_vector_has_one_length_and_terms_of_no_caption_a_random_one() -> None:
    vectors = term_vectors(csr_array(CAPTIONS), 16, seed=3, spread=0.5)
    assert vectors.shape == (5, 16)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 2.0, rtol=1e-6)
    # Three terms say something about others or themselves; the table has no component beyond the fifth.
    assert not vectors[1:4, 5:].any()
    assert (vectors[[0, 4]] != 0).all()
    assert not np.array_equal(vectors[4], term_vectors(csr_array(CAPTIONS), 16, seed=4, spread=0.5)[4])


@pytest.mark.parametrize("captions", [np.zeros((0, 4)), np.zeros((3, 4))])
def test_without_any_term_all_vectors_are_random(captions: np.ndarray) -> None:
    vectors = term_vectors(csr_array(captions.astype(np.float32)), 6, seed=0)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 0.02 * np.sqrt(6), rtol=1e-6)
    assert np.linalg.matrix_rank(vectors) == 4


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_the_same_captions_and_seed_give_the_same_vectors(seed: int, width: int) -> None:
    captions = (np.random.default_rng(seed).random((30, 20)) < 0.2).astype(np.float32)
    rows = csr_array(captions)
    found = term_vectors(rows, width, seed=1)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, term_vectors(rows, width, seed=1))
