from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint_file
from diptych.index import build_index, open_index
from diptych.index.storage import FileRecord, Header

from .rows import bags, random_rows

pytest.importorskip("seismic", reason="pyseismic-lsr (the extra 'engines') is not installed")


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


@pytest.mark.parametrize("width", [65_535, 65_536])
def test_vocabularies_of_any_size(width, tmp_path):
    columns = np.array([0, width - 1, width - 1, 7])
    rows = csr_array((np.ones(4, dtype=np.float32), columns, [0, 2, 3, 4]), shape=(3, width))
    index = build_index(bags(rows), "seismic")
    query = csr_array((np.float32([2]), [width - 1], [0, 1]), shape=(1, width))
    assert list(index.search(query, 3)) == [[("image-0", 2.0), ("image-1", 2.0)]]
    opened = open_index(index.save(tmp_path / "index"))
    assert list(opened.search(query, 3)) == [[("image-0", 2.0), ("image-1", 2.0)]]


def test_weights_beyond_half_precision_are_refused():
    with pytest.raises(DataError, match="a weight of 70000 is above 65504"):
        build_index(bags(np.array([[70_000.0]], dtype=np.float32)), "seismic")


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
