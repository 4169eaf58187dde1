"""Sparse rows: exact scores whatever the tile, ties as elsewhere, rows without terms."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from diptych.core.errors import DataError, NumericalError, UnknownNameError, UsageError
from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth
from diptych.metrics.sparse_products import SparseProducts, check_sparse_rows, sparse_top_k

MEASURES = ("R@1", "R@5", "R@10", "MRR@10", "medr", "rsum")


def sparse(values: Any) -> csr_array:
    return csr_array(np.asarray(values, dtype=np.float32))


def bags(seed: int, n: int, width: int, share: float = 0.3) -> csr_array:
    random = np.random.default_rng(seed)
    return sparse(random.exponential(size=(n, width)) * (random.random((n, width)) < share))


def slow_score(left: csr_array, right: csr_array) -> float:
    """Common terms in the order of the columns, added in float64; products without rounding."""
    mine = dict(zip(left.indices.tolist(), left.data.tolist(), strict=True))
    theirs = dict(zip(right.indices.tolist(), right.data.tolist(), strict=True))
    total = 0.0
    for term in sorted(mine.keys() & theirs.keys()):
        product = Fraction(mine[term]) * Fraction(theirs[term])
        assert Fraction(float(product)) == product  # exact in float64
        total += float(product)
    return total


IMAGES = sparse([[2, 0, 1, 0], [0, 3, 0, 0], [0, 0, 0, 0]])
TEXTS = sparse([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 5], [0, 0, 0, 0]])


def test_by_hand() -> None:
    source = SparseProducts(IMAGES, TEXTS)
    tile = source.careful(slice(0, 3), slice(0, 4), lambda *_: np.zeros(0))
    assert tile.tolist() == [[2, 1, 0, 0], [0, 3, 0, 0], [0, 0, 0, 0]]
    assert tile.dtype == np.float64
    assert source.pairs(np.array([0, 1, 2]), np.array([1, 1, 1])).tolist() == [1, 3, 0]
    assert source.empty == (1, 1)
    truth = GroundTruth.from_caption_image([0, 1, 2, 2], 3)
    found = evaluate(IMAGES, TEXTS, truth, ["R@1"])
    # image 2 has no term: two of its four texts, all tied at 0, are right; texts 2 and 3 score 0 with all
    # three images, of which one is right
    assert found.value("R@1", "i2t") == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert found.value("R@1", "t2i") == pytest.approx((1 + 1 + 1 / 3 + 1 / 3) / 4)
    assert "rows without terms 1 images, 1 texts" in found.protocol_line()


def test_scores_have_the_same_bits_in_every_tile_and_pair() -> None:
    images, texts = bags(0, 23, 40), bags(1, 31, 40)
    source = SparseProducts(images, texts)
    back = SparseProducts(texts, images)
    whole = source.careful(slice(0, 23), slice(0, 31), lambda *_: np.zeros(0))
    slow = [[slow_score(images[[i]], texts[[t]]) for t in range(31)] for i in range(23)]
    assert np.array_equal(whole, np.array(slow))
    assert np.array_equal(back.careful(slice(0, 31), slice(0, 23), lambda *_: np.zeros(0)).T, whole)
    assert np.array_equal(source.careful(slice(5, 6), slice(7, 20), lambda *_: np.zeros(0)), whole[5:6, 7:20])
    i, t = np.indices(whole.shape).reshape(2, -1)
    assert np.array_equal(source.pairs(i, t), whole.ravel())


@pytest.mark.parametrize("ties", ["expected", "pessimistic", "optimistic", "compat"])
@pytest.mark.parametrize("block", [1, 7, 2_500_000])
def test_the_same_as_a_score_matrix(block: int, ties: str) -> None:
    images, texts = bags(2, 20, 12, 0.2), bags(3, 40, 12, 0.1)  # many rows tie, some have no term
    assert min(SparseProducts(images, texts).empty) > 0
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(20), 2), 20)
    found = evaluate(images, texts, truth, MEASURES, ties=ties, block=block)
    scores = images.toarray().astype(np.float64) @ texts.toarray().astype(np.float64).T
    given_scores = evaluate(scores, None, truth, MEASURES, ties=ties)
    assert found.values() == pytest.approx(given_scores.values())
    for way, ranks in given_scores.ranks.items():
        assert np.array_equal(found.ranks[way], ranks)


@settings(max_examples=40)
@given(data=st.data())
def test_equal_rows_tie_whatever_stands_beside_them(data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32))
    images, texts = bags(seed, 6, 9, 0.4), bags(seed + 1, 12, 9, 0.4)
    texts = texts[np.r_[0:12, 3, 3]]  # the same text three times
    truth = GroundTruth.from_caption_image(np.r_[np.repeat(np.arange(6), 2), 4, 5], 6)
    block = data.draw(st.integers(1, 90))
    found = evaluate(images, texts, truth, ["R@1", "MRR@10"], block=block)
    tile = SparseProducts(images, texts).careful(slice(0, 6), slice(0, 14), lambda *_: np.zeros(0))
    assert np.array_equal(tile[:, 3], tile[:, 12])
    assert found.values() == pytest.approx(evaluate(tile, None, truth, ["R@1", "MRR@10"]).values())


def slow_top(scores: np.ndarray, k: int) -> list[list[int]]:
    found = []
    for row in scores.tolist():
        order = sorted(range(len(row)), key=lambda place: (-row[place], place))[:k]
        found.append([place if row[place] > 0 else -1 for place in order])
    return found


@pytest.mark.parametrize("block", [1, 50, 2_500_000])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_top_k_with_ties_and_rows_without_terms(k: int, block: int) -> None:
    random = np.random.default_rng(6)
    queries, gallery = (
        sparse(random.integers(0, 3, (n, 6)) * (random.random((n, 6)) < 0.3)) for n in (15, 25)
    )
    rows, scores = sparse_top_k(queries, gallery, k, block=block)
    exact = (queries @ gallery.T).toarray().astype(np.float64)
    assert rows.tolist() == slow_top(exact, k)
    assert rows.shape == (15, min(k, 25))
    for row, score, values in zip(rows, scores, exact, strict=True):
        assert score.tolist() == [values[place] if place >= 0 else 0.0 for place in row]
    assert (rows == -1).any()


def test_unordered_and_repeated_columns_are_put_right() -> None:
    rows = csr_array(
        (np.array([1, 2, 4], dtype=np.float32), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    checked = check_sparse_rows(rows, "image")
    assert checked.indices.tolist() == [0, 2]
    assert checked.data.tolist() == [2, 5]
    assert rows.indices.tolist() == [2, 0, 2]  # the caller's stay as they were


def test_a_stored_zero_is_no_term() -> None:
    rows = csr_array((np.zeros(1, dtype=np.float32), np.array([1]), np.array([0, 1])), shape=(1, 3))
    assert SparseProducts(rows, rows).empty == (1, 1)


def test_bad_rows() -> None:
    truth = GroundTruth.from_caption_image([0, 1, 2, 2], 3)
    with pytest.raises(DataError, match="3 terms, text rows 4"):
        evaluate(sparse(np.zeros((3, 3))), TEXTS, truth)
    with pytest.raises(DataError, match="image rows must be a sparse float32 matrix, got float64"):
        evaluate(IMAGES.astype(np.float64), TEXTS, truth)
    with pytest.raises(DataError, match=r"must be a sparse float32 matrix, got float32 with shape \(3, 4\)"):
        evaluate(IMAGES.toarray(), TEXTS, truth)
    with pytest.raises(DataError, match="4 text rows for a ground truth of 5 texts"):
        evaluate(IMAGES, TEXTS, GroundTruth.from_caption_image([0, 1, 2, 2, 0], 3))
    with pytest.raises(DataError, match="2 image ids for 3 image rows"):
        evaluate(IMAGES, TEXTS, truth, image_ids=["a", "b"])
    broken = TEXTS.copy()
    broken.data[2] = np.inf
    with pytest.raises(NumericalError, match=r"text 'c1' \(row 1\) is not finite: a weight is inf"):
        evaluate(IMAGES, broken, truth, text_ids=["c0", "c1", "c2", "c3"])
    with pytest.raises(UnknownNameError, match="unknown tie rule 'lucky'"):
        evaluate(IMAGES, TEXTS, truth, ties="lucky")
    with pytest.raises(DataError, match="there is nothing to rank"):
        evaluate(IMAGES[:0], TEXTS[:0], GroundTruth.from_caption_image([], 0))
    with pytest.raises(UsageError, match="k is 0"):
        sparse_top_k(TEXTS, IMAGES, 0)
    with pytest.raises(DataError, match="cannot search a gallery of 0 rows"):
        sparse_top_k(TEXTS, IMAGES[:0], 3)
    with pytest.raises(DataError, match="query rows have 4 terms, gallery rows 3"):
        sparse_top_k(TEXTS, sparse(np.ones((2, 3))), 3)
