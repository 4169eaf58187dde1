from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.index import topk
from diptych.index.topk import order_hits, pair_scores, top_k
from diptych.index.vectors import RowStore


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
    for name, value in (
        ("_FEWEST_ROWS", 8),
        ("_MOST_ROWS", 8),
        ("_QUERIES", 3),
        ("_PAIR_FLOATS", 64),
        ("_SPARE", 0),
    ):
        patch.setattr(topk, name, value)


@pytest.fixture
def small_blocks(monkeypatch):
    shrink(monkeypatch)


def test_by_hand():
    rows = RowStore(np.array([[1, 0], [0, 1], [1, 1], [-1, 0]], dtype=np.float32))
    queries = np.array([[2, 1], [0, -1]], dtype=np.float32)
    slots, scores = top_k(rows, queries, 3)
    assert slots.tolist() == [[2, 0, 1], [0, 3, 1]]  # rows 0 and 3 tie at 0: the earlier first
    assert scores.tolist() == [[3, 2, 1], [0, 0, -1]]
    assert scores.dtype == np.float32


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


@pytest.mark.usefixtures("small_blocks")
def test_a_collapsed_model_gives_the_first_rows():
    row = np.random.default_rng(0).standard_normal((1, 33)).astype(np.float32)
    slots, scores = top_k(RowStore(np.repeat(row, 500, axis=0)), np.repeat(row, 4, axis=0), 5)
    assert slots.tolist() == [[0, 1, 2, 3, 4]] * 4
    assert len(np.unique(scores)) == 1


def test_a_result_does_not_depend_on_its_batch():
    rng = np.random.default_rng(1)
    rows = RowStore(rng.standard_normal((5000, 48)).astype(np.float32))
    queries = rng.standard_normal((40, 48)).astype(np.float32)
    slots, scores = top_k(rows, queries, 20)
    for query in range(0, 40, 7):
        alone = top_k(rows, queries[query : query + 1], 20)
        np.testing.assert_array_equal(alone[0][0], slots[query])
        np.testing.assert_array_equal(alone[1][0], scores[query])


@pytest.mark.usefixtures("small_blocks")
def test_rows_that_differ_by_rounding_only_are_ordered_by_their_own_scores():
    rng = np.random.default_rng(2)
    centre = rng.standard_normal(64).astype(np.float32)
    rows = centre * (1 + rng.integers(-2, 3, (300, 64)) * np.float32(6e-8))
    rows = rows.astype(np.float32)
    queries = rng.standard_normal((5, 64)).astype(np.float32)
    slots, scores = top_k(RowStore(rows), queries, 10)
    wanted, wanted_scores = brute_force(rows, queries, 10)
    np.testing.assert_array_equal(slots, wanted)
    np.testing.assert_array_equal(scores, wanted_scores)


def test_no_more_than_a_block_of_scores_is_held():
    import tracemalloc

    rng = np.random.default_rng(3)
    rows = RowStore(rng.standard_normal((60_000, 4)).astype(np.float32))
    queries = rng.standard_normal((1024, 4)).astype(np.float32)
    assert rows.norms.shape == (60_000,)
    tracemalloc.start()
    top_k(rows, queries, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole = 60_000 * 1024 * 4
    assert peak < whole / 3


def test_pair_scores_and_order():
    rows = RowStore(np.array([[1, 2], [3, 4]], dtype=np.float32))
    queries = np.array([[1, 0], [0, 1]], dtype=np.float32)
    assert pair_scores(rows, np.array([0, 1, 1]), queries, np.array([0, 0, 1])).tolist() == [1, 3, 4]
    assert order_hits(np.array([[5, 1, 2]]), np.array([[1.0, 1.0, 3.0]])).tolist() == [[2, 1, 0]]
