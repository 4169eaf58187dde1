"""What the engines of other sparse libraries have in common, on each of them."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import MissingExtraError, StorageError
from diptych.index import build_index, open_index
from diptych.index.rescored import silenced

from .rows import bags

LIBRARIES = {"seismic": "seismic", "pisa": "pyterrier_pisa"}
THOROUGH = {
    "seismic": {"query_cut": 1000, "heap_factor": 0.0, "n_postings": 10_000},
    "pisa": {"scale": 10_000.0, "query_scale": 1000.0},
}


@pytest.fixture(params=sorted(LIBRARIES))
def engine(request):
    pytest.importorskip(LIBRARIES[request.param], reason="the extra 'engines' is not installed")
    return request.param


def random_rows(count, width=60, terms=12, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, width), dtype=np.float32)
    for row in rows:
        row[rng.choice(width, rng.integers(1, terms), replace=False)] = 0.05
    rows *= rng.exponential(30, rows.shape).astype(np.float32)
    return csr_array(rows)


def best_of(rows, queries, k):
    """An independent search: all products in double precision, a full sort."""
    scores = queries.astype(np.float64).toarray() @ rows.astype(np.float64).toarray().T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return [
        [(f"image-{slot}", line[slot]) for slot in places if line[slot] > 0]
        for line, places in zip(scores, order.tolist(), strict=True)
    ]


def test_ids_scores_and_ties(engine):
    rows = [[1, 0, 2, 0], [0, 3, 0, 0], [0, 0, 0, 0], [2, 1, 1, 0], [1, 0, 2, 0]]
    index = build_index(bags(rows), engine, **THOROUGH[engine])
    hits = index.search([[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 5], [0, 2, 0, 0]], 3)
    assert list(hits) == [
        [("image-0", 3.0), ("image-3", 3.0), ("image-4", 3.0)],
        [],
        [],
        [("image-1", 6.0), ("image-3", 2.0)],
    ]
    assert hits.scores.dtype == np.float32
    assert hits.found.tolist() == [3, 0, 0, 2]
    assert "3 of 4 queries have fewer (the fewest: 0)" in hits.note
    assert np.isneginf(hits.scores[1]).all()
    assert (len(index), index.width, index.terms[3]) == (5, 4, "term-3")
    assert "image-2" in index
    assert "image-5" not in index


@pytest.mark.parametrize("reference", ["its own", "inverted"])
def test_scores_are_exact_searchs_to_the_last_bit(engine, reference):
    rows, queries = random_rows(400), random_rows(50, seed=1)
    index = build_index(bags(rows), engine, sample=queries)
    other = index if reference == "its own" else build_index(bags(rows), reference)
    hits, exact = index.search(queries, 10), other.search_exact(queries, 10)
    agree = 0
    for mine, best, line, truth in zip(hits.ids, exact.ids, hits.scores, exact.scores, strict=True):
        scores = dict(zip(best, truth.tolist(), strict=False))
        both = [place for place, name in enumerate(mine) if name in scores]
        assert [scores[mine[place]] for place in both] == [line[place] for place in both]
        assert line[: len(mine)].tolist() == sorted(line[: len(mine)].tolist(), reverse=True)
        agree += len(both)
    assert agree > 0.9 * exact.found.sum()
    assert index.about["recall"]["value"] == pytest.approx(agree / exact.found.sum(), abs=0.02)
    for found, wanted in zip(exact, best_of(rows, queries, 10), strict=True):
        assert [name for name, _ in found] == [name for name, _ in wanted]
        np.testing.assert_allclose([s for _, s in found], [s for _, s in wanted], rtol=1e-6)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=12),
    query=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    k=st.integers(1, 15),
)
def test_whatever_is_found_has_its_score(engine, rows, query, k):
    index = build_index(bags(rows), engine, **THOROUGH[engine])
    wanted = best_of(csr_array(np.array(rows)), csr_array(np.array([query])), k)[0]
    assert list(index.search_exact([query], k)) == [wanted]
    found = next(iter(index.search([query], k)))
    assert [score for _, score in found] == [score for _, score in wanted[: len(found)]]
    if engine == "pisa":  # it misses only by rounding, and these are whole numbers
        assert len(found) == len(wanted)


def test_nothing_to_index(engine, tmp_path):
    for rows in (np.zeros((0, 3)), np.zeros((2, 3))):
        index = build_index(bags(csr_array(rows)), engine)
        assert index.search(np.eye(3), 2).ids == [[], [], []]
        opened = open_index(index.save(tmp_path / f"index-{len(rows)}"))
        assert len(opened) == len(rows)
        assert opened.search_exact(np.eye(3), 2).ids == [[], [], []]


def test_many_queries_are_searched_in_parts(engine, monkeypatch):
    rows, queries = random_rows(80), random_rows(23, seed=1)
    index = build_index(bags(rows), engine)
    whole = list(index.search(queries, 4))
    monkeypatch.setattr("diptych.index.rescored._CANDIDATES", 20)
    assert list(index.search(queries, 4)) == whole


def test_the_library_is_silent(engine, tmp_path, capfd):
    rows = random_rows(50)
    index = build_index(bags(rows), engine)
    open_index(index.save(tmp_path / "index")).search(rows, 3)
    print("heard again")
    assert capfd.readouterr() == ("heard again\n", "")


def test_without_the_library_its_line_is_named(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, LIBRARIES[engine], None)
    refused(MissingExtraError, r"pip install 'diptych\[engines\]'", build_index, bags(random_rows(5)), engine)


def test_items_that_are_not_there_are_not_scored(engine, monkeypatch):
    """What a damaged file of the library may name."""
    rows = random_rows(20)
    index = build_index(bags(rows), engine)
    monkeypatch.setattr(
        type(index), "_candidates", lambda *_: (np.full((1, 2), 10**9, dtype=np.int32), np.array([2]))
    )
    refused(StorageError, "names item 1000000000, the index holds 20", index.search, rows[:1], 2)


def test_errors_come_through_and_the_terminal_is_back(capfd):
    open_before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    with pytest.raises(ValueError, match="inside"), silenced():
        raise ValueError("inside")
    print("after")
    assert capfd.readouterr().out == "after\n"
    if open_before is not None:
        assert len(os.listdir("/proc/self/fd")) == open_before
