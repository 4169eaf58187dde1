"""Slots: items numbered in order of insertion, their ids, and indexes that hold them here."""

from __future__ import annotations

import itertools
import json
from abc import abstractmethod
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.core.errors import StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.data.columns import StringTable, write_strings
from diptych.data.records import Record, RecordTable, Where, check_records
from diptych.index.contract import Change, Index
from diptych.index.engine import AnyEmbeddings, Hits, OptionValue, Vectors
from diptych.index.storage import REBUILD, Header, load_array
from diptych.index.vectors import Growing, RowStore, top_k

_IDS, _DEAD = "ids.json", "dead.npy"
_MASKS = 64  # conditions whose items are kept
_FEW = 1 / 8  # the share of rows up to which those alive are gathered, not all compared


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

    def slots(self, names: Sequence[str]) -> np.ndarray:
        """(n,) int64: the slots of names that are there."""
        slots = self._slots()
        return np.array([slots[name] for name in names], dtype=np.int64)

    def slot(self, name: str) -> int:
        """Return the slot of a live id; KeyError of any other."""
        return self._slots()[name]

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


class _RecordItems(ItemsView[str, Record]):
    """Ids and metadata, read in blocks."""

    def __init__(self, records: SlotRecords) -> None:
        super().__init__(records)
        self._of = records

    def __iter__(self) -> Iterator[tuple[str, Record]]:
        live, table = self._of.ids.live_slots().tolist(), self._of.table
        found = itertools.repeat({}) if table is None else map(json.loads, table.lines(live))
        return zip(self._of, found, strict=False)


class SlotRecords(Mapping[str, Record]):
    def __init__(self, ids: IdTable, table: RecordTable | None) -> None:
        self.ids, self.table = ids, table

    def __getitem__(self, name: str) -> Record:
        slot = self.ids.slot(name)
        return {} if self.table is None else self.table[slot]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids.names[self.ids.live_slots()].tolist())

    def items(self) -> ItemsView[str, Record]:
        return _RecordItems(self)

    def __len__(self) -> int:
        return len(self.ids.live_slots())


