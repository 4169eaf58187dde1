"""Blocks of a range, and lists of different lengths that lie end to end in one array."""

from collections.abc import Iterator

import numpy as np


def blocks(size: int, step: int, begin: int = 0) -> Iterator[slice]:
    """Yield the slices of [begin, size), ``step`` long but for the last; one long where ``step`` is less."""
    step = max(1, step)
    for start in range(begin, size, step):
        yield slice(start, min(start + step, size))


def starts(counts: np.ndarray) -> np.ndarray:
    """Return (n + 1,) where each of n lists of so many entries begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)])


def places(counts: np.ndarray) -> np.ndarray:
    """Return the place of every entry in its list, from 0."""
    return np.asarray(np.arange(counts.sum()) - np.repeat(starts(counts)[:-1], counts))


def begins(*keys: np.ndarray) -> np.ndarray:
    """Return booleans: where an entry differs from the one before in any of (n,) keys."""
    found = np.ones(len(keys[0]), dtype=bool)
    found[1:] = False
    for key in keys:
        found[1:] |= key[1:] != key[:-1]
    return found
