"""Sparse search over 8-bit weights only: a fraction of the exact index's size, and a little less exact."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np

from diptych.core.errors import UsageError
from diptych.index.contract import Change
from diptych.index.engine import Found, Known, OptionValue, Vectors, declare
from diptych.index.engines.inverted import InvertedIndex
from diptych.index.postings import Postings
from diptych.index.segments import batches
from diptych.index.slots import SlotIndex
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import Header


class ImpactsIndex(SlotIndex):
    """The postings of the inverted index without the weights they were made from.

    Scores are whole-number sums turned back into scores: of weights rounded to 1/255 of their term's largest,
    and of a query's weights rounded to about 1/65,000 of the largest sum. Deleted items stay as tombstones,
    saved too. Items cannot be added and the index cannot be rebuilt: that would need the weights.
    """

    engine_name = "impacts"
    mapped: ClassVar[frozenset[str]] = Postings.mapped

    _store: Postings

    @classmethod
    def _make(cls, items: Change, known: Known) -> Postings:
        share = float(known.options["hub_share"])
        return Postings.build(SparseRows.of(items.vectors), share, nearest=True)

    def _reference(self, embeddings: Any) -> InvertedIndex:
        return InvertedIndex.build(embeddings, hub_share=self.options["hub_share"])

    def _find(
        self, queries: Vectors, k: int, alive: np.ndarray | None, options: Mapping[str, OptionValue]
    ) -> Found:
        rows = SparseRows.of(queries)
        slots, scores, found = Found.nothing(len(rows), k)
        room = self._store.room(k)
        for chosen in batches(len(rows), room):
            best = self._store.candidates(rows, chosen, k, alive, room=room, whole=False)
            sums = best.values[:, :k]
            sums[np.arange(sums.shape[1]) >= best.found[:, None]] = 0
            order = np.argsort(np.uint16(65_535) - sums, axis=1, kind="stable")
            width = order.shape[1]
            slots[chosen, :width] = np.take_along_axis(best.slots, order, axis=1)
            scores[chosen, :width] = np.take_along_axis(sums, order, axis=1) * best.units[:, None]
            found[chosen] = best.found
        slots[np.arange(k) >= found[:, None]] = 0
        return Found(slots, scores, found)

    def _find_exact(self, queries: Vectors, k: int, alive: np.ndarray | None) -> NoReturn:
        self._refuse("search exactly")

    def _take(self, slots: np.ndarray) -> NoReturn:
        self._refuse("be rebuilt")

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(
            f"the impacts engine cannot {what}: it keeps 8-bit weights only",
            "build the inverted engine, or this one again, from the embeddings",
        )

    def _save(self, folder: Path) -> None:
        self._store.write(folder)

    @classmethod
    def _load(cls, folder: Path, header: Header, count: int) -> Postings:
        return Postings.read(folder, count, header.width)


declare("impacts", ImpactsIndex)
