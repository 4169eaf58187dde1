"""What engines that keep their items in this process share: ids in slots, tombstones, rebuilding."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from diptych.index.contract import Index
from diptych.index.engine import OptionValue
from diptych.index.hooks import AnyEmbeddings, Vectors
from diptych.index.ids import IdTable


class SlotIndex(Index):
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
    def _embeddings(self, slots: np.ndarray) -> AnyEmbeddings:
        """The items in ``slots`` as they were given, copied into memory."""

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
        """How many deleted items still take up room; :meth:`rebuild` gets rid of them."""
        return len(self._ids) - len(self)

    def rebuild(self, *, sample: Vectors | None = None, **options: Any) -> Self:
        """A new index of the live items in the same order; their vectors are copied into memory."""
        alive = self._embeddings(self._ids.live_slots())
        return type(self).build(alive, sample=sample, **{**self.options, **options})
