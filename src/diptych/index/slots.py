"""Slots: items numbered in order of insertion, their ids, and indexes that hold them here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.index.contract import Index
from diptych.index.engine import Hits, Vectors
from diptych.index.storage import REBUILD, Header, load_array
from diptych.index.vectors import Growing, RowStore, top_k

_IDS, _DEAD = "ids.json", "dead.npy"


class IdTable:
    """Slots numbered in order of insertion, each with an id; a deleted item leaves a dead slot.

    Args:
        dead: (n,) bool, which of them are dead; the live ids are unique. None: all live.

    Attributes:
        live: how many slots are not dead.
        names: (slots,) object, the id of every slot, dead ones included.
    """

    def __init__(self, ids: Sequence[str], dead: np.ndarray | None = None) -> None:
        self._names = Growing(np.array([*ids, None], dtype=object)[:-1])
        self._alive = Growing(np.ones(len(self), dtype=bool) if dead is None else ~dead)
        self._slot_of: dict[str, int] | None = None
        self.live = int(np.count_nonzero(self._alive.view))

    def _slots(self) -> dict[str, int]:
        if self._slot_of is None:
            live = self.live_slots()
            self._slot_of = dict(zip(self.names[live].tolist(), live.tolist(), strict=True))
        return self._slot_of

    @property
    def names(self) -> np.ndarray:
        return self._names.view

    @property
    def alive(self) -> np.ndarray | None:
        """(slots,) bool: which can be found; None when all can."""
        return None if self.live == len(self) else self._alive.view

    def live_slots(self) -> np.ndarray:
        """(live,) int64: the slots that are not dead, in order."""
        return np.flatnonzero(self._alive.view)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._slots()

    def append(self, names: Sequence[str]) -> None:
        self._slots().update((name, len(self) + place) for place, name in enumerate(names))
        self._alive.extend(np.ones(len(names), dtype=bool))
        self._names.extend(np.array([*names, None], dtype=object)[:-1])
        self.live += len(names)

    def kill(self, names: Sequence[str]) -> None:
        slots = self._slots()
        self._alive.view[[slots.pop(name) for name in names]] = False
        self.live -= len(names)

    def write(self, folder: Path, *, live: bool) -> None:
        write_json(folder / _IDS, (self.names[self.live_slots()] if live else self.names).tolist())
        if not live:
            np.save(folder / _DEAD, ~self._alive.view)

    @classmethod
    def read(cls, folder: Path) -> Self:
        names = load_ids(folder / _IDS)
        if not (folder / _DEAD).exists():
            return cls(names)
        return cls(names, load_array(folder / _DEAD, (len(names),), np.bool_, mapped=False))


def load_ids(path: Path) -> list[str]:
    ids = read_json(path)
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise StorageError(f"{path} does not hold a list of ids", REBUILD)
    return ids


class SlotIndex(Index):
    """An index whose items have slots in order of insertion; deleted ones leave tombstones.

    Attributes:
        reopens: whether a saved index searches its files from then on, with which tombstones are gone.
    """

    reopens: ClassVar[bool] = False

    def __init__(self, ids: IdTable, **known: Any) -> None:
        super().__init__(**known)
        self._ids = ids

    @abstractmethod
    def _take(self, slots: np.ndarray) -> Vectors:
        """The vectors in ``slots`` as they were given, copied into memory."""

    def _delete(self, ids: Sequence[str]) -> None:
        self._ids.kill(ids)

    def __len__(self) -> int:
        return self._ids.live

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._ids

    @property
    def ids(self) -> list[str]:
        """The ids of all items that can be found, in order of insertion."""
        return [str(name) for name in self._ids.names[self._ids.live_slots()]]

    @property
    def tombstones(self) -> int:
        """Return how many deleted items still take up room; :meth:`rebuild` gets rid of them."""
        return len(self._ids) - len(self)

    def rebuild(self, **options: Any) -> Self:
        """A new index of the live items in the same order; their vectors are copied into memory."""
        alive = self._embedded(self.ids, self._take(self._ids.live_slots()))
        built = type(self).build(alive, **{**self.options, **options})
        built.captions = self.captions
        return built

    def save(self, folder: Path | str) -> Path:
        saved = super().save(folder)
        if self.reopens:
            opened = vars(self._read(saved, Header.open(saved)))
            vars(self).update({name: value for name, value in opened.items() if name.startswith("_")})
        return saved


class LocalIndex(SlotIndex):
    """An index of dense vectors whose items have slots in order of insertion."""

    @abstractmethod
    def _rows(self) -> RowStore:
        """The vectors by slot."""

    def _search_exact(self, queries: Vectors, k: int) -> Hits:
        slots, scores = top_k(self._rows(), queries, k, self._ids.alive)
        return Hits.of_slots(self._ids.names, k, slots, scores)

    def _take(self, slots: np.ndarray) -> np.ndarray:
        return self._rows().take(slots)
