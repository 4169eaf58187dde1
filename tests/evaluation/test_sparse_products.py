"""Sparse rows: exact scores whatever the tile, ties as elsewhere, rows without terms."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from refusals import refused
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
    texts = texts[np.r_[0:40, 3, 3]]  # the same text three times
    truth = GroundTruth.from_caption_image(np.r_[np.repeat(np.arange(20), 2), 4, 5], 20)
    found = evaluate(images, texts, truth, MEASURES, ties=ties, block=block)
    scores = images.toarray().astype(np.float64) @ texts.toarray().astype(np.float64).T
    given_scores = evaluate(scores, None, truth, MEASURES, ties=ties)
    assert found.values() == pytest.approx(given_scores.values())
    for way, ranks in given_scores.ranks.items():
        assert np.array_equal(found.ranks[way], ranks)


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
    values, places = np.array([1, 2, 4], dtype=np.float32), np.array([2, 0, 2])
    rows = csr_array((values, places, np.array([0, 3])), shape=(1, 3))
    checked = check_sparse_rows(rows, "image")
    assert (checked.indices.tolist(), checked.data.tolist()) == ([0, 2], [2, 5])
    assert rows.indices.tolist() == [2, 0, 2]  # the caller's stay as they were
    zero = csr_array((np.zeros(1, dtype=np.float32), np.array([1]), np.array([0, 1])), shape=(1, 3))
    assert SparseProducts(zero, zero).empty == (1, 1)  # a stored zero is no term


def test_bad_rows() -> None:
    truth = GroundTruth.from_caption_image([0, 1, 2, 2], 3)
    broken, ids = TEXTS.copy(), {"text_ids": ["c0", "c1", "c2", "c3"]}
    broken.data[2] = np.inf
    five, none = GroundTruth.from_caption_image([0, 1, 2, 2, 0], 3), GroundTruth.from_caption_image([], 0)
    for given, options, error, message in (
        ((sparse(np.zeros((3, 3))), TEXTS, truth), {}, DataError, "3 terms, text rows 4"),
        (
            (IMAGES.astype(np.float64), TEXTS, truth),
            {},
            DataError,
            "must be a sparse float32 matrix, got float64",
        ),
        ((IMAGES.toarray(), TEXTS, truth), {}, DataError, r"got float32 with shape \(3, 4\)"),
        ((IMAGES, TEXTS, five), {}, DataError, "4 text rows for a ground truth of 5 texts"),
        ((IMAGES, TEXTS, truth), {"image_ids": ["a", "b"]}, DataError, "2 image ids for 3 image rows"),
        ((IMAGES, broken, truth), ids, NumericalError, r"text 'c1' \(row 1\) is not finite: a weight is inf"),
        ((IMAGES, TEXTS, truth), {"ties": "lucky"}, UnknownNameError, "unknown tie rule 'lucky'"),
        ((IMAGES[:0], TEXTS[:0], none), {}, DataError, "there is nothing to rank"),
    ):
        refused(error, message, evaluate, *given, **options)
    for gallery, k, error, message in (
        (IMAGES, 0, UsageError, "k is 0"),
        (IMAGES[:0], 3, DataError, "cannot search a gallery of 0 rows"),
        (sparse(np.ones((2, 3))), 3, DataError, "query rows have 4 terms, gallery rows 3"),
    ):
        refused(error, message, sparse_top_k, TEXTS, gallery, k)
