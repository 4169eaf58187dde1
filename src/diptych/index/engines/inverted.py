"""Exact sparse search: whole-number sums over 8-bit postings choose, the weights themselves decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.core.files import write_json
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.index.engine import ENGINES, Engine, Option, OptionValue
from diptych.index.hits import Hits
from diptych.index.hooks import Vectors
from diptych.index.postings import Postings, Segment, Segments
from diptych.index.slots import IdTable, SlotIndex
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import Header, load_ids

HUB_SHARE = Option(
    "hub_share", 0.05, "share of items from which on a term is kept as a row over all of them", 0.0
)


class InvertedIndex(SlotIndex):
    """Postings in blocks (:mod:`diptych.index.postings`) over memory-mapped rows.

    A built index reads the embeddings' own rows (do not change them meanwhile), a saved one maps its files;
    added rows stay in memory until the next save, which also drops deleted ones. The first search compiles.
    """

    engine_name = "inverted"
    mapped = SparseRows.mapped | Postings.mapped

    def __init__(self, segments: Segments, ids: IdTable, **said: Any) -> None:
        super().__init__(ids, **said)
        self._segments = segments

    @classmethod
    def _build(
        cls, embeddings: SparseEmbeddings, options: dict[str, OptionValue], about: dict[str, Any]
    ) -> Self:
        share = float(options["hub_share"])
        return cls(
            Segments(Segment.build(embeddings.rows, share), share),
            IdTable(embeddings.ids),
            encoder=embeddings.encoder,
            width=embeddings.width,
            options=options,
            about=about,
        )

    def _add(self, ids: Sequence[str], vectors: Vectors) -> None:
        self._segments.append(vectors)
        self._ids.append(ids)

    def _search(self, queries: Vectors, k: int, options: Mapping[str, OptionValue]) -> Hits:
        return self._search_exact(queries, k)

    def _search_exact(self, queries: Vectors, k: int) -> Hits:
        return Hits.ragged(self._ids.names, *self._segments.best(queries, k, self._ids.alive), k)

    def _embeddings(self, slots: np.ndarray) -> SparseEmbeddings:
        return SparseEmbeddings(
            ids=self._ids.names[slots].tolist(),
            rows=self._segments.take(slots),
            terms=self.terms,
            encoder=self.encoder,
            data=self.about["data"],
            kind=self.about["kind"],
            about=self.about["embeddings"],
        )

    def _write(self, folder: Path) -> None:
        segment = self._segments.parts[0]
        if len(self._segments.parts) > 1 or self.tombstones:
            live = self._segments.take(self._ids.live_slots())
            segment = Segment.build(live, float(self.options["hub_share"]))
        segment.rows.write(folder)
        segment.postings.write(folder)
        write_json(folder / "ids.json", self.ids)

    @classmethod
    def _load(cls, folder: Path, header: Header) -> tuple[Segments, IdTable]:
        rows = SparseRows.read(folder, header.items, header.width)
        postings = Postings.read(folder, header.items, header.width)
        segments = Segments(Segment(rows, postings), float(header.options["hub_share"]))
        return segments, IdTable(load_ids(folder / "ids.json"))

    @classmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        segments, ids = cls._load(folder, header)
        return cls(
            segments,
            ids,
            encoder=header.encoder,
            width=header.width,
            options=header.options,
            about=header.about,
        )

    def save(self, folder: Path | str) -> Path:
        """As the contract says; from then on the saved files are what is searched."""
        saved = super().save(folder)
        self._segments, self._ids = self._load(saved, Header.open(saved))
        return saved


INVERTED = ENGINES.add(
    Engine(
        name="inverted",
        description="exact search of sparse vectors: frequent terms as rows, rare ones as posting lists",
        index=InvertedIndex,
        approximate=False,
        options=(HUB_SHARE,),
        vectors="sparse",
    )
)
