"""What engines that keep dense vectors in this process share: ids in slots, exact search, rebuilding."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.files import read_json
from diptych.encoders.embeddings import Embeddings
from diptych.index.contract import Index, Vectors
from diptych.index.engine import OptionValue
from diptych.index.hits import Hits
from diptych.index.ids import IdTable
from diptych.index.rows import RowStore
from diptych.index.topk import top_k

__all__ = ["LocalIndex", "load_array", "load_ids"]


class LocalIndex(Index):
    """An index whose items have slots in order of insertion; deleted ones leave tombstones."""

    def __init__(
        self,
        ids: IdTable,
        *,
        encoder: str,
        width: int,
        options: dict[str, OptionValue],
        about: dict[str, Any],
    ) -> None:
        super().__init__(encoder=encoder, width=width, options=options, about=about)
        self._ids = ids

    @abstractmethod
    def _rows(self) -> RowStore:
        """The vectors by slot."""

    def _delete(self, ids: Sequence[str]) -> None:
        self._ids.kill(ids)

    def _search_exact(self, queries: Vectors, k: int) -> Hits:
        slots, scores = top_k(self._rows(), queries, k, self._ids.alive)
        return Hits.from_slots(self._ids.names, slots, scores, k)

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
        """How many deleted items still take up room; :meth:`rebuild` gets rid of them."""
        return len(self._ids) - len(self)

    def rebuild(self, *, sample: Vectors | None = None, **options: Any) -> Self:
        """A new index of the live items in the same order; their vectors are copied into memory.

        Args:
            sample: as for :meth:`build`.
            options: options that shall differ from this index's.
        """
        alive = Embeddings(
            ids=self.ids,
            rows=self._rows().take(self._ids.live_slots()),
            encoder=self.encoder,
            data=self.about["data"],
            kind=self.about["kind"],
            about=self.about["embeddings"],
        )
        return type(self).build(alive, sample=sample, **{**self.options, **options})


def load_array(path: Path, shape: tuple[int, ...], kind: type[np.generic], *, mapped: bool) -> np.ndarray:
    """An array of a saved index.

    Raises:
        StorageError: it cannot be read, or is of another shape or type.
    """
    try:
        array: np.ndarray = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise StorageError(f"{path} cannot be opened: {error}", "build the index again") from None
    if array.shape != shape or array.dtype != kind:
        raise StorageError(
            f"{path}: {np.dtype(kind)} {shape} expected, got {array.dtype} {array.shape}",
            "build the index again",
        )
    return array


def load_ids(path: Path) -> list[str]:
    """The ids of a saved index.

    Raises:
        StorageError: the file does not hold a list of strings.
    """
    ids = read_json(path)
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise StorageError(f"{path} does not hold a list of ids", "build the index again")
    return ids
