"""Slots: items numbered in order of insertion, with ids, metadata and captions, and indexes that hold them here."""

import json
from abc import abstractmethod
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.core.errors import StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.reading import file_errors, read_array, read_json
from diptych.data.columns import StringTable, write_strings
from diptych.data.records import Record, RecordTable, Where
from diptych.index.contract import CaptionLines, Change, Index
from diptych.index.engine import Found, Hits, Known, OptionValue, Vectors
from diptych.index.storage import REBUILD, Captions, Header
from diptych.index.vectors import Growing, RowStore, top_k

_IDS, _DEAD = "ids.json", "dead.npy"
_MASKS = 64  # conditions whose items are kept
_FEW = 1 / 8  # the share of rows up to which those alive are gathered, not all compared
_NOTHING = {"records": "{}", "captions": "[]"}  # lines of an item without any
_FORMS: dict[str, Callable[[Any], Any]] = {"records": dict, "captions": lambda found: list(map(str, found))}


class ItemTable:
    """Slots numbered in order of insertion, each with an id; a deleted item leaves a dead slot.

    Args:
        lines: metadata ("records") and "captions", a line for each slot; absent where no item has any.
        dead: (n,) bool, which of them are dead; the live ids are unique. None: all live.

    Attributes:
        live: how many slots are not dead.
        names: (slots,) object, the id of every slot, dead ones included.
    """

    def __init__(
        self, ids: Sequence[str], lines: Mapping[str, Sequence[str]], dead: np.ndarray | None = None
    ) -> None:
        self._names = Growing(np.array([*ids, None], dtype=object)[:-1])
        self._alive = Growing(np.ones(len(self), dtype=bool) if dead is None else ~dead)
        self._slot_of: dict[str, int] | None = None
        self.live = int(np.count_nonzero(self._alive.view))
        self.lines = {what: RecordTable(given) for what, given in lines.items()}

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

    def ids(self, start: int = 0, end: int | None = None) -> list[str]:
        """Return live ids, from one place in their order to another."""
        return [str(name) for name in self.names[self.live_slots()[start:end]]]

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._slots()

    def slot(self, name: str) -> int:
        """Return the slot of a live id; KeyError of any other."""
        return self._slots()[name]

    def append(self, change: Change) -> None:
        for what in change.lines.keys() - self.lines.keys():
            self.lines[what] = RecordTable([_NOTHING[what]] * len(self))
        for what, table in self.lines.items():
            table.append(change.lines.get(what, [_NOTHING[what]] * len(change.ids)))
        self._slots().update((name, len(self) + place) for place, name in enumerate(change.ids))
        self._alive.extend(np.ones(len(change.ids), dtype=bool))
        self._names.extend(np.array([*change.ids, None], dtype=object)[:-1])
        self.live += len(change.ids)

    def kill(self, names: Sequence[str]) -> None:
        slots = self._slots()
        self._alive.view[[slots.pop(name) for name in names]] = False
        self.live -= len(names)

    def write(self, folder: Path, *, live: bool) -> None:
        kept = self.live_slots() if live else np.arange(len(self))
        write_json(folder / _IDS, self.names[kept].tolist())
        if not live and self.live < len(self):
            np.save(folder / _DEAD, ~self._alive.view)
        for what, table in self.lines.items():
            write_strings(folder / what, table.lines(kept.tolist()))

    @classmethod
    def read(cls, folder: Path) -> Self:
        names, dead, lines = read_json(folder / _IDS), None, {}
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise StorageError(f"{folder / _IDS} does not hold a list of ids", REBUILD)
        if (folder / _DEAD).exists():
            dead = read_array(folder / _DEAD, np.bool_, (len(names),), fix=REBUILD)
        for what in _NOTHING:
            if (path := folder / f"{what}.utf8").is_file():
                lines[what] = StringTable(folder / what, keep=True)
                if (found := len(lines[what])) != len(names):
                    raise StorageError(f"{path} holds {found:,} lines for {len(names):,} items", REBUILD)
        return cls(names, lines, dead)


class _Pairs(ItemsView[str, Any]):
    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping.pairs()  # type: ignore[attr-defined, no-any-return]


