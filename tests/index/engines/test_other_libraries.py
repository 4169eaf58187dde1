"""What the engines of other sparse libraries have in common, on each of them."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MissingExtraError, StorageError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint_file
from diptych.index import ENGINES, build_index, open_index
from diptych.index.rescored import silenced
from diptych.index.storage import FileRecord, Header

from .rows import bags, random_rows

LIBRARIES = {"seismic": "seismic", "pisa": "pyterrier_pisa"}
THOROUGH = {
    "seismic": {"query_cut": 1000, "heap_factor": 0.0, "n_postings": 10_000},
    "pisa": {"scale": 10_000.0, "query_scale": 1000.0},
}


@pytest.fixture(params=sorted(LIBRARIES))
def engine(request):
    pytest.importorskip(LIBRARIES[request.param], reason="the extra 'engines' is not installed")
    return request.param


def scattered_rows(count, width=60, terms=12, seed=0):
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
    rows, queries = scattered_rows(400), scattered_rows(50, seed=1)
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
    rows, queries = scattered_rows(80), scattered_rows(23, seed=1)
    index = build_index(bags(rows), engine)
    whole = list(index.search(queries, 4))
    monkeypatch.setattr("diptych.index.rescored._CANDIDATES", 20)
    assert list(index.search(queries, 4)) == whole


def test_the_library_is_silent(engine, tmp_path, capfd):
    rows = scattered_rows(50)
    index = build_index(bags(rows), engine)
    open_index(index.save(tmp_path / "index")).search(rows, 3)
    print("heard again")
    assert capfd.readouterr() == ("heard again\n", "")


def test_without_the_library_its_line_is_named(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, LIBRARIES[engine], None)
    refused(
        MissingExtraError, r"pip install 'diptych\[engines\]'", build_index, bags(scattered_rows(5)), engine
    )


def test_items_that_are_not_there_are_not_scored(engine, monkeypatch):
    """What a damaged file of the library may name."""
    rows = scattered_rows(20)
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


def needs(library):
    missing = find_spec(LIBRARIES[library]) is None
    return pytest.mark.skipif(missing, reason="the extra 'engines' is not installed")


pisa, seismic = needs("pisa"), needs("seismic")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of its own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pisa
def test_its_numbers_are_whole_parts_of_scaled_weights():
    """What the library finds is the best by impacts, not by weights, and what it gives are weights."""
    index = build_index(bags(np.float32([[0.019, 0.019], [0.025, 0.015], [0.009, 0.5]])), "pisa")
    # Impacts (1, 1), (2, 1), (0, 50); of the query (100, 0): the third item is lost.
    assert index.search([[1, 0]], 1).ids == [["image-1"]]
    assert next(iter(index.search_exact([[1, 0]], 3)))[-1][0] == "image-2"
    hits = next(iter(index.search([[1, 0]], 3)))
    assert [name for name, _ in hits] == ["image-1", "image-0"]
    assert [score for _, score in hits] == [np.float32(0.025), np.float32(0.019)]
    # Of equal impacts the first one: the true best is lost, and the recall says so.
    index = build_index(bags(np.float32([[0.011], [0.019]])), "pisa", sample=csr_array(np.float32([[1.0]])))
    assert index.search([[1]], 1).ids == [["image-0"]]
    finer = index.rebuild(scale=1000.0)
    assert finer.search([[1]], 1).ids == [["image-1"]]
    # A query's weight below 1 / query_scale is none.
    assert finer.search([[0.009]], 1).ids == [[]]
    assert finer.rebuild(query_scale=1000.0).search([[0.009]], 1).ids == [["image-1"]]


@pisa
def test_every_algorithm_finds_the_same():
    rows, queries = random_rows(600, 50), random_rows(30, 50, seed=1)
    index = build_index(bags(rows), "pisa")
    found = [
        list(index.search(queries, 10, algorithm=name)) for name in ENGINES.get("pisa").options[-1].choices
    ]
    assert all(hits == found[0] for hits in found)
    impacts, asked = np.floor(rows * 100.0), np.floor(queries * 100.0)
    best = np.sort(asked @ impacts.T, axis=1)[:, ::-1][:, :10]
    place = {name: row for row, name in enumerate(index.ids)}
    items = np.array([[place[name] for name in names] for names in index.search(queries, 10).ids])
    mine = (asked[:, None] * impacts[items]).sum(axis=2)
    np.testing.assert_array_equal(np.sort(mine, axis=1)[:, ::-1], best)


@pisa
def test_algorithms_that_are_none():
    rows = bags(random_rows(5, 4))
    said = r"unknown algorithm 'max_score'.*did you mean 'maxscore'"
    refused(UnknownNameError, said, build_index, rows, "pisa", algorithm="max_score")
    index = build_index(rows, "pisa")
    said = "unknown algorithm 'and'"
    refused(UnknownNameError, said, index.search, np.ones((1, 4)), 1, algorithm="and")
    refused(UsageError, "below 1e-06", build_index, rows, "pisa", scale=0)


@pisa
def test_temporary_files_go_with_the_index(temporary, tmp_path):
    rows = random_rows(30, 10)
    index = build_index(bags(rows), "pisa")
    assert len(list(temporary.iterdir())) == 1
    opened, before = open_index(index.save(tmp_path / "index")), list(index.search(rows, 5))
    del index
    gc.collect()
    assert not list(temporary.iterdir())
    assert list(opened.search(rows, 5)) == before
    del opened
    gc.collect()
    assert (tmp_path / "index" / "pt_meta.json").is_file()


@pisa
def test_a_build_that_fails_leaves_no_files(temporary, monkeypatch):
    def fail(rows):
        yield {"docno": "0", "toks": {"0": 1.0}}
        raise KeyboardInterrupt

    monkeypatch.setattr("diptych.index.engines.pisa._documents", fail)
    with pytest.raises(KeyboardInterrupt):
        build_index(bags(random_rows(30, 10)), "pisa")
    assert not list(temporary.iterdir())


@seismic
def test_looking_at_more_finds_more():
    rows, queries = random_rows(1000, 80), random_rows(64, 80, seed=1)
    index = build_index(bags(rows), "seismic", n_postings=60, sample=csr_array(queries))
    best = [set(ids) for ids in index.search_exact(queries, 10).ids]

    def recall(**options):
        found = index.search(queries, 10, **options).ids
        return np.mean([len(set(a) & b) for a, b in zip(found, best, strict=True)]) / 10

    assert recall(query_cut=1, heap_factor=1.0) < recall(query_cut=4, heap_factor=0.9)
    assert recall(query_cut=4, heap_factor=0.9) < recall(query_cut=80, heap_factor=0.0)
    assert index.about["recall"]["options"] == {"query_cut": 20, "heap_factor": 0.7, "n_knn": 0}
    assert index.about["recall"]["value"] == pytest.approx(recall())


@seismic
def test_neighbours_find_more_and_only_where_they_are_kept(tmp_path):
    rows, queries = random_rows(1000, 80), random_rows(64, 80, seed=1)
    index = build_index(bags(rows), "seismic", n_postings=60, nknn=8)
    with pytest.raises(UsageError, match="n_knn=9 neighbours are to be looked at, the index keeps nknn=8"):
        index.search(queries, 10, n_knn=9)
    best = [set(ids) for ids in index.search_exact(queries, 10).ids]

    def recall(of, n_knn):
        found = of.search(queries, 10, query_cut=1, heap_factor=1.0, n_knn=n_knn).ids
        return np.mean([len(set(a) & b) for a, b in zip(found, best, strict=True)])

    assert recall(index, 0) < recall(index, 8)
    opened = open_index(index.save(tmp_path / "index"))
    assert recall(opened, 8) == recall(index, 8)


@seismic
def test_vocabularies_of_any_size(tmp_path):
    for width in [65_535, 65_536]:
        columns = np.array([0, width - 1, width - 1, 7])
        rows = csr_array((np.ones(4, dtype=np.float32), columns, [0, 2, 3, 4]), shape=(3, width))
        index = build_index(bags(rows), "seismic")
        query = csr_array((np.float32([2]), [width - 1], [0, 1]), shape=(1, width))
        assert list(index.search(query, 3)) == [[("image-0", 2.0), ("image-1", 2.0)]]
        opened = open_index(index.save(tmp_path / "index"))
        assert list(opened.search(query, 3)) == [[("image-0", 2.0), ("image-1", 2.0)]]


@seismic
def test_weights_beyond_half_precision_are_refused():
    heavy = bags(np.array([[70_000.0]], dtype=np.float32))
    refused(DataError, "a weight of 70000 is above 65504", build_index, heavy, "seismic")


@seismic
def test_a_file_of_something_else_is_refused(tmp_path):
    folder = build_index(bags(random_rows(20, 10) + 1), "seismic").save(tmp_path / "index")
    other = build_index(bags(random_rows(30, 10) + 1), "seismic").save(tmp_path / "other")
    name = "lists.index.seismic"

    def put(content):
        (folder / name).write_bytes(content)
        header = Header.open(folder)
        header.files[name] = FileRecord(len(content), fingerprint_file(folder / name))
        header.write_header(folder)

    put((other / name).read_bytes())
    refused(StorageError, "20 items with terms expected, got 30", open_index, folder)
    put(b"nothing of the kind")
    refused(StorageError, "is corrupt: Failed to load index", open_index, folder)
