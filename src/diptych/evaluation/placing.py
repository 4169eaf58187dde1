"""What stands at each of the first places of a ranking, when ties leave the order open.

A discounted sum is linear in the gains at the places, so its expectation over all orders of the tied is
the sum over expected gains: at every place of a tie group the mean gain of the group. That is exact, and
takes one look at every member of a group, also of one that the cut-off runs through.
"""

from __future__ import annotations

import numpy as np

from diptych.evaluation.first_places import Firsts
from diptych.evaluation.ties import check_rule

__all__ = ["Places"]


class Places:
    """The first places of some queries under a tie rule.

    ``"expected"``: every place of a tie group holds the group's mean gain; ``"pessimistic"``: the tied with
    the least gain come first; ``"optimistic"``: those with the greatest; ``"compat"``: later gallery rows.

    Args:
        firsts: the lists, tied items included.
        depth: how many places; no list may be shorter.
        ties: the tie rule.

    Raises:
        UnknownNameError: no such rule.
    """

    def __init__(self, firsts: Firsts, depth: int, ties: str) -> None:
        check_rule(ties)
        local, place = firsts.local, firsts.place
        begins = np.ones(len(local), dtype=bool)
        begins[1:] = (local[1:] != local[:-1]) | (firsts.scores[1:] != firsts.scores[:-1])
        self._group = np.cumsum(begins) - 1
        self._rows, self._ties = firsts.rows, ties
        self._shape = (len(firsts.queries), depth)
        self._inside = np.flatnonzero(place < depth)
        self._at = (local[self._inside], place[self._inside])

    def gains(self, values: np.ndarray) -> np.ndarray:
        """(q, depth) the gain at each place.

        Args:
            values: the gain of every entry of the lists.
        """
        group = self._group
        if self._ties == "expected":
            sizes = np.bincount(group)
            placed = values
            if len(sizes) < len(group):
                placed = (np.bincount(group, weights=values) / sizes)[group]
        else:
            key = -self._rows if self._ties == "compat" else values
            placed = values[np.lexsort((-key if self._ties == "optimistic" else key, group))]
        found = np.empty(self._shape)
        found[self._at] = placed[self._inside]
        return found
