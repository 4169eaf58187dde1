"""Depths in a hierarchy: against all ways listed, with cycles, and longer than Python's stack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data.language.wordnet_tables import depths, inverted


def all_ways(above: Sequence[Sequence[int]], thing: int) -> list[int]:
    """The length of every way to a root, one by one."""
    if not above[thing]:
        return [0]
    return [1 + way for other in above[thing] for way in all_ways(above, other)]


@st.composite
def hierarchies(draw: st.DrawFn) -> list[list[int]]:
    """Things that lie above each other in one direction only, numbered in any order."""
    n = draw(st.integers(0, 7))
    order = draw(st.permutations(range(n)))
    above: list[list[int]] = [[] for _ in range(n)]
    for place, thing in enumerate(order):
        above[thing] = [other for other in order[:place] if draw(st.booleans())]
    return above


@given(hierarchies())
def test_the_shortest_and_the_longest_of_all_ways(above: list[list[int]]) -> None:
    found = depths(above)
    assert found.shape == (len(above), 2)
    for thing in range(len(above)):
        ways = all_ways(above, thing)
        assert found[thing].tolist() == [min(ways), max(ways)]


def test_by_hand() -> None:
    #  0 ← 1 ← 2 ← 4 and 0 ← 3 ← 4
    assert depths([[], [0], [1], [0], [2, 3]]).tolist() == [[0, 0], [1, 1], [2, 2], [1, 1], [2, 3]]
    assert inverted([[], [0], [1], [0], [2, 3]]) == [[1, 3], [2], [4], [4], []]


@pytest.mark.parametrize("above", [[[0]], [[1], [0]], [[1], [2], [0, 3], []]])
def test_a_cycle_ends(above: list[list[int]]) -> None:
    found = depths(above)
    assert np.all(found[:, 0] <= found[:, 1])
    assert found.max() < len(above)


def test_a_chain_longer_than_the_stack() -> None:
    n = 20_000
    found = depths([[row + 1] for row in range(n - 1)] + [[]])
    assert found[0].tolist() == [n - 1, n - 1]


@given(hierarchies())
def test_inverting_twice_keeps_who_is_above(above: list[list[int]]) -> None:
    twice = inverted(inverted(above))
    assert [sorted(others) for others in twice] == [sorted(others) for others in above]
