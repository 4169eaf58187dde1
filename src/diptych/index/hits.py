"""What a search returns: ids and scores, best first, never padded in silence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Hits:
    """The best items for each query, best first.

    Where fewer than ``asked`` items were found, a query's list simply ends: :attr:`found` says
    where, :attr:`note` says so in words, and no placeholder stands in any list.

    Attributes:
        ids: one list of item ids per query.
        scores: (q, longest list) float32; ``scores[i, :found[i]]`` belong to ``ids[i]``, what lies
            beyond is ``-inf``.
        asked: k, how many were asked for.
    """

    ids: Sequence[Sequence[str]]
    scores: np.ndarray
    asked: int

    @classmethod
    def from_slots(cls, names: np.ndarray, slots: np.ndarray, scores: np.ndarray, asked: int) -> Hits:
        """Hits from (q, k) ``slots`` into ``names`` (an object array of ids); all are found."""
        ids: Any = names[slots].tolist()
        return cls(ids, np.ascontiguousarray(scores, dtype=np.float32), asked)

    @classmethod
    def ragged(
        cls, names: np.ndarray, slots: np.ndarray, scores: np.ndarray, found: np.ndarray, asked: int
    ) -> Hits:
        """As :meth:`from_slots`, but of query i only the first ``found[i]`` are found.

        What lies beyond in ``slots`` is ignored and must be a slot nevertheless; in ``scores`` it is
        ``-inf`` afterwards.
        """
        longest = int(found.max(initial=0))
        listed: Any = names[slots[:, :longest]].tolist()
        ids = [one[:count] for one, count in zip(listed, found.tolist(), strict=True)]
        kept = np.array(scores[:, :longest], dtype=np.float32)
        kept[np.arange(longest) >= found[:, None]] = -np.inf
        return cls(ids, kept, asked)

    @classmethod
    def none(cls, queries: int, asked: int) -> Hits:
        """No hit for any of so many queries."""
        return cls([[] for _ in range(queries)], np.empty((queries, 0), dtype=np.float32), asked)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[list[tuple[str, float]]]:
        for ids, scores in zip(self.ids, self.scores, strict=True):
            yield list(zip(ids, scores[: len(ids)].tolist(), strict=True))

    @property
    def found(self) -> np.ndarray:
        """(q,) int64: how many items each query's list holds."""
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)

    @property
    def note(self) -> str:
        """A sentence when a list is shorter than asked for, else nothing."""
        short = self.found[self.found < self.asked]
        if not len(short):
            return ""
        return (
            f"{self.asked:,} hits were asked for; {len(short):,} of {len(self):,} queries have fewer "
            f"(the fewest: {short.min():,}), for the index holds no more for them"
        )
