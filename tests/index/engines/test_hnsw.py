from __future__ import annotations

import numpy as np
import pytest

from diptych.index import build_index, open_index
from diptych.index.engines.hnsw import HnswIndex


@pytest.fixture(scope="module")
def embeddings(make_embeddings):
    return make_embeddings(count=800, width=24)


def test_scores_are_the_exact_ones_to_the_last_bit(embeddings):
    exact, index = build_index(embeddings), build_index(embeddings, "hnsw", ef_search=800)
    queries = embeddings.rows[:200] + np.float32(0.05)
    mine, best = index.search(queries, 10), exact.search(queries, 10)
    agree = [list(a) == list(b) for a, b in zip(mine.ids, best.ids, strict=True)]
    assert np.mean(agree) > 0.95
    for row in np.flatnonzero(agree):
        np.testing.assert_array_equal(mine.scores[row], best.scores[row])
    np.testing.assert_array_equal(index.search_exact(queries, 10).scores, best.scores)


def test_one_thread_builds_the_same_graph(embeddings, tmp_path):
    for name in ("one", "two"):
        HnswIndex.build(embeddings).save(tmp_path / name)
    assert (tmp_path / "one" / "graph.faiss").read_bytes() == (tmp_path / "two" / "graph.faiss").read_bytes()


def test_the_callers_threads_are_left_as_they_were(make_embeddings):
    import faiss

    before = faiss.omp_get_max_threads()
    HnswIndex.build(make_embeddings(count=5), threads=before + 1)
    assert faiss.omp_get_max_threads() == before


def test_more_candidates_find_more(embeddings):
    index = build_index(embeddings, "hnsw", m=3, ef_construction=5, ef_search=1)
    best = build_index(embeddings).search(embeddings.rows, 10).ids

    def recall(**options):
        found = index.search(embeddings.rows, 10, **options).ids
        return np.mean([len(set(a) & set(b)) for a, b in zip(found, best, strict=True)]) / 10

    assert recall() < recall(ef_search=64) <= recall(ef_search=800)
    assert index.options["ef_search"] == 1


def test_k_live_items_come_back_whatever_is_deleted(embeddings):
    index, exact = build_index(embeddings, "hnsw"), build_index(embeddings)
    deleted = [name for place, name in enumerate(embeddings.ids) if place % 40]
    index.delete(deleted)
    exact.delete(deleted)
    assert len(index) == 20
    for k in (1, 5, 20):
        hits = index.search(embeddings.rows[:64], k, ef_search=1)
        assert hits.found.tolist() == [k] * 64
        assert not {name for ids in hits.ids for name in ids} & set(deleted)
    assert list(index.search(embeddings.rows[:64], 20).ids) == list(
        exact.search(embeddings.rows[:64], 20).ids
    )


def test_a_graph_in_pieces_still_gives_k_items(make_embeddings):
    # The inner product links everything to the longest rows only; some items cannot be reached.
    rows = np.random.default_rng(5).standard_normal((300, 2)).astype(np.float32)
    rows *= np.geomspace(1e-3, 1e3, 300, dtype=np.float32)[:, None]
    index, exact = (build_index(make_embeddings(rows), name) for name in ("hnsw", "exact"))
    graph = index._graph.search(rows[:20], 300)[1]
    assert (graph < 0).any()  # so the case is the one it should be
    assert list(index.search(rows[:20], 300).ids) == list(exact.search(rows[:20], 300).ids)


def test_opened_rows_are_mapped_until_items_are_added(embeddings, tmp_path):
    folder = build_index(embeddings, "hnsw").save(tmp_path / "index")
    index = open_index(folder)
    assert isinstance(index, HnswIndex)
    assert not index._storage.codes.is_owned
    index.delete(["image-0"])
    assert not index._storage.codes.is_owned
    index.add(["image-0"], embeddings.rows[:1])
    assert index._storage.codes.is_owned
    assert index.search(embeddings.rows[:1], 1).ids == [["image-0"]]
    again = open_index(index.save(folder))
    assert again.tombstones == 1  # a graph keeps its tombstones
    assert again.rebuild().tombstones == 0
