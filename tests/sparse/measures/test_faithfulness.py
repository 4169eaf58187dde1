from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr

from diptych.core.errors import DataError, MismatchError
from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth, top_k
from diptych.sparse.measures import faithfulness, overlap_at, pearson, rank_agreement


def test_pearson_by_hand() -> None:
    assert pearson(np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 1, 1])) == pytest.approx(1 / np.sqrt(3))
    assert pearson(np.array([1.0, 2]), np.array([4.0, 2])) == -1
    assert np.isnan(pearson(np.array([1.0, 1]), np.array([4.0, 2])))  # a constant has no correlation
    assert np.isnan(pearson(np.zeros(0), np.zeros(0)))
    with pytest.raises(MismatchError, match="2 values and 3 values"):
        pearson(np.zeros(2), np.zeros(3))


@given(seed=st.integers(0, 2**32), n=st.integers(3, 40))
def test_pearson_as_scipy(seed: int, n: int) -> None:
    first, second = np.random.default_rng(seed).normal(size=(2, n))
    assert pearson(first, second) == pytest.approx(pearsonr(first, second).statistic)


def test_overlap_by_hand() -> None:
    first = np.array([[1, 2, 3], [4, 5, -1], [-1, -1, -1]])
    second = np.array([[3, 2, 9], [5, -1, -1], [-1, -1, -1]])
    assert overlap_at(first, second) == pytest.approx([2 / 3, 1 / 3, 0])
    with pytest.raises(MismatchError, match=r"\(3, 3\) and \(3, 2\)"):
        overlap_at(first, second[:, :2])


def test_agreement_by_hand() -> None:
    first = np.array([[1, 2, 3], [1, 2, 3], [1, 2, -1], [1, 2, 3]])
    second = np.array([[3, 2, 1], [1, 2, 8], [9, 2, -1], [2, 3, 1]])
    scores = np.tile([3.0, 2, 1], (4, 1))
    found = rank_agreement(first, scores, second, scores)
    # reversed; same order of two; one in common; of three pairs one agrees
    assert found[[0, 1, 3]] == pytest.approx([-1, 1, -1 / 3])
    assert np.isnan(found[2])
    tied = rank_agreement(first[[1]], scores[[1]], second[[1]], np.full((1, 3), 7.0))
    assert np.isnan(tied[0])


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_agreement_as_scipy_with_ties(seed: int) -> None:
    random = np.random.default_rng(seed)
    first, second = (np.stack([random.permutation(12)[:6] for _ in range(5)]) for _ in range(2))
    one, other = (-np.sort(-random.integers(0, 4, (5, 6)).astype(float), axis=1) for _ in range(2))
    found = rank_agreement(first, one, second, other)
    for query in range(5):
        common = sorted(set(first[query]) & set(second[query]))
        mine = [one[query][first[query].tolist().index(item)] for item in common]
        theirs = [other[query][second[query].tolist().index(item)] for item in common]
        if len(common) < 2 or len(set(mine)) == 1 or len(set(theirs)) == 1:
            assert np.isnan(found[query])
        else:
            assert found[query] == pytest.approx(kendalltau(mine, theirs).statistic)


def test_of_two_evaluations() -> None:
    random = np.random.default_rng(0)
    images, texts = random.normal(size=(30, 8)), random.normal(size=(60, 8))
    texts[:] += 0.7 * images.repeat(2, axis=0)
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(30), 2), 30)
    measures = ["R@1", "R@5", "MRR@10"]
    rough = images + random.normal(scale=0.4, size=images.shape)
    results = [evaluate(rows @ texts.T, None, truth, measures) for rows in (images, rough)]
    lists = [top_k(texts.astype(np.float32), rows.astype(np.float32), 10) for rows in (images, rough)]
    found = faithfulness(*results, *lists)
    mine, theirs = (result.per_query["t2i"]["R@5"] for result in results)
    assert found.pearson["R@5"] == pytest.approx(pearsonr(mine, theirs).statistic)
    assert list(found.pearson) == measures
    assert found.k == 10
    assert found.overlap == pytest.approx(
        np.mean([len(set(a) & set(b)) / 10 for a, b in zip(lists[0][0], lists[1][0], strict=True)])
    )
    assert 0 < found.kendall < 1
    assert (found.without_order, found.queries) == (0, 60)
    same = faithfulness(results[0], results[0], lists[0], lists[0])
    assert same.pearson == pytest.approx(dict.fromkeys(measures, 1.0))
    assert (same.overlap, same.kendall) == (1, 1)
    with pytest.raises(DataError, match="the dense result has no t2i R@7"):
        faithfulness(*results, *lists, measures=["R@7"])


def test_queries_without_order_are_counted() -> None:
    truth = GroundTruth.from_caption_image([0, 1], 2)
    result = evaluate(np.eye(2), None, truth, ["R@1"])
    lists = (np.array([[0], [1]]), np.ones((2, 1)))
    found = faithfulness(result, result, lists, lists, measures=["R@1"])
    assert found.overlap == 1
    assert np.isnan(found.kendall)
    assert found.without_order == 2
    assert np.isnan(found.pearson["R@1"])  # all queries are answered