class SlotIndex(Index):
    """An index whose items have slots in order of insertion; deleted ones leave tombstones.

    Attributes:
        reopens: whether a saved index searches its files from then on, with which tombstones are gone.
    """

    reopens: ClassVar[bool] = False

    def __init__(self, ids: IdTable, **known: Any) -> None:
        super().__init__(**known)
        self._ids = ids
        self._table: RecordTable | None = None  # None: no item has metadata
        self._masks: dict[str, np.ndarray] = {}  # of conditions, for the items as they are

    @classmethod
    def build(
        cls,
        embeddings: AnyEmbeddings,
        *,
        sample: Vectors | None = None,
        records: Sequence[Record] | None = None,
        **options: Any,
    ) -> Self:
        cls._more(records)
        lines = None if records is None else check_records(records, embeddings.ids)
        index = super().build(embeddings, sample=sample, **options)
        index._table = None if lines is None else RecordTable(lines)
        return index

    @abstractmethod
    def _find(
        self, queries: Vectors, k: int, alive: np.ndarray | None, options: Mapping[str, OptionValue]
    ) -> Hits:
        """As :meth:`_search`, of the slots that are ``alive``: at least ``k``, all where it is None."""

    @abstractmethod
    def _find_exact(self, queries: Vectors, k: int, alive: np.ndarray | None) -> Hits:
        """As :meth:`_find`, missing nothing."""

    def _search(
        self,
        queries: Vectors,
        k: int,
        options: Mapping[str, OptionValue],
        where: Where | None = None,
        **more: Any,
    ) -> Hits:
        return self._among(where, k, queries, partial(self._find, options=options, **more))

    def _search_exact(self, queries: Vectors, k: int, where: Where | None = None) -> Hits:
        return self._among(where, k, queries, self._find_exact)

    def _among(self, where: Where | None, k: int, queries: Vectors, find: Callable[..., Hits]) -> Hits:
        """Return what ``find`` finds among the live items that fulfil conditions."""
        alive = self._ids.alive
        if where is not None:
            alive = self._allowed(where, alive)
            k = min(k, int(np.count_nonzero(alive)))
        return find(queries, k, alive=alive) if k else Hits.none(queries.shape[0], k)

    def _allowed(self, where: Where, alive: np.ndarray | None) -> np.ndarray:
        if self._table is None:
            raise UsageError(
                "the items of this index have no metadata to restrict a search by",
                "index the dataset again with diptych index, or build with records=…",
            )
        key = repr(where)
        if key not in self._masks:
            if len(self._masks) >= _MASKS:
                self._masks.clear()
            mask = self._table.mask(where)
            self._masks[key] = mask if alive is None else mask & alive
        return self._masks[key]

    def matching(self, where: Where) -> list[str]:
        """Return the ids of the items that fulfil conditions."""
        return [str(name) for name in self._ids.names[self._allowed(where, self._ids.alive)]]

    def _insert(self, change: Change) -> None:
        before = len(self._ids)
        self._add(change.ids, change.vectors)
        if self._table is None and change.records is not None:
            self._table = RecordTable(["{}"] * before)
        if self._table is not None:
            self._table.append(change.records or ["{}"] * len(change.ids))

    def _changed(self, items: int) -> None:
        super()._changed(items)
        self._masks.clear()

    @property
    def records(self) -> Mapping[str, Record]:
        """The metadata of each item by id, in order of insertion; each is read when it is asked for."""
        return SlotRecords(self._ids, self._table)

    def _write_records(self, folder: Path) -> None:
        if self._table is not None:
            slots = range(len(self._ids)) if (folder / _DEAD).exists() else self._ids.live_slots().tolist()
            write_strings(folder / "records", self._table.lines(slots))

    def _read_records(self, folder: Path) -> None:
        if (folder / "records.utf8").is_file():
            stored = StringTable(folder / "records", keep=True)
            if len(stored) != len(self._ids):
                message = (
                    f"{folder / 'records.utf8'} holds {len(stored):,} lines for {len(self._ids):,} items"
                )
                raise StorageError(message, REBUILD)
            self._table = RecordTable(stored)
            self._masks.clear()

    @abstractmethod
    def _take(self, slots: np.ndarray) -> Vectors:
        """The vectors in ``slots`` as they were given, copied into memory."""

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Return the vectors of items that are there, as they were given."""
        return self._take(self._ids.slots(ids))

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

    def some_ids(self, start: int, count: int) -> list[str]:
        """Return ids from place ``start`` of the order of insertion on."""
        return [str(name) for name in self._ids.names[self._ids.live_slots()[start : start + count]]]

    @property
    def tombstones(self) -> int:
        """Return how many deleted items still take up room; :meth:`rebuild` gets rid of them."""
        return len(self._ids) - len(self)

    def rebuild(self, **options: Any) -> Self:
        """A new index of the live items in the same order; their vectors are copied into memory."""
        alive = self._embedded(self.ids, self._take(self._ids.live_slots()))
        built = type(self).build(alive, **{**self.options, **options})
        built.captions = self.captions
        if self._table is not None:
            built._table = RecordTable(list(self._table.lines(self._ids.live_slots().tolist())))
        return built

    def write(self, folder: Path | str) -> Path:
        saved = super().write(folder)
        if self.reopens:
            opened = vars(self._read(saved, Header.open(saved)))
            vars(self).update({name: value for name, value in opened.items() if name.startswith("_")})
            self._read_records(saved)
        return saved


class LocalIndex(SlotIndex):
    """An index of dense vectors whose items have slots in order of insertion."""

    @abstractmethod
    def _rows(self) -> RowStore:
        """The vectors by slot."""

    def _find_exact(self, queries: Vectors, k: int, alive: np.ndarray | None) -> Hits:
        slots, scores = self._best(queries, k, alive)
        return Hits.of_slots(self._ids.names, k, slots, scores)

    def _best(self, queries: Vectors, k: int, alive: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return slots and scores as :func:`top_k`; where few are alive, only their rows are read."""
        rows = self._rows()
        few = None if alive is None else np.flatnonzero(alive)
        if few is None or len(few) > _FEW * len(rows):
            return top_k(rows, queries, k, alive)
        slots, scores = top_k(RowStore(rows.take(few)), queries, k)
        return few[slots], scores

    def _take(self, slots: np.ndarray) -> np.ndarray:
        return self._rows().take(slots)
