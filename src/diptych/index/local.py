"""What engines that keep dense vectors in this process share: rows by slot, and exact search of them."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from diptych.encoders.embeddings import Embeddings
from diptych.index.hits import Hits
from diptych.index.hooks import Vectors
from diptych.index.rows import RowStore
from diptych.index.slots import SlotIndex
from diptych.index.topk import top_k


class LocalIndex(SlotIndex):
    """An index of dense vectors whose items have slots in order of insertion."""

    @abstractmethod
    def _rows(self) -> RowStore:
        """The vectors by slot."""

    def _search_exact(self, queries: Vectors, k: int) -> Hits:
        slots, scores = top_k(self._rows(), queries, k, self._ids.alive)
        return Hits.from_slots(self._ids.names, slots, scores, k)

    def _embeddings(self, slots: np.ndarray) -> Embeddings:
        return Embeddings(
            ids=self._ids.names[slots].tolist(),
            rows=self._rows().take(slots),
            encoder=self.encoder,
            data=self.about["data"],
            kind=self.about["kind"],
            about=self.about["embeddings"],
        )
