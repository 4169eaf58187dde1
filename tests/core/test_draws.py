from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.draws import Draws, draw_below, draw_uniform, keys_of

MASK = 2**64 - 1


def mixed(bits: int) -> int:
    """One step of SplitMix64 with Python's own integers."""
    bits = (bits + 0x9E3779B97F4A7C15) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def state_of(keys: Sequence[int]) -> int:
    state = 0
    for key in keys:
        state = mixed((state + key) & MASK)
    return state


def slow_uniform(*keys: int) -> float:
    return (state_of(keys) >> 11) / 2**53


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5), st.integers(1, 1000))
def test_it_is_splitmix(keys: list[int], limit: int) -> None:
    assert draw_uniform(*keys).tolist() == [slow_uniform(*keys)]
    assert draw_below(limit, *keys).tolist() == [(state_of(keys) >> 11) * limit >> 53]


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    rows, places = np.array([7, 0, 123_456]), np.arange(4)
    drawn = draw_uniform(3, 1, rows[:, None], places)
    assert drawn.shape == (3, 4)
    for row, values in zip(rows.tolist(), drawn.tolist(), strict=True):
        assert values == [slow_uniform(3, 1, row, place) for place in places.tolist()]


def test_a_names_number_is_its_own() -> None:
    """CRC-32, which other programs know too: a draw can be made again anywhere."""
    assert keys_of(["a.jpg", "ü.jpg", ""]).tolist() == [2603921942, zlib.crc32("ü.jpg".encode()), 0]
    assert keys_of(["b", "a.jpg"])[1] == keys_of(["a.jpg"])[0]
    assert keys_of([]).tolist() == []
    assert keys_of(["\ud800"]).tolist() == [zlib.crc32(b"\xed\xa0\x80")]  # half a character is a name, too


def slow_stream(*keys: int) -> Iterator[int]:
    """53 bits in turn: the keys make the state, which then steps."""
    state = state_of(keys)
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        yield mixed(state) >> 11


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4), st.integers(1, 1000))
def test_a_stream_is_splitmix_of_its_keys(keys: list[int], limit: int) -> None:
    draws, slow = Draws(*keys), slow_stream(*keys)
    assert [draws.uniform() for _ in range(3)] == [next(slow) / 2**53 for _ in range(3)]
    assert [draws.below(limit) for _ in range(3)] == [next(slow) * limit >> 53 for _ in range(3)]
