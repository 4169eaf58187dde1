"""What every engine that misses nothing has to do, on each of them, dense and sparse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.encoders.embeddings import Embeddings
from diptych.index import build_index, open_index

WIDTH = 4
MISSING_NOTHING = {
    "exact": {},
    "hnsw": {},
    "inverted": {},
    "cascade": {"first_terms": 100, "candidates": 100_000},
}


class Builder:
    """Builds an index of an engine from rows."""

    def __init__(self, engine, make):
        self.engine, self.make = engine, make
        self.sparse = engine in ("inverted", "cascade")

    def __call__(self, rows=None, **said):
        return build_index(self.make(rows, **said), self.engine, **MISSING_NOTHING[self.engine])


@pytest.fixture(params=list(MISSING_NOTHING))
def build(request, make_embeddings, make_bags):
    sparse = request.param in ("inverted", "cascade")
    return Builder(request.param, make_bags if sparse else make_embeddings)


def expected(model, query, k, sparse):
    """The best k of a dict of vectors in its order, that share a term where sparse: an independent sort."""
    scored = sorted(
        (-sum(int(a) * int(b) for a, b in zip(vector, query, strict=True)), place, name)
        for place, (name, vector) in enumerate(model.items())
    )
    return [(name, float(-score)) for score, _, name in scored[:k] if score < 0 or not sparse]


def test_ids_and_scores(build):
    index = build(np.eye(4))
    queries = [[0, 2, 1, 0], [4, 3, 2, 1]]
    for asked in (queries, csr_array(queries)) if build.sparse else (queries, np.array(queries, "f2")):
        hits = index.search(asked, 2)
        assert list(hits) == [[("image-1", 2.0), ("image-2", 1.0)], [("image-0", 4.0), ("image-1", 3.0)]]
        assert hits.scores.dtype == np.float32
        assert hits.note == ""
    assert (len(index), index.width, index.encoder) == (4, 4, "encoder-a")
    assert (index.about["kind"], index.about["data"]) == ("image", "data-a")
    assert "image-3" in index
    assert "image-4" not in index


def test_k_larger_than_the_index_gives_all_and_says_so(build):
    index = build(np.eye(3) + 1)
    hits = index.search(np.eye(3), 10)
    assert hits.found.tolist() == [3, 3, 3]
    assert hits.scores.shape == (3, 3)
    assert [set(ids) for ids in hits.ids] == [{"image-0", "image-1", "image-2"}] * 3
    assert "10 hits were requested; 3 of 3 queries have fewer (the fewest: 3)" in hits.note
    nothing = index.search(np.empty((0, 3)), 5)
    assert (len(nothing), nothing.scores.shape) == (0, (0, 0))
    index.delete(["image-1"])
    assert [set(ids) for ids in index.search(np.eye(3), 3).ids] == [{"image-0", "image-2"}] * 3


def test_queries_refused(build):
    index = build(np.eye(4))
    for error, said, *values in (
        (MismatchError, "width 3, the index holds vectors of width 4", np.eye(3), 1),
        (NumericalError, r"query vector \(row 1\) is not finite", [[0, 0, 0, 0], [0, np.nan, 0, 0]], 1),
        (UsageError, "k=0", np.eye(4), 0),
        (UsageError, "shape", np.ones(4), 1),
        *[(DataError, "negative weight", [[0, 0, 0, -1]], 1)] * build.sparse,
    ):
        refused(error, said, index.search, *values)


def test_other_weights_are_refused_by_fingerprint(build):
    index = build(np.eye(4))
    assert index.search(np.eye(4), 1, encoder="encoder-a").found.tolist() == [1] * 4
    for call in (
        lambda: index.search(np.eye(4), 1, encoder="encoder-b"),
        lambda: index.search_exact(np.eye(4), 1, encoder="encoder-b"),
        lambda: index.add(["new"], np.ones((1, 4)), encoder="encoder-b"),
        lambda: index.check_origin("encoder-b"),
    ):
        refused(MismatchError, r"encoder-b, those of the index by encoder-a .*index embeddings of this", call)
    assert len(index) == 4


def test_a_refused_change_changes_nothing(build):
    index, two = build(np.eye(4)), np.ones((2, 4))
    broken, negative = [[1, 1, 1, 1], [1, np.inf, 1, 1]], [[1, 1, 1, 1], [1, -1, 1, 1]]
    for error, said, call, *values in (
        (UsageError, r"'image-2' is already in the index \(1 of 2 are\)", index.add, ["new", "image-2"], two),
        (DataError, "'new' occurs twice", index.add, ["new", "new"], two),
        (DataError, "1 ids for 2 vectors", index.add, ["new"], two),
        (MismatchError, "item vectors have width 5", index.add, ["new"], np.ones((1, 5))),
        (NumericalError, "'bad'", index.add, ["new", "bad"], broken),
        *[(DataError, "'bad'", index.add, ["new", "bad"], negative)] * build.sparse,
        (UsageError, r"'none' is not in the index \(1 of 2 are not\)", index.delete, ["image-1", "none"]),
        (DataError, "'image-1' occurs twice", index.delete, ["image-1", "image-1"]),
        (UsageError, "the string", index.delete, "image-1"),
    ):
        options = {"replace": True} if "bad" in said else {}
        refused(error, said, call, *values, **options)
    assert index.ids == [f"image-{row}" for row in range(4)]
    index.delete(["image-1"])
    refused(UsageError, "'image-1' is not in the index", index.delete, ["image-1"])


def test_building_refused(build):
    refused(DataError, "'b' occurs twice", build, np.eye(3), ids=["a", "b", "b"])
    if build.sparse:
        refused(DataError, "'image-1'.*negative", build, [[1, 0], [0, -1]])
        return
    refused(NumericalError, "'image-1'", build, [[1, 0], [np.nan, 0]])
    refused(DataError, "width 0", build, np.empty((2, 0)))
    rows = np.asfortranarray(np.eye(3, dtype=np.float64))
    index = build_index(Embeddings(["a", "b", "c"], rows, "e", "d", "text", {}), build.engine)
    assert index.search(np.array([[0, 0, 1]], dtype=np.float16), 1).ids == [["c"]]


def test_only_items_that_share_a_term_are_found(build, tmp_path):
    if not build.sparse:
        pytest.skip("dense engines find every item")
    index = build([[1, 0, 0, 0], [0, 0, 0, 0], [3, 1, 0, 0], [0, 0, 1e-6, 0]])
    hits = index.search(csr_array([[1, 1, 0, 0], [0, 0, 1e-6, 0], [0, 0, 0, 5], [0, 0, 0, 0]]), 10)
    assert hits.ids == [["image-2", "image-0"], ["image-3"], [], []]
    assert hits.found.tolist() == [2, 1, 0, 0]
    assert hits.scores.shape == (4, 2)
    assert hits.scores[1].tolist() == [pytest.approx(1e-12), -np.inf]
    assert "4 of 4 queries have fewer (the fewest: 0)" in hits.note
    index = build(np.zeros((5, 3)))
    nothing = index.search(np.ones((2, 3)), 2)
    assert (nothing.ids, nothing.scores.shape) == ([[], []], (2, 0))
    assert len(open_index(index.save(tmp_path / "index"))) == 5


values = st.sampled_from([-2, -1, 0, 0, 0, 1, 2, 3])
small_rows = st.lists(values, min_size=WIDTH, max_size=WIDTH)
names = st.sampled_from(list("abcdefghijkl"))
steps = st.one_of(
    st.tuples(st.just("add"), st.dictionaries(names, small_rows, min_size=1, max_size=4)),
    st.tuples(st.just("replace"), st.dictionaries(names, small_rows, min_size=1, max_size=4)),
    st.tuples(st.just("delete"), st.sets(names, min_size=1, max_size=4)),
    st.tuples(st.just("reopen"), st.none()),
    st.tuples(st.just("rebuild"), st.none()),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.dictionaries(names, small_rows, max_size=12), path=st.lists(steps, max_size=8), query=small_rows
)
def test_any_history_equals_a_dict(build, tmp_path_factory, start, path, query):
    def fit(rows):
        return {name: np.abs(row).tolist() for name, row in rows.items()} if build.sparse else rows

    model, query = fit(start), fit({"query": query})["query"]
    index = build(np.array(list(model.values()), dtype=np.float32).reshape(-1, WIDTH), ids=list(model))
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
                refused(UsageError, "not in the index", index.delete, sorted(what))
        elif step == "add" and what.keys() & model.keys():
            refused(UsageError, "already in the index", index.add, list(what), list(fit(what).values()))
        else:
            what = fit(what)
            index.add(list(what), list(what.values()), replace=step == "replace")
            model = {name: row for name, row in model.items() if name not in what} | what
        assert len(index) == len(model)
    assert index.ids == list(model)
    # All items asked for: every engine returns all, so their order is fully determined.
    whole = len(model) + 1
    assert list(index.search([query], whole)) == [expected(model, query, len(model), build.sparse)]
    for k in (1, 3):
        assert list(index.search_exact([query], k)) == [expected(model, query, k, build.sparse)]
        if build.sparse:
            assert list(index.search([query], k)) == [expected(model, query, k, True)]
    for name, score in next(iter(index.search([query], 2))):
        assert score == sum(a * b for a, b in zip(model[name], query, strict=True))
