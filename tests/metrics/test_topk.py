"""Products, and the best of a gallery: ``top_k``, and first places with all that tie, against sorting everything."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from slow_ranking import exact_scores

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.metrics import top_k
from diptych.metrics import topk as module
from diptych.metrics.ground_truth import Direction
from diptych.metrics.products import check_rows, pair_scores, rounding_band
from diptych.metrics.relevance import gains_at_places
from diptych.metrics.sources import DirectedScores, RowProducts
from diptych.metrics.topk import Firsts, first_places


def test_a_score_does_not_depend_on_its_neighbours_or_on_its_sides() -> None:
    for width in (1, 3, 7, 64, 129, 300, 1025):
        random = np.random.default_rng(width)
        left = random.normal(size=(9, width)).astype(np.float32)
        right = random.normal(size=(40, width)).astype(np.float32)
        i, j = random.integers(0, 9, 500), random.integers(0, 40, 500)
        together = pair_scores(left, right, i, j).tolist()
        assert together == [pair_scores(left, right, i[p : p + 1], j[p : p + 1])[0] for p in range(500)]
        assert together == pair_scores(right, left, j, i).tolist()
        copies = np.repeat(right[:1], 40, axis=0)
        assert len(set(pair_scores(left[:1], copies, np.zeros(40, int), np.arange(40)))) == 1


def test_scores_agree_with_fractions() -> None:
    random = np.random.default_rng(0)
    left, right = (random.normal(size=(1, 50)).astype(np.float32) for _ in range(2))
    exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(left[0], right[0], strict=True))
    zero = np.zeros(1, dtype=int)
    assert math.isclose(pair_scores(left, right, zero, zero)[0], float(exact), rel_tol=0, abs_tol=1e-14)


def test_no_product_leaves_the_band() -> None:
    for scale in (1.0, 1e-22, 1e12):
        for kind in (np.float32, np.float64):
            random = np.random.default_rng(1)
            left = (scale * random.normal(size=(60, 200))).astype(np.float32)
            right = (scale * random.normal(size=(80, 200))).astype(np.float32)
            product = left.astype(kind) @ right.astype(kind).T
            i, j = np.indices(product.shape).reshape(2, -1)
            error = np.abs(product - pair_scores(left, right, i, j).reshape(product.shape)).max(axis=1)
            band = rounding_band(
                200, np.dtype(kind), check_rows(left, "left"), check_rows(right, "right").max()
            )
            assert np.all(error <= band)
            if scale == 1.0:
                assert np.all(band < 2000 * np.finfo(kind).eps * 200)  # a bound, not a blanket


def test_bounds_of_norms_and_rows_that_are_none() -> None:
    assert rounding_band(4, np.dtype(np.float32), np.array([1e20]), 1e20).tolist() == [math.inf]
    assert rounding_band(4, np.dtype(np.float64), np.array([1e20]), 1e20)[0] < 1e26
    rows = np.array([[3, 4], [0, 0], [3e38, 3e38]], np.float32)
    norms = check_rows(rows, "image")
    assert np.all(norms >= [5, 0, 3e38 * 2**0.5 * (1 - 1e-7)])
    assert np.all(norms <= [5.0001, 1e-15, 4.3e38])
    for rows, ids, error, message in (
        (NAN, list("abcde"), NumericalError, r"image 'd' \(row 3\) is not finite"),
        (INFINITE, None, NumericalError, r"image \(row 3\) is not finite"),
        (np.ones((2, 2)), None, DataError, "float64 with shape"),
        (np.ones(2, np.float32), None, DataError, r"float32 with shape \(2,\)"),
        (np.ones((2, 2), np.float32), ["a"], DataError, "1 image ids for 2 image rows"),
    ):
        refused(error, message, check_rows, rows, "image", ids)


NAN, INFINITE = np.ones((5, 3), np.float32), np.ones((5, 3), np.float32)
NAN[3, 1], INFINITE[3, 1] = np.nan, -np.inf


def slowly(queries: np.ndarray, gallery: np.ndarray, k: int) -> tuple[list[list[int]], list[list[float]]]:
    scores = exact_scores(queries, gallery)
    order = [sorted(range(len(gallery)), key=lambda row: (-mine[row], row))[:k] for mine in scores]
    return order, [[float(mine[row]) for row in rows] for mine, rows in zip(scores, order, strict=True)]


def test_the_best_by_hand() -> None:
    gallery = np.array([[0, 1], [1, 0], [1, 0], [2, 2]], np.float32)
    rows, scores = top_k(np.array([[1, 0], [0, -1]], np.float32), gallery, 3)
    assert rows.tolist() == [[3, 1, 2], [1, 2, 0]]
    assert scores.tolist() == [[2, 1, 1], [0, 0, -1]]
    queries = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    gallery = np.array([[0.5, 0], [0.5, 1], [0.25, 1], [0.5, 1]], dtype=np.float32)
    found = lists(list(first_places(sided(queries, gallery), 1)))
    assert found == {0: [(0, 0.5), (1, 0.5), (3, 0.5)], 1: [(1, 1.0), (2, 1.0), (3, 1.0)]}
    assert lists(list(first_places(sided(queries, gallery), 4)))[0][-1] == (2, 0.25)
    assert lists(list(first_places(sided(queries, gallery), 99))) == slow_lists(
        exact_scores(queries, gallery), 4
    )
    #                 query 0: one, three that tie; query 1: two that tie
    firsts = Firsts(
        np.array([4, 9]),
        np.array([0, 4, 6]),
        np.array([7, 1, 2, 3, 5, 6]),
        np.array([0.9, 0.5, 0.5, 0.5, 0.1, 0.1]),
    )
    values = np.array([0.2, 0.0, 0.6, 0.3, 1.0, 0.0])
    by_hand = {
        "expected": [[0.2, 0.3], [0.5, 0.5]],
        "pessimistic": [[0.2, 0.0], [0.0, 1.0]],
        "optimistic": [[0.2, 0.6], [1.0, 0.0]],
        "compat": [[0.2, 0.3], [0.0, 1.0]],  # rows 3 and 6 come first
    }
    for rule, expected in by_hand.items():
        assert gains_at_places(firsts, values, 2, rule) == pytest.approx(np.array(expected)), rule


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
        (wide, 1, {}, DataError, "query rows have width 3, gallery rows 4"),
        (rows[:0], 1, {}, DataError, "cannot search a gallery"),
        (nan, 1, {}, NumericalError, r"gallery \(row 1\) is not finite"),
    ):
        refused(error, message, top_k, rows, gallery, k, **options)
    assert top_k(rows[:0], rows, 1)[0].shape == (0, 1)


def sided(queries: np.ndarray, gallery: np.ndarray, direction: Direction = "i2t") -> DirectedScores:
    sides = (queries, gallery) if direction == "i2t" else (gallery, queries)
    return DirectedScores(RowProducts(*sides), direction)


def lists(found: list[Firsts]) -> dict[int, list[tuple[int, float]]]:
    """Per query, gallery rows and scores."""
    made = {}
    for part in found:
        for place, query in enumerate(part.queries.tolist()):
            assert query not in made
            here = slice(part.start[place], part.start[place + 1])
            made[query] = list(zip(part.rows[here].tolist(), part.scores[here].tolist(), strict=True))
    return made


def slow_lists(scores: np.ndarray, depth: int) -> dict[int, list[tuple[int, float]]]:
    """The same by sorting everything."""
    made = {}
    for query, row in enumerate(scores.tolist()):
        order = sorted(range(len(row)), key=lambda place: (-row[place], place))
        last = row[order[min(depth, len(row)) - 1]]
        made[query] = [(place, row[place]) for place in order if row[place] >= last]
    return made


@settings(max_examples=80)
@given(data=st.data())
def test_agrees_with_sorting_everything(data: st.DataObject) -> None:
    """Equal rows, rows that differ in their last digit, and galleries longer than what is proposed."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, m = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([1, 3, 20, 60]))
    width = data.draw(st.sampled_from([1, 3, 30]))
    kinds = random.normal(size=(data.draw(st.sampled_from([1, 2, 5, 60])), width)).astype(np.float32)
    gallery = kinds[random.integers(0, len(kinds), m)]
    if data.draw(st.booleans()):
        gallery = gallery * np.where(random.random((m, 1)) < 0.5, np.float32(1), np.float32(1 + 2**-23))
    scale = np.float32(data.draw(st.sampled_from([1.0, 1e-30, 1e25])))
    gallery, queries = scale * gallery, scale * random.normal(size=(n, width)).astype(np.float32)
    direction: Direction = data.draw(st.sampled_from(["i2t", "t2i"]))
    depth, block = data.draw(st.integers(1, 25)), data.draw(st.sampled_from([1, 7, 100, 2_500_000]))
    found = lists(list(first_places(sided(queries, gallery, direction), depth, block=block)))
    assert found == slow_lists(exact_scores(queries, gallery), depth)