class _Lines(Mapping[str, Any]):
    """What the lines of items hold, by the ids that can be found; each is read when it is asked for."""

    def __init__(self, items: ItemTable, what: str) -> None:
        self._items, self._what, self._table = items, what, items.lines.get(what)

    def _read(self, slots: Sequence[int]) -> Iterator[Any]:
        nothing = (_NOTHING[self._what] for _ in slots)
        for line in nothing if self._table is None else self._table.lines(slots):
            with file_errors(f"the items' {self._what}", fix=REBUILD):
                found = _FORMS[self._what](json.loads(line))
            yield found

    def __getitem__(self, name: str) -> Any:
        return next(self._read([self._items.slot(name)]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._items.ids())

    def pairs(self) -> Iterator[tuple[str, Any]]:
        """Yield ids and what their lines hold, read in blocks."""
        return zip(self, self._read(self._items.live_slots().tolist()), strict=True)

    def items(self) -> ItemsView[str, Any]:
        return _Pairs(self)

    def __len__(self) -> int:
        return self._items.live


class SlotIndex(Index):
    """An index whose items have slots in order of insertion; deleted ones leave tombstones.

    Attributes:
        reopens: whether a saved index searches its files from then on, with which tombstones are gone.
    """

    reopens: ClassVar[bool] = False

    def __init__(self, store: Any, items: ItemTable, known: Known) -> None:
        super().__init__(known)
        self._store, self._items = store, items
        self._masks: dict[str, np.ndarray] = {}  # of conditions, for the items as they are

    @classmethod
    @abstractmethod
    def _make(cls, items: Change, known: Known) -> Any:
        """Return a store of items' vectors by slot."""

    @abstractmethod
    def _save(self, folder: Path) -> None:
        """Write the store; where saved indexes are reopened, only what is live."""

    @classmethod
    @abstractmethod
    def _load(cls, folder: Path, header: Header, count: int) -> Any:
        """Return the store of ``count`` slots that :meth:`_save` wrote."""

    @classmethod
    def _build(cls, items: Change, known: Known) -> Self:
        return cls(cls._make(items, known), ItemTable(items.ids, items.lines), known)

    def _write(self, folder: Path) -> None:
        self._save(folder)
        self._items.write(folder, live=self.reopens)

    @classmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        items = ItemTable.read(folder)
        return cls(cls._load(folder, header, len(items)), items, header.known())

    def _find(
        self, queries: Vectors, k: int, alive: np.ndarray | None, options: Mapping[str, OptionValue]
    ) -> Found:
        """As :meth:`_search`, of the slots that are ``alive``: at least ``k``, all where it is None."""
        return self._find_exact(queries, k, alive)

    @abstractmethod
    def _find_exact(self, queries: Vectors, k: int, alive: np.ndarray | None) -> Found:
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

    def _among(self, where: Where | None, k: int, queries: Vectors, find: Callable[..., Found]) -> Hits:
        """Return what ``find`` finds among the live items that fulfil conditions."""
        alive = self._items.alive
        if where is not None:
            alive = self._allowed(where, alive)
            k = min(k, int(np.count_nonzero(alive)))
        found = find(queries, k, alive=alive) if k else Found.nothing(queries.shape[0], 0)
        return found.hits(self._items.names, k)

    def _allowed(self, where: Where, alive: np.ndarray | None) -> np.ndarray:
        if "records" not in self._items.lines:
            raise UsageError(
                "the items of this index have no metadata to restrict a search by",
                "index the dataset again with diptych index, or build with records=…",
            )
        key = repr(where)
        if key not in self._masks:
            if len(self._masks) >= _MASKS:
                self._masks.clear()
            mask = self._items.lines["records"].mask(where)
            self._masks[key] = mask if alive is None else mask & alive
        return self._masks[key]

    def matching(self, where: Where) -> list[str]:
        """Return the ids of the items that fulfil conditions."""
        return [str(name) for name in self._items.names[self._allowed(where, self._items.alive)]]

    def _insert(self, change: Change) -> None:
        if change.there:
            self._delete(change.there)
        self._add(change)
        self._masks.clear()

    def _add(self, change: Change) -> None:
        """Insert items whose ids are not there; of an engine that can add."""
        raise NotImplementedError

    def _delete(self, ids: Sequence[str]) -> None:
        self._items.kill(ids)
        self._masks.clear()

    @property
    def records(self) -> Mapping[str, Record]:
        """The metadata of each item by id, in order of insertion; each is read when it is asked for."""
        return _Lines(self._items, "records")

    @property
    def captions(self) -> Captions | None:
        return _Lines(self._items, "captions") if "captions" in self._items.lines else None

    @captions.setter
    def captions(self, given: Captions | None) -> None:
        self._items.lines.pop("captions", None)
        if given is not None:
            self._items.lines["captions"] = RecordTable(CaptionLines(self._items.names.tolist(), given))

    @abstractmethod
    def _take(self, slots: np.ndarray) -> Vectors:
        """The vectors in ``slots`` as they were given, copied into memory."""

    def vectors(self, ids: Sequence[str]) -> Vectors:
        return self._take(np.array(list(map(self._items.slot, ids)), dtype=np.int64))

    def __len__(self) -> int:
        return self._items.live

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._items

    @property
    def ids(self) -> list[str]:
        """The ids of all items that can be found, in order of insertion."""
        return self._items.ids()

    def some_ids(self, start: int, count: int) -> list[str]:
        return self._items.ids(start, start + count)

    @property
    def tombstones(self) -> int:
        """Return how many deleted items still take up room; :meth:`rebuild` gets rid of them."""
        return len(self._items) - len(self)

    def rebuild(self, **options: Any) -> Self:
        """A new index of the live items in the same order; their vectors are copied into memory."""
        slots = self._items.live_slots()
        built = type(self).build(self._embedded(self.ids, self._take(slots)), **{**self.options, **options})
        built._items.lines = {
            what: RecordTable(list(table.lines(slots.tolist()))) for what, table in self._items.lines.items()
        }
        return built

    def write(self, folder: Path | str) -> Path:
        saved = super().write(folder)
        if self.reopens:
            opened = vars(self._read(saved, Header.open(saved)))
            vars(self).update({name: value for name, value in opened.items() if name.startswith("_")})
        return saved


class LocalIndex(SlotIndex):
    """An index of dense vectors whose items have slots in order of insertion."""

    @property
    def _rows(self) -> RowStore:
        """The vectors by slot."""
        rows: RowStore = self._store
        return rows

    def _find_exact(self, queries: Vectors, k: int, alive: np.ndarray | None) -> Found:
        """As the contract says; where few are alive, only their rows are read."""
        rows = self._rows
        few = None if alive is None else np.flatnonzero(alive)
        if few is None or len(few) > _FEW * len(rows):
            return Found.whole(*top_k(rows, queries, k, alive))
        slots, scores = top_k(RowStore(rows.take(few)), queries, k)
        return Found.whole(few[slots], scores)

    def _take(self, slots: np.ndarray) -> np.ndarray:
        return self._rows.take(slots)
