from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_ranking import exact_scores

from diptych.metrics.ground_truth import Direction
from diptych.metrics.products import pair_scores
from diptych.metrics.relevance import gains_at_places
from diptych.metrics.sources import DirectedScores, OrderScores, RowProducts
from diptych.metrics.topk import Firsts, first_places


def sided(queries: np.ndarray, gallery: np.ndarray, direction: Direction = "i2t") -> DirectedScores:
    sides = (queries, gallery) if direction == "i2t" else (gallery, queries)
    return DirectedScores(RowProducts(*sides), direction)


def lists(found: list[Firsts]) -> dict[int, list[tuple[int, float]]]:
    """Per query, gallery rows and scores."""
    said = {}
    for part in found:
        for place, query in enumerate(part.queries.tolist()):
            assert query not in said
            here = slice(part.start[place], part.start[place + 1])
            said[query] = list(zip(part.rows[here].tolist(), part.scores[here].tolist(), strict=True))
    return said


def slow_lists(scores: np.ndarray, depth: int) -> dict[int, list[tuple[int, float]]]:
    """The same by sorting everything."""
    said = {}
    for query, row in enumerate(scores.tolist()):
        order = sorted(range(len(row)), key=lambda place: (-row[place], place))
        last = row[order[min(depth, len(row)) - 1]]
        said[query] = [(place, row[place]) for place in order if row[place] >= last]
    return said


def exact(queries: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    grid = np.indices((len(queries), len(gallery))).reshape(2, -1)
    return pair_scores(queries, gallery, *grid).reshape(len(queries), len(gallery))


def test_by_hand() -> None:
    queries = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    gallery = np.array([[0.5, 0], [0.5, 1], [0.25, 1], [0.5, 1]], dtype=np.float32)
    found = lists(list(first_places(sided(queries, gallery), 1)))
    assert found == {0: [(0, 0.5), (1, 0.5), (3, 0.5)], 1: [(1, 1.0), (2, 1.0), (3, 1.0)]}
    assert lists(list(first_places(sided(queries, gallery), 4)))[0][-1] == (2, 0.25)
    assert lists(list(first_places(sided(queries, gallery), 99))) == slow_lists(
        exact_scores(queries, gallery), 4
    )


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
    queries = random.normal(size=(n, width)).astype(np.float32)
    direction: Direction = data.draw(st.sampled_from(["i2t", "t2i"]))
    depth, block = data.draw(st.integers(1, 25)), data.draw(st.sampled_from([1, 7, 100, 2_500_000]))
    found = lists(list(first_places(sided(queries, gallery, direction), depth, block=block)))
    assert found == slow_lists(exact(queries, gallery), depth)


@pytest.mark.parametrize("block", [1, 4000, 2_500_000])
def test_a_long_gallery_and_queries_that_tie_with_all_of_it(block: int) -> None:
    """The best stand behind the columns that are looked at first; the queries scored again are not neighbours."""
    random = np.random.default_rng(5)
    gallery = random.normal(size=(700, 8)).astype(np.float32)
    gallery[600:] *= 3
    queries = random.normal(size=(6, 8)).astype(np.float32)
    queries[[0, 2, 3, 5]] = 0
    found = lists(list(first_places(sided(queries, gallery), 3, block=block)))
    assert found == slow_lists(exact(queries, gallery), 3)


def test_order_embeddings_which_have_no_fast_way() -> None:
    random = np.random.default_rng(0)
    images, texts = (random.integers(0, 3, (n, 3)).astype(np.float32) for n in (5, 9))
    scores = -np.square(np.maximum(texts[None] - images[:, None], 0)).sum(axis=2)
    source = OrderScores(images, texts)
    for block in (1, 10, 2_500_000):
        assert lists(list(first_places(DirectedScores(source, "i2t"), 3, block=block))) == slow_lists(
            scores, 3
        )
        assert lists(list(first_places(DirectedScores(source, "t2i"), 3, block=block))) == slow_lists(
            scores.T, 3
        )


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
            assert sums.tolist() == pytest.approx(exact(queries, gallery).sum(axis=1).tolist(), rel=1e-4)


def test_places_of_ties() -> None:
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