def test_a_long_gallery_and_queries_that_tie_with_all_of_it() -> None:
    """The best stand behind the columns that are looked at first; the queries scored again are not neighbours."""
    random = np.random.default_rng(5)
    gallery = random.normal(size=(700, 8)).astype(np.float32)
    gallery[600:] *= 3
    queries = random.normal(size=(6, 8)).astype(np.float32)
    queries[[0, 2, 3, 5]] = 0
    expected = slow_lists(exact_scores(queries, gallery), 3)
    for block in (1, 4000, 2_500_000):
        assert lists(list(first_places(sided(queries, gallery), 3, block=block))) == expected


def test_every_tile_is_shown_once() -> None:
    random = np.random.default_rng(1)
    same = np.ones((30, 4), dtype=np.float32)  # a collapsed model: everything is scored again
    for gallery in (random.normal(size=(30, 4)).astype(np.float32), same):
        queries = random.normal(size=(7, 4)).astype(np.float32)
        for block in (1, 50, 2_500_000):
            sums = np.zeros(7)

            def add(here: slice, tile: np.ndarray, sums: np.ndarray = sums) -> None:
                sums[here] += tile.sum(axis=1)

            assert list(first_places(sided(queries, gallery), 2, block=block, visit=add))
            assert sums.tolist() == pytest.approx(
                exact_scores(queries, gallery).sum(axis=1).tolist(), rel=1e-4
            )
