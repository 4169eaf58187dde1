from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError
from diptych.index import Recall, build_index, open_index
from diptych.index.engines.cascade import strongest_terms


def test_candidates_are_sorted_by_the_whole_query(make_bags):
    # The first stage, by term 0, hands on images 0 and 1; term 1 turns them round. Image 3 is never seen.
    index = build_index(make_bags([[3, 0], [2, 5], [1, 9], [0, 50]]), "cascade", candidates=2)
    hits = index.search(csr_array([[2, 1]]), 2, first=csr_array([[1, 0]]))
    assert list(hits) == [[("image-1", 9.0), ("image-0", 6.0)]]
    assert list(index.search(csr_array([[2, 1]]), 2, first=csr_array([[1, 0]]), candidates=3)) == [
        [("image-2", 11.0), ("image-1", 9.0)]
    ]
    assert list(index.search_exact(csr_array([[2, 1]]), 1)) == [[("image-3", 50.0)]]


def test_the_strongest_terms_are_the_default(make_bags):
    index = build_index(make_bags([[3, 0], [2, 5], [0, 50]]), "cascade", first_terms=1)
    assert index.search([[2, 1]], 3).ids == [["image-1", "image-0"]]
    assert index.search([[2, 1]], 3, first_terms=2).ids == [["image-2", "image-1", "image-0"]]
    assert index.search([[0, 0]], 3).ids == [[]]


def test_strongest_terms():
    rows = csr_array([[1, 5, 0, 5, 3], [0, 0, 0, 0, 0], [0, 2, 0, 0, 0]])
    assert strongest_terms(rows, 1).toarray().tolist() == [[0, 5, 0, 0, 0], [0] * 5, [0, 2, 0, 0, 0]]
    assert strongest_terms(rows, 3).toarray().tolist() == [[0, 5, 0, 5, 3], [0] * 5, [0, 2, 0, 0, 0]]
    np.testing.assert_array_equal(strongest_terms(rows, 9).toarray(), rows.toarray())


def test_k_larger_than_the_candidates_gets_k(make_bags):
    bags = make_bags(count=300)
    index = build_index(bags, "cascade", candidates=1, first_terms=100)
    assert list(index.search(bags.rows[:5], 40)) == list(build_index(bags).search(bags.rows[:5], 40))


def test_scores_are_those_of_the_exact_engine(make_bags):
    bags = make_bags(count=800, width=60)
    exact, index = build_index(bags), build_index(bags, "cascade", first_terms=2, candidates=50)
    recall = Recall(**index.about["recall"])
    assert recall.options == {"first_terms": 2, "candidates": 50}
    assert 0.1 < recall.value < 1
    for mine, best in zip(index.search(bags.rows, 10), exact.search(bags.rows, 800), strict=True):
        truth = dict(best)
        assert all(truth[name] == score for name, score in mine)
    more = build_index(bags, "cascade", first_terms=4, candidates=200)
    assert more.about["recall"]["value"] > recall.value


def test_changes_and_reopening(make_bags, tmp_path):
    bags = make_bags(count=300)
    index = build_index(bags, "cascade")
    index.delete(["image-0"])
    index.add(["late", "later"], bags.rows[:2] * 3)
    query = bags.rows[:1]
    for one in (index, open_index(index.save(tmp_path / "index"))):
        assert one.engine_name == "cascade"
        hits = one.search(query, 2)
        assert hits.ids[0][0] == "late"
        assert list(hits) == list(one.search_exact(query, 2))


def test_first_stage_queries_refused(make_bags):
    index = build_index(make_bags(np.eye(3)), "cascade")
    with pytest.raises(MismatchError, match="2 first-stage queries for 3 queries"):
        index.search(np.eye(3), 1, first=np.eye(3)[:2])
    with pytest.raises(MismatchError, match="first-stage query vectors have width 2"):
        index.search(np.eye(3), 1, first=np.ones((3, 2)))
    with pytest.raises(DataError, match="first-stage query.*negative"):
        index.search(np.eye(3), 1, first=-np.eye(3))


def test_with_all_items_as_candidates_it_is_exact_search(make_bags):
    """Terms so weak that the first stage's whole-number sums would be 0 are found too."""
    rng = np.random.default_rng(4)
    bags = make_bags(count=400)
    queries = 10.0 ** rng.uniform(-20, 5, (20, 40)) * (rng.random((20, 40)) < 0.4)
    index = build_index(bags, "cascade", first_terms=40, candidates=400)
    assert list(index.search(queries, 400)) == list(index.search_exact(queries, 400))
