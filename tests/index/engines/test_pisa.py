from __future__ import annotations

import gc
import tempfile

import numpy as np
import pytest
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import UnknownNameError, UsageError
from diptych.index import build_index, open_index
from diptych.index.engines.pisa import ALGORITHMS

from .rows import bags, random_rows

pytest.importorskip("pyterrier_pisa", reason="pyterrier-pisa (the extra 'engines') is not installed")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of its own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


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


def test_every_algorithm_finds_the_same():
    rows, queries = random_rows(600, 50), random_rows(30, 50, seed=1)
    index = build_index(bags(rows), "pisa")
    found = [list(index.search(queries, 10, algorithm=name)) for name in ALGORITHMS]
    assert all(hits == found[0] for hits in found)
    impacts, asked = np.floor(rows * 100.0), np.floor(queries * 100.0)
    best = np.sort(asked @ impacts.T, axis=1)[:, ::-1][:, :10]
    place = {name: row for row, name in enumerate(index.ids)}
    items = np.array([[place[name] for name in names] for names in index.search(queries, 10).ids])
    mine = (asked[:, None] * impacts[items]).sum(axis=2)
    np.testing.assert_array_equal(np.sort(mine, axis=1)[:, ::-1], best)


def test_algorithms_that_are_none():
    with pytest.raises(UnknownNameError, match=r"unknown algorithm 'max_score'.*did you mean 'maxscore'"):
        build_index(bags(random_rows(5, 4)), "pisa", algorithm="max_score")
    index = build_index(bags(random_rows(5, 4)), "pisa")
    with pytest.raises(UnknownNameError, match="unknown algorithm 'and'"):
        index.search(np.ones((1, 4)), 1, algorithm="and")
    refused(UsageError, "below 1e-06", build_index, bags(random_rows(5, 4)), "pisa", scale=0)


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


def test_a_build_that_fails_leaves_no_files(temporary, monkeypatch):
    def fail(rows):
        yield {"docno": "0", "toks": {"0": 1.0}}
        raise KeyboardInterrupt

    monkeypatch.setattr("diptych.index.engines.pisa._documents", fail)
    with pytest.raises(KeyboardInterrupt):
        build_index(bags(random_rows(30, 10)), "pisa")
    assert not list(temporary.iterdir())
