from __future__ import annotations

import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.draws import draw_below, draw_uniform, keys_of

MASK = 2**64 - 1


def slow_uniform(*keys: int) -> float:
    """SplitMix64 with Python's own integers, one step for each key."""
    bits = 0
    for key in keys:
        bits = (bits + key + 0x9E3779B97F4A7C15) & MASK
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
        bits ^= bits >> 31
    return (bits >> 11) / 2**53


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5))
def test_it_is_splitmix(keys: list[int]) -> None:
    assert draw_uniform(*keys).tolist() == [slow_uniform(*keys)]


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    rows, places = np.array([7, 0, 123_456]), np.arange(4)
    drawn = draw_uniform(3, 1, rows[:, None], places)
    assert drawn.shape == (3, 4)
    for row, values in zip(rows.tolist(), drawn.tolist(), strict=True):
        assert values == [slow_uniform(3, 1, row, place) for place in places.tolist()]


def test_draws_fill_the_range_evenly() -> None:
    drawn = draw_below(8, 0, np.arange(80_000))
    counts = np.bincount(drawn)
    assert counts.shape == (8,)
    assert np.abs(counts - 10_000).max() < 500  # five standard deviations
    assert draw_below(1, 0, np.arange(9)).tolist() == [0] * 9


def test_limits_can_differ() -> None:
    limits = np.array([1, 2, 1000])
    drawn = draw_below(limits, 5, np.arange(300)[:, None], np.arange(3))
    assert drawn.dtype == np.int64
    assert (drawn < limits).all()
    assert (drawn >= 0).all()
    assert drawn[:, 1].max() == 1
    assert drawn[:, 2].max() > 900


def test_a_names_number_is_its_own() -> None:
    """CRC-32, which other programs know too: a draw can be made again anywhere."""
    assert keys_of(["a.jpg", "ü.jpg", ""]).tolist() == [2603921942, zlib.crc32("ü.jpg".encode()), 0]
    assert keys_of(["b", "a.jpg"])[1] == keys_of(["a.jpg"])[0]
    assert keys_of([]).tolist() == []
