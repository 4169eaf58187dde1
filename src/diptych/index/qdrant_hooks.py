"""The hooks behind the contract, for items that lie in a Qdrant collection."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from diptych.core.errors import StorageError, UsageError
from diptych.core.files import read_json, write_json
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings
from diptych.index.arrays import load_ids
from diptych.index.contract import Index, Vectors
from diptych.index.engine import OptionValue
from diptych.index.hits import Hits
from diptych.index.qdrant_collection import check_origin, count_items, prepare, wait_until_indexed
from diptych.index.qdrant_connection import Connection
from diptych.index.qdrant_forms import Form
from diptych.index.qdrant_points import Record, Stamp
from diptych.index.qdrant_search import find
from diptych.index.qdrant_upload import delete_items, held_items, read_items, upload
from diptych.index.storage import Header

__all__ = ["QdrantHooks"]


class QdrantHooks(Index):
    """Attributes:
    form: how the engine's vectors look to Qdrant.
    """

    form: ClassVar[Form]

    def __init__(self, connection: Connection, **said: Any) -> None:
        super().__init__(**said)
        self._connection = connection
        self._items = count_items(connection)
        self._known: Mapping[str, bool] = {}  # what a call asked the server of many ids at once
        self._new_records: Sequence[Record] | None = None

    @classmethod
    def _build(cls, embeddings: Any, options: dict[str, OptionValue], about: dict[str, Any]) -> Self:
        records = getattr(embeddings, "records", None)
        connection, stamp = Connection(options), Stamp.of(embeddings)
        rows = cls.form.checked(embeddings.rows, embeddings.ids)
        resume = prepare(connection, cls.form, embeddings.width, stamp, records, options)
        upload(
            connection,
            cls.form,
            embeddings.ids,
            rows,
            stamp,
            orders=range(len(embeddings)),
            records=records,
            batch=int(options["batch"]),
            resume=resume,
        )
        if connection.remote and not wait_until_indexed(connection):
            about["indexing"] = "unfinished when the recall was measured"
        said = {"encoder": embeddings.encoder, "width": embeddings.width, "about": about}
        # What was to be replaced is: an index built from these options is to leave this one alone.
        index = cls(connection, options={**options, "replace": False}, **said)
        if len(index) != len(embeddings):
            raise StorageError(
                f"{connection.place} holds {len(index):,} items after {len(embeddings):,} were uploaded",
                "another program writes to it: give the index a collection of its own",
            )
        return index

    def __len__(self) -> int:
        return self._items

    def __contains__(self, item_id: object) -> bool:
        if not isinstance(item_id, str):
            return False
        if item_id in self._known:
            return self._known[item_id]
        return bool(held_items(self._connection, [item_id], 1))

    @property
    def _batch(self) -> int:
        return int(self.options["batch"])

    def refresh(self) -> int:
        """Ask the collection how many items it holds now, and return it."""
        self._items = count_items(self._connection)
        return self._items

    def _add(self, ids: Sequence[str], vectors: Vectors) -> None:
        first = time.time_ns()  # later than every row number and every earlier addition, whoever made it
        try:
            upload(
                self._connection,
                self.form,
                ids,
                vectors,
                Stamp(self.encoder, "added", self.about.get("vocabulary", "")),
                orders=range(first, first + len(ids)),
                records=self._new_records,
                batch=self._batch,
                resume=False,
            )
        finally:
            self.refresh()

    def _delete(self, ids: Sequence[str]) -> None:
        try:
            delete_items(self._connection, ids, self._batch)
        finally:
            self.refresh()

    def _search(self, queries: Vectors, k: int, options: Mapping[str, OptionValue]) -> Hits:
        return self._find(queries, k, options)

    def _search_exact(self, queries: Vectors, k: int) -> Hits:
        return self._find(queries, k, self.options, exact=True)

    def _find(
        self,
        queries: Vectors,
        k: int,
        options: Mapping[str, OptionValue],
        condition: Any = None,
        *,
        exact: bool = False,
    ) -> Hits:
        parameters = self.form.parameters(options, exact=exact)
        return find(
            self._connection,
            self.form,
            queries,
            k,
            parameters=parameters,
            condition=condition,
            batch=self._batch,
        )

    def _write(self, folder: Path) -> None:
        if self._connection.remote:
            return
        items = read_items(self._connection, vectors=True)
        write_json(folder / "ids.json", [item.name for item in items])
        write_json(folder / "records.json", [item.record for item in items])
        self.form.write(folder, self.form.rows([item.vector for item in items], self.width))

    @classmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        connection = Connection(header.options)
        vocabulary = header.about.get("vocabulary", "")
        said = {"encoder": header.encoder, "width": header.width, "options": header.options}
        if connection.remote:
            check_origin(connection, cls.form, header.width, header.encoder, vocabulary)
            return cls(connection, about=header.about, **said)
        ids, records = load_ids(folder / "ids.json"), read_json(folder / "records.json")
        rows = cls.form.read(folder, header.items, header.width)
        stamp = Stamp(header.encoder, "opened", vocabulary)
        prepare(connection, cls.form, header.width, stamp, records, header.options)
        upload(
            connection,
            cls.form,
            ids,
            rows,
            stamp,
            orders=range(len(ids)),
            records=records,
            batch=int(header.options["batch"]),
            resume=False,
        )
        return cls(connection, about=header.about, **said)

    def rebuild(self, *, sample: Vectors | None = None, **options: Any) -> Self:
        """As the contract says; on a server into another collection, for it keeps its own in order.

        Raises:
            UsageError: the new collection would be this one.
        """
        chosen = {**self.options, **options}
        same = all(chosen[name] == self.options[name] for name in ("url", "collection"))
        if self._connection.remote and same:
            raise UsageError(
                f"{self._connection.place} cannot be rebuilt into itself",
                "the server clears deleted items away by itself; to copy it, pass collection=NAME",
            )
        items = read_items(self._connection, vectors=True)
        said: dict[str, Any] = {
            "ids": [item.name for item in items],
            "rows": self.form.rows([item.vector for item in items], self.width),
            "encoder": self.encoder,
            "data": self.about["data"],
            "kind": self.about["kind"],
            "about": self.about["embeddings"],
        }
        embeddings = SparseEmbeddings(**said, terms=self.terms) if self.terms else Embeddings(**said)
        records = [item.record for item in items]
        return type(self).build(embeddings, sample=sample, records=records, **chosen)
