"""Qdrant: collections of a server or a cluster, dense or sparse, restricted by metadata.

``qdrant`` holds dense vectors in the server's HNSW graph, ``qdrant-sparse`` bags of terms in its inverted index.
Without a ``url`` both run in this process, through the same client, for tests.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.core.context import task
from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.index.contract import Index
from diptych.index.engine import ENGINES, AnyEmbeddings, Engine, Known, Option, OptionValue, Vectors
from diptych.index.hits import Hits
from diptych.index.qdrant_connection import (
    CONNECTION_OPTIONS,
    Connection,
    Where,
    field_types,
    filter_of,
    models,
)
from diptych.index.qdrant_points import (
    OWN,
    DenseForm,
    Form,
    Record,
    SparseForm,
    Stamp,
    check_records,
    delete_items,
    held_items,
    read_items,
    read_payload,
    upload,
    with_records,
)
from diptych.index.slots import load_ids
from diptych.index.storage import Header
from diptych.index.vectors import check_ids, count_rows

_PAUSE = 0.5
_LONGEST_WAIT = 600.0


def prepare(
    connection: Connection,
    form: Form,
    width: int,
    stamp: Stamp,
    records: Sequence[Record] | None,
    options: Mapping[str, OptionValue],
) -> bool:
    """Make the collection, or check the one there is; whether it holds items already."""
    exists = bool(connection.ask("collection_exists"))
    if exists and options["replace"]:
        connection.ask("delete_collection")
        exists = False
    if exists:
        form.check(connection, width)
        _refuse_others(connection, stamp)
    else:
        cluster = {"shard_number": options["shards"], "replication_factor": options["replicas"]}
        connection.ask("create_collection", **form.configuration(width, options), **cluster)
    if connection.remote:  # the same again changes nothing, so a build that was stopped may repeat it
        fields = {f"{OWN}.source": "keyword", **field_types(records or [])}
        for field, kind in fields.items():
            connection.ask("create_payload_index", field_name=field, field_schema=kind, wait=True)
    return exists and count_items(connection) > 0


def _refuse_others(connection: Connection, stamp: Stamp) -> None:
    m = models()
    ours = m.FieldCondition(key=f"{OWN}.source", match=m.MatchValue(value=stamp.source))
    others = m.Filter(must_not=[ours])
    strange = int(connection.ask("count", count_filter=others, exact=True).count)
    if strange:
        points, _ = connection.ask("scroll", scroll_filter=others, limit=1, with_payload=True)
        encoder = read_payload(points[0].payload, connection.place).get("encoder") if points else "unknown"
        raise MismatchError(
            f"{connection.place} already holds {strange:,} items of other embeddings (encoder {encoder}, "
            f"those to be uploaded: {stamp.encoder})",
            "name another collection, or pass replace=True to delete this one first",
        )


def count_items(connection: Connection) -> int:
    """How many points the collection holds, counted."""
    return int(connection.ask("count", exact=True).count)


def check_origin(connection: Connection, form: Form, width: int, encoder: str, vocabulary: str) -> None:
    """Compare a collection with what a saved index says of it."""
    if not connection.ask("collection_exists"):
        raise StorageError(
            f"there is no {connection.place}",
            "it was deleted, or the index was built on another server: build it again",
        )
    form.check(connection, width)
    points, _ = connection.ask("scroll", limit=1, with_payload=True)
    for point in points:
        own = read_payload(point.payload, connection.place)
        for what, wanted in (("encoder", encoder), ("vocabulary", vocabulary)):
            if own.get(what) != wanted:
                raise MismatchError(
                    f"{connection.place} holds items of {what} {own.get(what)}, the saved index is of {wanted}",
                    "another index took its place: open that one, or build this one again elsewhere",
                )


def wait_until_indexed(connection: Connection) -> bool:
    """Whether the server has linked everything; waits up to ten minutes for it.

    Until then it compares with all that is not linked yet, and its recall says nothing of later.
    """
    until = time.monotonic() + _LONGEST_WAIT
    with task("the server builds its graph") as bar:
        while str(connection.ask("get_collection").status) == "yellow":
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE)
            bar.advance()
    return True


def check_fields(connection: Connection, where: Where) -> None:
    """Refuse conditions on fields that no item has: they let nothing through, silently."""
    m = models()
    for field in where:
        having = m.Filter(must_not=[m.IsEmptyCondition(is_empty=m.PayloadField(key=field))])
        if not connection.ask("scroll", scroll_filter=having, limit=1, with_payload=False)[0]:
            some: Any = connection.ask("scroll", limit=1, with_payload=True)[0]
            known = sorted(set(some[0].payload) - {OWN}) if some else []
            raise UsageError(
                f"no item of {connection.place} has a field {field!r}",
                f"fields of one of its items: {', '.join(known) or 'none'}",
            )


def _hit(point: Any, place: str) -> tuple[float, int, str]:
    """What hits are sorted by: best score first, equal ones by insertion."""
    own = read_payload(point.payload, place)
    return -float(point.score), int(own["order"]), str(own["id"])


class QdrantIndex(Index):
    """Items in a collection of a Qdrant server, or of the client's stand-in inside this process.

    Scores are the server's: float32 inner products. Equal ones are ordered by insertion; which of
    several equal items come last among k is the server's choice. What was deleted the server clears
    away by itself. Other programs may search the collection meanwhile, and after they changed it
    :meth:`refresh` counts anew. A saved index holds where its collection is and not its items.

    The stand-in compares every item with every query in Python, and its makers say that it is not for
    production: it serves for tests and for trying things out. Saved, its items are written as NumPy
    files and uploaded anew when they are opened, for the client's own files hold pickles.

    Attributes:
        form: how the engine's vectors look to Qdrant.
    """

    form: ClassVar[Form]

    def __init__(self, connection: Connection, **known: Any) -> None:
        super().__init__(**known)
        self._connection = connection
        self._items = count_items(connection)
        self._known: Mapping[str, bool] = {}  # what a call asked the server of many ids at once
        self._new_records: Sequence[Record] | None = None

    @classmethod
    def _build(cls, embeddings: Any, known: Known) -> Self:
        records, options = getattr(embeddings, "records", None), known["options"]
        connection, stamp = Connection(options), Stamp.of(embeddings)
        rows = cls.form.checked(embeddings.rows, embeddings.ids)
        resume = prepare(connection, cls.form, embeddings.width, stamp, records, options)
        batch, orders = int(options["batch"]), range(len(embeddings))
        upload(connection, cls.form, embeddings.ids, rows, stamp, orders, records, batch, resume=resume)
        if connection.remote and not wait_until_indexed(connection):
            known["about"]["indexing"] = "unfinished when the recall was measured"
        # What was to be replaced is: an index built from these options is to leave this one alone.
        index = cls(connection, **{**known, "options": {**options, "replace": False}})
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
    def _vocabulary(self) -> str:
        return str(self.about.get("vocabulary", ""))

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
            stamp, orders = Stamp(self.encoder, "added", self._vocabulary), range(first, first + len(ids))
            connection, records = self._connection, self._new_records
            upload(connection, self.form, ids, vectors, stamp, orders, records, self._batch)
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
        form, remote = self.form, self._connection.remote
        request = {
            "using": form.using,
            "limit": k,
            "with_payload": [f"{OWN}.id", f"{OWN}.order"],
            "params": form.parameters(options, exact=exact) if remote else None,
            "filter": condition,
        }
        vectors = [vector for vector, _ in form.vectors(queries)]
        if form.using is not None:  # a query without terms finds nothing and is not sent
            vectors = [vector.get(form.using) for vector in vectors]
        wanted = [(row, vector) for row, vector in enumerate(vectors) if vector is not None]
        answers: list[list[tuple[float, int, str]]] = [[] for _ in vectors]
        for start in range(0, len(wanted), self._batch):
            part = wanted[start : start + self._batch]
            requests = [models().QueryRequest(query=query, **request) for _, query in part]
            found = self._connection.ask("query_batch_points", requests=requests)
            for (row, _), answer in zip(part, found, strict=True):
                answers[row] = sorted(_hit(point, self._connection.place) for point in answer.points)
        scores = np.full((len(answers), max(map(len, answers))), -np.inf, dtype=np.float32)
        for row, answer in enumerate(answers):
            scores[row, : len(answer)] = [-lower for lower, _, _ in answer]
        return Hits([[name for _, _, name in answer] for answer in answers], scores, k)

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
        if connection.remote:
            check_origin(connection, cls.form, header.width, header.encoder, vocabulary)
            return cls(connection, **header.known())
        ids, records = load_ids(folder / "ids.json"), read_json(folder / "records.json")
        rows = cls.form.read(folder, header.items, header.width)
        stamp = Stamp(header.encoder, "opened", vocabulary)
        prepare(connection, cls.form, header.width, stamp, records, header.options)
        upload(connection, cls.form, ids, rows, stamp, range(len(ids)), records, int(header.options["batch"]))
        return cls(connection, **header.known())

    def rebuild(self, *, sample: Vectors | None = None, **options: Any) -> Self:
        """As the contract says; on a server into another collection, for it keeps its own in order."""
        chosen = {**self.options, **options}
        same = all(chosen[name] == self.options[name] for name in ("url", "collection"))
        if self._connection.remote and same:
            raise UsageError(
                f"{self._connection.place} cannot be rebuilt into itself",
                "the server clears deleted items away by itself; to copy it, pass collection=NAME",
            )
        items = read_items(self._connection, vectors=True)
        rows = self.form.rows([item.vector for item in items], self.width)
        embeddings = self._embedded([item.name for item in items], rows)
        records = [item.record for item in items]
        return type(self).build(embeddings, sample=sample, records=records, **chosen)

    @classmethod
    def build(
        cls,
        embeddings: AnyEmbeddings,
        *,
        sample: Vectors | None = None,
        records: Sequence[Record] | None = None,
        **options: Any,
    ) -> Self:
        """As the contract says. On a server a build that was stopped is taken up by the same call."""
        if records is not None:
            embeddings = with_records(embeddings, records)
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
        """As the contract says; a replaced item is overwritten and never absent meanwhile."""
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
        """As the contract says, among the items whose metadata fulfils ``where``."""
        if where is None:
            return super().search(queries, k, encoder=encoder, vocabulary=vocabulary, **options)
        chosen, condition = self.engine().resolve_search(self.options, options), filter_of(where)

        def find(checked: Vectors, depth: int) -> Hits:
            return self._find(checked, depth, chosen, condition)

        hits = self._answer(queries, k, encoder, vocabulary, find)
        if len(self) and len(hits) and not hits.found.any():
            check_fields(self._connection, where)
        return hits


class DenseQdrantIndex(QdrantIndex):
    """Dense vectors; the server's graph may miss items, and its recall is measured against its exact search."""

    engine_name = "qdrant"
    form = DenseForm()


class SparseQdrantIndex(QdrantIndex):
    """Bags of terms; the server's inverted index misses none."""

    engine_name = "qdrant-sparse"
    form = SparseForm()


QDRANT = ENGINES.add(
    Engine(
        name="qdrant",
        description="dense vectors and metadata on a Qdrant server or cluster; for more than one machine holds",
        index=DenseQdrantIndex,
        approximate=True,
        options=(
            *CONNECTION_OPTIONS,
            Option("m", 16, "links per item in the server's graph; more: better, larger", 2),
            Option("ef_construction", 100, "candidates kept while linking; more: better, slower build", 1),
            Option("ef_search", 128, "candidates kept while searching; more: higher recall, slower", 1, True),
        ),
        filters=True,
    )
)

QDRANT_SPARSE = ENGINES.add(
    Engine(
        name="qdrant-sparse",
        description="bags of terms and metadata on a Qdrant server or cluster",
        index=SparseQdrantIndex,
        approximate=False,
        options=CONNECTION_OPTIONS,
        vectors="sparse",
        filters=True,
    )
)
