"""What every engine that finds sparse vectors exactly has to do, on each of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.index import build_index, open_index

WIDTH = 4
EXACT = {"inverted": {}, "cascade": {"first_terms": 100, "candidates": 100_000}}
"""Engines with the options with which they miss nothing."""


@pytest.fixture(params=sorted(EXACT))
def build(request):
    """Builds an index that misses nothing."""
    return lambda bags: build_index(bags, request.param, **EXACT[request.param])


def expected(model, query, k):
    """The best k of a dict of vectors in its order that share a term: an independent sort."""
    scored = sorted(
        (-sum(int(a) * int(b) for a, b in zip(vector, query, strict=True)), place, name)
        for place, (name, vector) in enumerate(model.items())
    )
    return [(name, float(-score)) for score, _, name in scored[:k] if score < 0]


def test_ids_and_scores(build, make_bags):
    index = build(make_bags(np.eye(4)))
    hits = index.search(csr_array([[0, 2, 1, 0], [4, 3, 2, 1]]), 2)
    assert list(hits) == [[("image-1", 2.0), ("image-2", 1.0)], [("image-0", 4.0), ("image-1", 3.0)]]
    assert hits.scores.dtype == np.float32
    assert hits.note == ""
    assert list(index.search([[0, 2, 1, 0]], 2)) == [
        [("image-1", 2.0), ("image-2", 1.0)]
    ]  # dense is taken too


def test_only_items_that_share_a_term_are_found(build, make_bags):
    index = build(make_bags([[1, 0, 0, 0], [0, 0, 0, 0], [3, 1, 0, 0], [0, 0, 1e-6, 0]]))
    hits = index.search(csr_array([[1, 1, 0, 0], [0, 0, 1e-6, 0], [0, 0, 0, 5], [0, 0, 0, 0]]), 10)
    assert hits.ids == [["image-2", "image-0"], ["image-3"], [], []]
    assert hits.found.tolist() == [2, 1, 0, 0]
    assert hits.scores.shape == (4, 2)
    assert hits.scores[1].tolist() == [pytest.approx(1e-12), -np.inf]
    assert "4 of 4 queries have fewer (the fewest: 0)" in hits.note


def test_an_empty_index_can_be_filled(build, make_bags, tmp_path):
    index = build(make_bags(np.empty((0, 3))))
    assert index.search(np.eye(3), 5).ids == [[], [], []]
    index.save(tmp_path / "index")
    index = open_index(tmp_path / "index")
    assert (len(index), index.width) == (0, 3)
    index.add(["a", "b"], csr_array([[1, 0, 0], [0, 1, 0]]))
    assert index.search([[0, 1, 0]], 1).ids == [["b"]]
    index.delete(["a", "b"])
    assert index.search(np.eye(3), 5).ids == [[], [], []]


def test_nothing_but_empty_bags(build, make_bags, tmp_path):
    index = build(make_bags(np.zeros((5, 3))))
    assert index.search(np.ones((2, 3)), 2).ids == [[], []]
    assert len(open_index(index.save(tmp_path / "index"))) == 5


def test_no_queries(build, make_bags):
    hits = build(make_bags(np.eye(3))).search(csr_array((0, 3)), 5)
    assert (len(hits), hits.scores.shape) == (0, (0, 0))


def test_ties_go_by_insertion_across_segments(build, make_bags):
    rows = np.random.default_rng(0).random((1, 24)).astype(np.float32)
    index = build(make_bags(np.repeat(rows, 6, axis=0)))
    assert index.search(rows, 6).ids == [[f"image-{row}" for row in range(6)]]
    index.add(["image-2"], rows, replace=True)  # inserted anew: now the last
    index.delete(["image-0"])
    assert index.search(rows, 3).ids == [["image-1", "image-3", "image-4"]]
    assert index.search(rows, 6).ids == [["image-1", "image-3", "image-4", "image-5", "image-2"]]


def test_queries_refused(build, make_bags):
    index = build(make_bags(np.eye(4)))
    with pytest.raises(MismatchError, match="width 3, the index holds vectors of width 4"):
        index.search(csr_array(np.eye(3)), 1)
    with pytest.raises(NumericalError, match=r"query vector \(row 1\) is not finite"):
        index.search([[0, 0, 0, 0], [0, np.nan, 0, 0]], 1)
    with pytest.raises(DataError, match="negative weight"):
        index.search([[0, 0, 0, -1]], 1)
    with pytest.raises(UsageError, match="k=0"):
        index.search(np.eye(4), 0)
    with pytest.raises(MismatchError, match="encoder-b"):
        index.search(np.eye(4), 1, encoder="encoder-b")


def test_building_refused(build, make_bags):
    with pytest.raises(DataError, match="'b' occurs twice"):
        build(make_bags(np.eye(3), ids=["a", "b", "b"]))
    with pytest.raises(DataError, match="'image-1'.*negative"):
        build(make_bags([[1, 0], [0, -1]]))


def test_adding_refused_changes_nothing(build, make_bags):
    index = build(make_bags(np.eye(4)))
    with pytest.raises(UsageError, match=r"'image-2' is already in the index \(1 of 2 are\)"):
        index.add(["new", "image-2"], np.ones((2, 4)))
    with pytest.raises(NumericalError, match="'bad'"):
        index.add(["new", "bad"], [[1, 1, 1, 1], [1, np.inf, 1, 1]], replace=True)
    with pytest.raises(DataError, match="'bad'"):
        index.add(["new", "bad"], [[1, 1, 1, 1], [1, -1, 1, 1]], replace=True)
    assert "new" not in index
    assert len(index) == 4


def test_rebuilding_forgets_the_deleted_and_keeps_scores(build, make_bags):
    bags = make_bags(count=60)
    index = build(bags)
    index.delete(bags.ids[:10])
    index.add(["late"], bags.rows[:1])
    again = index.rebuild()
    assert (index.tombstones, again.tombstones) == (10, 0)
    assert again.ids == [*bags.ids[10:], "late"]
    before, after = index.search(bags.rows, 51), again.search(bags.rows, 51)
    assert list(before.ids) == list(after.ids)
    np.testing.assert_array_equal(before.scores, after.scores)


small_rows = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=WIDTH, max_size=WIDTH)
names = st.sampled_from(list("abcdefghijkl"))
steps = st.one_of(
    st.tuples(st.just("add"), st.dictionaries(names, small_rows, min_size=1, max_size=4)),
    st.tuples(st.just("replace"), st.dictionaries(names, small_rows, min_size=1, max_size=4)),
    st.tuples(st.just("delete"), st.sets(names, min_size=1, max_size=4)),
    st.tuples(st.just("reopen"), st.none()),
    st.tuples(st.just("rebuild"), st.none()),
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.dictionaries(names, small_rows, max_size=12), path=st.lists(steps, max_size=8), query=small_rows
)
def test_any_history_equals_a_dict(build, make_bags, tmp_path_factory, start, path, query):
    model = dict(start)
    index = build(make_bags(np.array(list(start.values())).reshape(-1, WIDTH), ids=list(start)))
    for step, what in path:
        if step == "reopen":
            index = open_index(index.save(tmp_path_factory.mktemp("history") / "index"))
        elif step == "rebuild":
            index = index.rebuild()
        elif step == "delete":
            if what <= model.keys():
                index.delete(sorted(what))
                model = {name: row for name, row in model.items() if name not in what}
            else:
                with pytest.raises(UsageError, match="not in the index"):
                    index.delete(sorted(what))
        elif step == "add" and what.keys() & model.keys():
            with pytest.raises(UsageError, match="already in the index"):
                index.add(list(what), list(what.values()))
        else:
            index.add(list(what), list(what.values()), replace=step == "replace")
            model = {name: row for name, row in model.items() if name not in what} | what
        assert len(index) == len(model)
    assert index.ids == list(model)
    assert list(index.search([query], len(model) + 1)) == [expected(model, query, len(model))]
    for k in (1, 3):
        assert list(index.search([query], k)) == [expected(model, query, k)]
        assert list(index.search_exact([query], k)) == [expected(model, query, k)]
