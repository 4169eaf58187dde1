"""Random numbers that are a function of the numbers they are for, without a generator for each.

Where thousands of rows need a draw each, and a row's draw must not depend on its neighbours, a hash of
(seed, epoch, row, …) is the draw.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

__all__ = ["draw_below", "draw_uniform", "keys_of"]


def keys_of(names: Sequence[str]) -> np.ndarray:
    """(n,) int64: a number for every name, so that a draw follows a thing wherever it stands."""
    return np.fromiter((zlib.crc32(name.encode()) for name in names), np.int64, len(names))


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
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = keys ^ (keys >> np.uint64(31))
    return mixed
