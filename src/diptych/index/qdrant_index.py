"""What the dense and the sparse Qdrant engine share: the contract, with metadata, many ids at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.index.contract import Vectors
from diptych.index.hits import Hits
from diptych.index.hooks import AnyEmbeddings
from diptych.index.qdrant_collection import check_fields
from diptych.index.qdrant_filters import Where, filter_of
from diptych.index.qdrant_hooks import QdrantHooks
from diptych.index.qdrant_points import (
    DescribedEmbeddings,
    DescribedSparseEmbeddings,
    Record,
    check_records,
)
from diptych.index.qdrant_upload import held_items, read_items
from diptych.index.vectors import check_ids, count_rows

__all__ = ["QdrantIndex"]


class QdrantIndex(QdrantHooks):
    """Items in a collection of a Qdrant server, or of the client's stand-in inside this process.

    Scores are the server's: float32 inner products. Equal ones are ordered by insertion; which of
    several equal items come last among k is the server's choice. What was deleted the server clears
    away by itself. Other programs may search the collection meanwhile, and after they changed it
    :meth:`refresh` counts anew. A saved index holds where its collection is and not its items.

    The stand-in compares every item with every query in Python, and its makers say that it is not for
    production: it serves for tests and for trying things out. Saved, its items are written as NumPy
    files and uploaded anew when they are opened, for the client's own files hold pickles.
    """

    @classmethod
    def build(
        cls,
        embeddings: AnyEmbeddings,
        *,
        sample: Vectors | None = None,
        records: Sequence[Record] | None = None,
        **options: Any,
    ) -> Self:
        """As the contract says. On a server a build that was stopped is taken up by the same call.

        Args:
            embeddings: as the contract says.
            sample: as the contract says.
            records: per item its metadata, such as a collection's ``records``; searches can be restricted
                by it, see :meth:`search`.
            options: the engine's options.

        Raises:
            DataError: the metadata is not JSON, or of another number of items.
            MismatchError: the collection is there and is of another width or holds other items.
            StorageError: no server answers, it refuses the key, or a request failed.
        """
        if records is not None:
            sparse = isinstance(embeddings, SparseEmbeddings)
            described = DescribedSparseEmbeddings if sparse else DescribedEmbeddings
            embeddings = described.of(embeddings, records)
        return super().build(embeddings, sample=sample, **options)

    @property
    def ids(self) -> list[str]:
        """The ids of all items, in order of insertion; read from the collection each time."""
        return [item.name for item in read_items(self._connection, vectors=False)]

    def records(self) -> dict[str, Record]:
        """The metadata of every item by id, in order of insertion; read from the collection each time."""
        return {item.name: item.record for item in read_items(self._connection, vectors=False)}

    def add(
        self,
        ids: Sequence[str],
        rows: Vectors,
        *,
        replace: bool = False,
        encoder: str | None = None,
        vocabulary: str | None = None,
        records: Sequence[Record] | None = None,
    ) -> None:
        """As the contract says; a replaced item is overwritten and never absent meanwhile.

        Args:
            ids: as the contract says.
            rows: as the contract says.
            replace: as the contract says.
            encoder: as the contract says.
            vocabulary: as the contract says.
            records: per item its metadata; a replaced item takes it instead of its old one.
        """
        names = check_ids(ids, count_rows(rows, "item"))
        held = held_items(self._connection, names, self._batch)
        self._new_records = check_records(records, names)
        self._known = {name: name in held and not replace for name in names}
        try:
            super().add(names, rows, replace=replace, encoder=encoder, vocabulary=vocabulary)
        finally:
            self._known, self._new_records = {}, None

    def delete(self, ids: Sequence[str]) -> None:
        """As the contract says."""
        names = check_ids(ids, len(ids))
        held = held_items(self._connection, names, self._batch)
        self._known = {name: name in held for name in names}
        try:
            super().delete(names)
        finally:
            self._known = {}

    def search(
        self,
        queries: Vectors,
        k: int,
        *,
        encoder: str | None = None,
        vocabulary: str | None = None,
        where: Where | None = None,
        **options: Any,
    ) -> Hits:
        """As the contract says, among the items whose metadata fulfils ``where``.

        Args:
            queries: as the contract says.
            k: as the contract says.
            encoder: as the contract says.
            vocabulary: as the contract says.
            where: per field of the metadata a value, a list of values any of which will do, or a range:
                ``{"category": "shoes", "colour": ["red", "blue"], "price": {"gte": 10, "lt": 20}}``.
            options: per-search options of the engine.

        Raises:
            UsageError: ``where`` is no condition, or names a field that no item has.
            StorageError: the server failed.
        """
        if where is None:
            return super().search(queries, k, encoder=encoder, vocabulary=vocabulary, **options)
        chosen, condition = self.engine().resolve_search(self.options, options), filter_of(where)
        hits = self._answer(
            queries,
            k,
            encoder,
            vocabulary,
            lambda checked, depth: self._find(checked, depth, chosen, condition),
        )
        if len(self) and len(hits) and not hits.found.any():
            check_fields(self._connection, where)
        return hits
