"""How deep things lie in a hierarchy in which a thing may be a kind of several others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["depths", "inverted"]


def depths(above: Sequence[Sequence[int]]) -> np.ndarray:
    """The shortest and the longest way from each thing to a root, in steps.

    Args:
        above: for each thing the numbers of those directly above it; a root has none.

    Returns:
        (n, 2) int32. A way that comes back to where it was is not gone further, so that a cycle, which no
        hierarchy should have, ends like a root.
    """
    found: list[tuple[int, int] | None] = [None] * len(above)
    for start in range(len(above)):
        if found[start] is not None:
            continue
        path, on_path = [start], {start}  # not recursive: a chain may be longer than Python's stack
        while path:
            thing = path[-1]
            open_ones = [other for other in above[thing] if found[other] is None and other not in on_path]
            if open_ones:
                path.append(open_ones[0])
                on_path.add(open_ones[0])
                continue
            ways = [way for other in above[thing] if (way := found[other]) is not None]
            found[thing] = (
                (1 + min(low for low, _ in ways), 1 + max(high for _, high in ways)) if ways else (0, 0)
            )
            on_path.discard(path.pop())
    return np.asarray(found, dtype=np.int32).reshape(len(above), 2)


def inverted(above: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each thing those directly below it, in their order."""
    below: list[list[int]] = [[] for _ in above]
    for thing, others in enumerate(above):
        for other in others:
            below[other].append(thing)
    return below
