"""Random numbers that are a function of the numbers they are for, without a generator for each.

Where thousands of rows need a draw each, and a row's draw must not depend on its neighbours, a hash of
(seed, epoch, row, …) is the draw. Where one thing needs several draws in turn, :class:`Draws` is a stream of
them that belongs to its keys only.
"""

import zlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

_STEP, _FIRST, _SECOND, _MASK = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 2**64 - 1


def keys_of(names: Sequence[str]) -> np.ndarray:
    """(n,) int64: a number for every name, so that a draw follows a thing wherever it stands."""
    return np.fromiter((_number_of(name) for name in names), np.int64, len(names))


def _number_of(name: str) -> int:
    return zlib.crc32(name.encode(errors="surrogatepass"))  # a name may hold half a character


def draw_uniform(*keys: int | np.ndarray) -> np.ndarray:
    """Draws in [0, 1), float64: the same keys give the same draws.

    Args:
        keys: whole numbers and arrays of them, which are broadcast against each other from left to
            right: ``draw_uniform(seed, epoch, rows[:, None], places)`` is (rows, places).

    Returns:
        An array of the keys' common shape; (1,) when all of them are single numbers.
    """
    bits = np.zeros(1, dtype=np.uint64)
    for key in keys:
        number = key.astype(np.uint64) if isinstance(key, np.ndarray) else np.uint64(key % 2**64)
        bits = _mixed(bits + number)
    draws: np.ndarray = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return draws


def draw_below(limit: int | np.ndarray, *keys: int | np.ndarray) -> np.ndarray:
    """Draws in 0, …, ``limit`` - 1, int64, of keys as :func:`draw_uniform` takes them.

    A ``limit`` is below 2^31, so that no number is visibly more frequent than another.
    """
    return (draw_uniform(*keys) * limit).astype(np.int64)


def _mixed(keys: np.ndarray) -> np.ndarray:
    """One step of SplitMix64 (Steele et al. 2014): every bit of the result depends on every bit given."""
    keys = keys + np.uint64(_STEP)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(_FIRST)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(_SECOND)
    mixed: np.ndarray = keys ^ (keys >> np.uint64(31))
    return mixed


class Draws:
    """Draws in turn that are a function of the keys: ``Draws(seed, "character-swap", caption_id)``."""

    def __init__(self, *keys: int | str) -> None:
        state = 0
        for key in keys:
            number = _number_of(key) if isinstance(key, str) else key
            state = _mixed_number((state + number) & _MASK)
        self._state = state

    def _next(self) -> int:
        self._state = (self._state + _STEP) & _MASK
        return _mixed_number(self._state)

    def uniform(self) -> float:
        """In [0, 1)."""
        return (self._next() >> 11) * 2.0**-53

    def below(self, limit: int) -> int:
        """0, …, ``limit`` - 1."""
        if limit < 1:
            raise ValueError(f"a draw below {limit}")
        return (self._next() >> 11) * limit >> 53

    def choice(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def _mixed_number(key: int) -> int:
    """:func:`_mixed` of one number, in plain Python: no array is made for it."""
    key = (key + _STEP) & _MASK
    key = ((key ^ (key >> 30)) * _FIRST) & _MASK
    key = ((key ^ (key >> 27)) * _SECOND) & _MASK
    return key ^ (key >> 31)
