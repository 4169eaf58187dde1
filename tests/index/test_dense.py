"""Dense search: the k best exactly, the exact engine, and the graph that misses a few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapped import is_mapped

from diptych.index import build_index, open_index, vectors
from diptych.index.engines.exact import ExactIndex
from diptych.index.engines.hnsw import HnswIndex
from diptych.index.vectors import RowStore, top_k


def brute_force(rows, queries, k, alive=None):
    """One Python sort per query over pair-wise scores: larger first, equal ones by slot."""
    slots = [slot for slot in range(len(rows)) if alive is None or alive[slot]]
    best, scores = [], []
    for query in queries:
        scored = [(float(np.vecdot(rows[slot], query)), slot) for slot in slots]
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        best.append([slot for _, slot in scored[:k]])
        scores.append([score for score, _ in scored[:k]])
    return np.array(best), np.array(scores, dtype=np.float32)


def shrink(patch):
    """So that few rows make many blocks, and few ties too many candidates."""
    sizes = {"_FEWEST_ROWS": 8, "_MOST_ROWS": 8, "_QUERIES": 3, "_PAIR_FLOATS": 64, "_LARGEST": 4}
    for name, value in sizes.items():
        patch.setattr(vectors, name, value)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_equals_brute_force_whatever_the_blocks(data):
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    count, width = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 20))
    distinct = rng.standard_normal((data.draw(st.integers(1, count)), width)).astype(np.float32)
    rows = distinct[rng.integers(0, len(distinct), count)]  # duplicates, so ties of real numbers
    rows *= rng.choice([1, 1, 1, 1000, 0], (count, 1)).astype(np.float32)
    alive = rng.random(count) < data.draw(st.sampled_from([0.2, 0.9, 1.0]))
    alive[rng.integers(count)] = True
    k = data.draw(st.integers(1, int(alive.sum())))
    queries = rng.standard_normal((data.draw(st.integers(1, 7)), width)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        store = RowStore(rows[: count // 2])
        store.append(rows[count // 2 :])
        slots, scores = top_k(store, queries, k, alive)
    wanted, wanted_scores = brute_force(rows, queries, k, alive)
    np.testing.assert_array_equal(slots, wanted)
    np.testing.assert_array_equal(scores, wanted_scores)
    np.testing.assert_allclose(
        scores,
        np.take_along_axis(queries.astype(float) @ rows.T.astype(float), slots, 1),
        rtol=1e-4,
        atol=1e-2,
    )


def test_rows_that_differ_by_rounding_only_are_ordered_by_their_own_scores(monkeypatch):
    shrink(monkeypatch)
    rng = np.random.default_rng(2)
    rows = rng.standard_normal(64) * (1 + rng.integers(-2, 3, (300, 64)) * np.float32(6e-8))
    rows, queries = rows.astype(np.float32), rng.standard_normal((5, 64)).astype(np.float32)
    for found, wanted in zip(top_k(RowStore(rows), queries, 10), brute_force(rows, queries, 10), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_no_more_than_a_block_of_scores_is_held():
    import tracemalloc

    rng = np.random.default_rng(3)
    rows = RowStore(rng.standard_normal((60_000, 4)).astype(np.float32))
    queries = rng.standard_normal((1024, 4)).astype(np.float32)
    assert rows.longest > 0
    tracemalloc.start()
    top_k(rows, queries, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole = 60_000 * 1024 * 4
    assert peak < whole / 3


def test_built_rows_are_not_copied_and_saved_ones_are_mapped(make_embeddings, tmp_path):
    embeddings = make_embeddings(count=50)
    index = ExactIndex.build(embeddings)
    _, block = next(index._rows.blocks())
    assert np.shares_memory(block, embeddings.rows)
    folder = index.save(tmp_path / "index")
    for saved in (index, open_index(folder)):
        _, block = next(saved._rows.blocks())
        assert is_mapped(block)


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


def test_one_thread_builds_the_same_graph_and_the_callers_threads_stay(embeddings, tmp_path):
    import faiss

    for name in ("one", "two"):
        HnswIndex.build(embeddings).save(tmp_path / name)
    assert (tmp_path / "one" / "graph.faiss").read_bytes() == (tmp_path / "two" / "graph.faiss").read_bytes()
    before = faiss.omp_get_max_threads()
    HnswIndex.build(embeddings, threads=before + 1)
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
    assert not index._storage.codes.is_owned
    index.delete(["image-0"])
    assert not index._storage.codes.is_owned
    index.add(["image-0"], embeddings.rows[:1])
    assert index._storage.codes.is_owned
    assert index.search(embeddings.rows[:1], 1).ids == [["image-0"]]
    again = open_index(index.save(folder))
    assert again.tombstones == 1  # a graph keeps its tombstones
    assert again.rebuild().tombstones == 0
