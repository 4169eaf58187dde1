from __future__ import annotations

import numpy as np
import pytest

from diptych.core.errors import UsageError
from diptych.index import Recall, build_index, measure_recall, open_index


def test_scores_are_near_and_in_order(make_bags):
    bags = make_bags(count=900, width=60)
    exact, index = build_index(bags), build_index(bags, "impacts")
    queries = bags.rows[:50]
    mine, best = index.search(queries, 900), exact.search(queries, 900)
    for few, all_of_them in zip(mine, best, strict=True):
        truth = dict(all_of_them)
        scores = [score for _, score in few]
        assert scores == sorted(scores, reverse=True)
        # Each weight is within half a code of 255, the query's whole numbers are finer.
        for name, score in few:
            assert score == pytest.approx(truth[name], rel=0.02, abs=0.05)
    assert measure_recall(index, queries, reference=exact).value > 0.95


def test_its_recall_at_build_is_against_the_weights_themselves(make_bags):
    rng = np.random.default_rng(1)
    rows = np.zeros((400, 3))
    rows[:, 0] = 1000 + rng.random(400)  # one code for all of them
    rows[:, 1] = 1
    index = build_index(make_bags(rows), "impacts", sample=[[1, 0, 0]])
    recall = Recall(**index.about["recall"])
    best = set(np.argsort(-rows[:, 0])[:10].tolist())
    assert recall.value == pytest.approx(len(best & set(range(10))) / 10)
    assert recall.value < 1
    assert "recall@10" in index.describe()


def test_ties_and_tombstones(make_bags, tmp_path):
    index = build_index(make_bags([[1, 0], [1, 0], [0, 1], [1, 1]]), "impacts")
    assert index.search([[1, 0]], 9).ids == [["image-0", "image-1", "image-3"]]
    index.delete(["image-0"])
    opened = open_index(index.save(tmp_path / "index"))
    for one in (index, opened):
        assert (len(one), one.tombstones) == (3, 1)
        assert one.search([[1, 0]], 9).ids == [["image-1", "image-3"]]
        assert one.search([[0, 0]], 9).ids == [[]]
    opened.delete(["image-1", "image-2", "image-3"])
    assert opened.search([[1, 1]], 2).ids == [[]]


def test_an_empty_one(make_bags, tmp_path):
    index = build_index(make_bags(np.empty((0, 4))), "impacts")
    assert index.search(np.ones((1, 4)), 3).ids == [[]]
    assert "recall" not in index.about
    assert len(open_index(index.save(tmp_path / "index"))) == 0


def test_what_needs_the_weights_is_refused(make_bags):
    index = build_index(make_bags(), "impacts")
    with pytest.raises(UsageError, match="impacts engine cannot add items"):
        index.add(["new"], np.ones((1, 40)))
    with pytest.raises(UsageError, match=r"cannot search exactly: it keeps 8-bit weights only.*inverted"):
        index.search_exact(np.ones((1, 40)), 3)
    with pytest.raises(UsageError, match="cannot be rebuilt"):
        index.rebuild()


def test_it_is_smaller(make_bags, tmp_path):
    bags = make_bags(count=5000, width=60)
    sizes = {}
    for name in ("inverted", "impacts"):
        folder = build_index(bags, name).save(tmp_path / name)
        sizes[name] = sum(path.stat().st_size for path in folder.glob("*.npy"))
    assert sizes["impacts"] < 0.5 * sizes["inverted"]


def test_more_terms_than_can_be_summed_are_refused(make_bags):
    """Not answered with nothing; the exact engine takes them."""
    bags = make_bags(np.ones((3, 16_001)))
    with pytest.raises(UsageError, match="16,001 terms, sums of 8-bit weights hold 16,000"):
        build_index(bags, "impacts", sample=np.eye(1, 16_001)).search(bags.rows, 2)
    assert build_index(bags).search(bags.rows[:1], 2).ids == [["image-0", "image-1"]]
