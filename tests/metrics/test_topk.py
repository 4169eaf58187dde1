from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_ranking import exact_scores

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.metrics import top_k
from diptych.metrics import topk as module


def slowly(queries: np.ndarray, gallery: np.ndarray, k: int) -> tuple[list[list[int]], list[list[float]]]:
    scores = exact_scores(queries, gallery)
    order = [sorted(range(len(gallery)), key=lambda row: (-mine[row], row))[:k] for mine in scores]
    return order, [[float(mine[row]) for row in rows] for mine, rows in zip(scores, order, strict=True)]


def test_by_hand() -> None:
    gallery = np.array([[0, 1], [1, 0], [1, 0], [2, 2]], np.float32)
    rows, scores = top_k(np.array([[1, 0], [0, -1]], np.float32), gallery, 3)
    assert rows.tolist() == [[3, 1, 2], [1, 2, 0]]
    assert scores.tolist() == [[2, 1, 1], [0, 0, -1]]


@settings(max_examples=60)
@given(data=st.data())
def test_agrees_with_a_full_sort_whatever_the_block(data: st.DataObject) -> None:
    n, m, d = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 60)), data.draw(st.integers(1, 6))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    noise = data.draw(st.sampled_from([0.0, 1e-7, 1.0]))
    scale = data.draw(st.sampled_from([1.0, 1e-30, 1e25]))
    queries = (scale * random.normal(size=(n, d))).astype(np.float32)
    gallery = random.normal(size=(1, d)) + noise * random.normal(size=(m, d))
    gallery = (scale * gallery[random.integers(0, m, m)]).astype(np.float32)
    k, block = data.draw(st.integers(1, 70)), data.draw(st.integers(1, 200))
    rows, scores = top_k(queries, gallery, k, block=block)
    expected_rows, expected_scores = slowly(queries, gallery, k)
    assert rows.tolist() == expected_rows
    assert scores.tolist() == expected_scores


def test_sums_that_differ_in_the_last_digit_only() -> None:
    random = np.random.default_rng(1)
    queries = np.full((4, 101), 1 / 3, np.float32)  # products of 48 bits, so that sums are rounded
    gallery = random.permuted(np.tile(random.normal(size=101).astype(np.float32), (300, 1)), axis=1)
    rows, scores = top_k(queries, gallery, 7)
    assert (rows.tolist(), scores.tolist()) == slowly(queries, gallery, 7)


def test_the_whole_gallery_is_searched_only_where_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    search = module._careful
    monkeypatch.setattr(
        module,
        "_careful",
        lambda *given: (searched.append(given[1].stop - given[1].start), search(*given))[1],
    )
    random = np.random.default_rng(0)
    queries, gallery = (random.normal(size=(n, 32)).astype(np.float32) for n in (20, 400))
    top_k(queries, gallery, 5)
    assert not searched
    gallery[:200] = gallery[0]
    queries[:3] = gallery[0]
    rows, _ = top_k(queries, gallery, 5)
    assert 3 <= sum(searched) < 20
    assert rows[:3].tolist() == [[0, 1, 2, 3, 4]] * 3


def test_what_cannot_be() -> None:
    rows, wide = np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)
    nan = np.array([[1, 1, 1], [np.nan, 1, 1]], np.float32)
    for gallery, k, options, error, message in (
        (rows, 0, {}, UsageError, "k is 0"),
        (rows, 1, {"block": 0}, UsageError, "block is 0"),
        (wide, 1, {}, DataError, "cannot search a gallery"),
        (rows[:0], 1, {}, DataError, "cannot search a gallery"),
        (nan, 1, {"gallery_ids": ["a", "b"]}, NumericalError, r"gallery 'b' \(row 1\)"),
    ):
        with pytest.raises(error, match=message):
            top_k(rows, gallery, k, **options)  # type: ignore[arg-type]
    assert top_k(rows[:0], rows, 1)[0].shape == (0, 1)
