"""Which id stands in which slot, and which slots are dead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class IdTable:
    """Slots numbered in order of insertion, each with an id; a deleted item leaves a dead slot.

    Args:
        dead: (n,) bool, which of them are dead; the live ids are unique. None: all live.
    """

    def __init__(self, ids: Sequence[str], dead: np.ndarray | None = None) -> None:
        self._names = np.array([*ids, None], dtype=object)[:-1]
        self._alive = np.ones(len(self._names), dtype=bool) if dead is None else ~dead
        self._slot_of: dict[str, int] | None = None

    def _slots(self) -> dict[str, int]:
        if self._slot_of is None:
            live = self.live_slots()
            self._slot_of = dict(zip(self._names[live].tolist(), live.tolist(), strict=True))
        return self._slot_of

    @property
    def names(self) -> np.ndarray:
        """(slots,) object: the id of every slot, dead ones included."""
        return self._names

    @property
    def alive(self) -> np.ndarray | None:
        """(slots,) bool: which can be found; None when all can."""
        return None if self._alive.all() else self._alive

    @property
    def live(self) -> int:
        """How many slots are not dead."""
        return int(np.count_nonzero(self._alive))

    def live_slots(self) -> np.ndarray:
        """(live,) int64: the slots that are not dead, in order."""
        return np.flatnonzero(self._alive)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._slots()

    def append(self, names: Sequence[str]) -> None:
        """Give the next slots to ids that no live slot has."""
        slots = self._slots()
        slots.update((name, len(self) + place) for place, name in enumerate(names))
        self._names = np.concatenate([self._names, np.array([*names, None], dtype=object)[:-1]])
        self._alive = np.concatenate([self._alive, np.ones(len(names), dtype=bool)])

    def kill(self, names: Sequence[str]) -> None:
        """Mark the slots of live ids dead."""
        slots = self._slots()
        self._alive[[slots.pop(name) for name in names]] = False
