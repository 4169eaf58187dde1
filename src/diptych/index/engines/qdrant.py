"""Qdrant: collections of a server or a cluster, dense or sparse, restricted by metadata.

``qdrant`` holds dense vectors in the server's HNSW graph, ``qdrant-sparse`` bags of terms in its inverted index.
Without a ``url`` both run in this process, through the same client, for tests.

A point's number is made from the item's id, so sending an item twice changes nothing; its payload holds a
fingerprint of its content, so what is there already is not sent again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from diptych.core.context import task
from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.reading import read_json
from diptych.encoders.embeddings import canonical_rows
from diptych.index.contract import Index
from diptych.index.engine import Hits, Known, OptionValue, Record, Vectors, declare
from diptych.index.qdrant_connection import (
    OWN,
    Connection,
    Where,
    checked_records,
    field_types,
    filter_of,
    models,
)
from diptych.index.slots import load_ids
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import Header, load_array

_NAMESPACE = uuid.UUID("6f0f3f66-4f0a-5d0e-9d3b-9a1f6f1c2d57")  # of this package; never change it
_ELSE = "name another collection, or pass replace=True to delete this one first"
_SCROLL = 1024
_PAUSE, _LONGEST_WAIT = 0.5, 600.0  # seconds


def point_id(name: str) -> str:
    """Return the point of item ``name``: the same on every server and in every run (UUID version 5)."""
    return str(uuid.uuid5(_NAMESPACE, name))


class QdrantIndex(Index):
    """Dense vectors in a collection of a Qdrant server, or of the client's stand-in inside this process.

    One nameless vector per point. Scores are float32 inner products. Equal ones are ordered by insertion; which of
    several equal items come last among k is the server's choice. What was deleted the server clears
    away by itself. Other programs may search the collection meanwhile, and after they changed it
    :meth:`refresh` counts anew. A saved index holds where its collection is and not its items.

    The stand-in compares every item with every query in Python, and its makers say that it is not for
    production: it serves for tests and for trying things out. Saved, its items are written as NumPy
    files and uploaded anew when they are opened, for the client's own files hold pickles.
    """

    engine_name = "qdrant"
    overwrites = True
    vector_name: ClassVar[str | None] = None

    def __init__(self, **known: Any) -> None:
        super().__init__(**known)
        self._connection = Connection(self.options)
        self._ask, self._place = self._connection.ask, self._connection.place
        self._batch, self._items = int(self.options["batch"]), 0

    def _configuration(self) -> dict[str, Any]:
        """Return what a new collection is made with: not the cosine, under which Qdrant would scale what it stores."""
        m = models()
        graph = m.HnswConfigDiff(m=self.options["m"], ef_construct=self.options["ef_construction"])
        vectors = m.VectorParams(size=self.width, distance=m.Distance.DOT, hnsw_config=graph)
        return {"vectors_config": vectors}

    def _check_collection(self) -> None:
        have = self._ask("get_collection").config.params.vectors
        size = getattr(have, "size", None)
        if size != self.width or str(have.distance) != "Dot":
            found = (
                f"vectors of width {size} compared by {have.distance}"
                if size
                else "no nameless dense vectors"
            )
            expected = f"these are of width {self.width}, compared by Dot"
            raise MismatchError(f"{self._place} holds {found}, {expected}", _ELSE)

    def _points(self, rows: Any) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
        return ((row.tolist(), {"row": row}) for row in rows)

    def _rows(self, vectors: Sequence[Any]) -> Any:
        return np.array(vectors, dtype=np.float32).reshape(-1, self.width)

    def _parameters(self, options: Mapping[str, OptionValue], exact: bool) -> Any:
        m = models()
        return m.SearchParams(exact=True) if exact else m.SearchParams(hnsw_ef=options["ef_search"])

    def _write_rows(self, folder: Path, rows: Any) -> None:
        np.save(folder / "rows.npy", rows)

    def _read_rows(self, folder: Path, items: int) -> Any:
        return load_array(folder / "rows.npy", (items, self.width), np.float32, mapped=False)

    @classmethod
    def _build(cls, embeddings: Any, known: Known, records: Sequence[Record] | None = None) -> Self:
        records, options = checked_records(records, embeddings.ids), known["options"]
        # What was to be replaced is: an index built from these options must not change this one.
        index = cls(**{**known, "options": {**options, "replace": False}})
        rows = index._checked(embeddings.rows, embeddings.ids, "item")
        made = (embeddings.encoder, index._vocabulary, embeddings.data, embeddings.kind, embeddings.width)
        source = fingerprint(*made)
        resume = index._prepare(source, records or [], bool(options["replace"]))
        index._upload(embeddings.ids, rows, source, 0, records, resume)
        if index._connection.remote and not index._wait_until_indexed():
            index.about["indexing"] = "unfinished when the recall was measured"
        if index.refresh() != len(embeddings):
            raise StorageError(
                f"{index._place} holds {len(index):,} items after {len(embeddings):,} were uploaded",
                "another program writes to it: give the index a collection of its own",
            )
        return index

    def _prepare(self, source: str, records: Sequence[Record], replace: bool = False) -> bool:
        exists = bool(self._ask("collection_exists"))
        if exists and replace:
            self._ask("delete_collection")
            exists = False
        if exists:
            self._check_collection()
            self._refuse_others(source)
        else:
            cluster = {"shard_number": self.options["shards"], "replication_factor": self.options["replicas"]}
            self._ask("create_collection", **self._configuration(), **cluster)
        if (
            self._connection.remote
        ):  # the same again changes nothing, so a build that was stopped may repeat it
            for field, kind in {f"{OWN}.source": "keyword", **field_types(records)}.items():
                self._ask("create_payload_index", field_name=field, field_schema=kind, wait=True)
        return exists and self.refresh() > 0

    def _refuse_others(self, source: str) -> None:
        m = models()
        ours = m.FieldCondition(key=f"{OWN}.source", match=m.MatchValue(value=source))
        others = m.Filter(must_not=[ours])
        strange = int(self._ask("count", count_filter=others, exact=True).count)
        if strange:
            points, _ = self._ask("scroll", scroll_filter=others, limit=1, with_payload=True)
            encoder = self._own(points[0]).get("encoder") if points else "unknown"
            raise MismatchError(
                f"{self._place} already holds {strange:,} items of other embeddings (encoder {encoder}, "
                f"those to be uploaded: {self.encoder})",
                _ELSE,
            )

    def _upload(
        self,
        ids: Sequence[str],
        rows: Any,
        source: str,
        first: int,
        records: Sequence[Record] | None,
        resume: bool = False,
    ) -> None:
        """Send items, those excepted that are there with the same content; ``first`` is the first one's order."""
        stamp = {"encoder": self.encoder, "source": source, "vocabulary": self._vocabulary}
        vectors = enumerate(self._points(rows))
        with task("uploading to Qdrant", len(ids), "items") as bar:
            while block := list(islice(vectors, self._batch)):
                points: dict[str, tuple[Any, dict[str, Any]]] = {}
                for row, (vector, parts) in block:
                    record = {} if records is None else records[row]
                    content = fingerprint(fingerprint_arrays(parts), self.encoder, record)
                    own = {"id": ids[row], "order": first + row, "content": content, **stamp}
                    points[point_id(ids[row])] = vector, {OWN: own, **record}
                if resume:
                    for point in self._retrieve(list(points), [f"{OWN}.content"]):
                        content = (point.payload or {}).get(OWN, {}).get("content", "")
                        if points[str(point.id)][1][OWN]["content"] == content:
                            del points[str(point.id)]
                if points:
                    structure = models().PointStruct
                    sent = [structure(id=n, vector=v, payload=payload) for n, (v, payload) in points.items()]
                    self._ask("upsert", points=sent, wait=True)
                bar.advance(len(block), "" if points else "already there")

    def _retrieve(self, numbers: list[str], payload: Any) -> Any:
        return self._ask("retrieve", ids=numbers, with_payload=payload, with_vectors=False)

    def _wait_until_indexed(self) -> bool:
        """Return whether the server has linked everything; wait up to ten minutes for it.

        Until then it compares with all that is not linked yet, and its recall says nothing of later.
        """
        until = time.monotonic() + _LONGEST_WAIT
        with task("the server builds its graph") as bar:
            while str(self._ask("get_collection").status) == "yellow":
                if time.monotonic() > until:
                    return False
                time.sleep(_PAUSE)
                bar.advance()
        return True

    def _own(self, point: Any) -> dict[str, Any]:
        own = (point.payload or {}).get(OWN)
        if not isinstance(own, dict) or "id" not in own:
            raise StorageError(
                f"{self._place} holds points that diptych did not write", "keep the collection to one index"
            )
        return own

    @property
    def _vocabulary(self) -> str:
        return str(self.about.get("vocabulary", ""))

    def __len__(self) -> int:
        return self._items

    def __contains__(self, item_id: object) -> bool:
        return isinstance(item_id, str) and bool(self._held([item_id]))

    def _held(self, names: Sequence[str]) -> set[str]:
        held: set[str] = set()
        for start in range(0, len(names), self._batch):
            numbers = {point_id(name): name for name in names[start : start + self._batch]}
            held.update(numbers[str(point.id)] for point in self._retrieve(list(numbers), False))
        return held

    def refresh(self) -> int:
        """Ask the collection how many items it holds now, and return it."""
        self._items = int(self._ask("count", exact=True).count)
        return self._items

    def _add(self, ids: Sequence[str], vectors: Vectors, records: Sequence[Record] | None = None) -> None:
        records = checked_records(records, ids)
        first = time.time_ns()  # later than every row number and every earlier addition of any client
        try:
            self._upload(ids, vectors, "added", first, records)
        finally:
            self.refresh()

    def _delete(self, ids: Sequence[str]) -> None:
        try:
            for start in range(0, len(ids), self._batch):
                points = [point_id(name) for name in ids[start : start + self._batch]]
                self._ask("delete", points_selector=models().PointIdsList(points=points), wait=True)
        finally:
            self.refresh()

    def _check_fields(self, where: Where) -> None:
        """Refuse conditions on fields that no item has: they let nothing through, silently."""
        m = models()
        for field in where:
            having = m.Filter(must_not=[m.IsEmptyCondition(is_empty=m.PayloadField(key=field))])
            if not self._ask("scroll", scroll_filter=having, limit=1, with_payload=False)[0]:
                some: Any = self._ask("scroll", limit=1, with_payload=True)[0]
                known = sorted(set(some[0].payload) - {OWN}) if some else []
                raise UsageError(
                    f"no item of {self._place} has a field {field!r}",
                    f"fields of one of its items: {', '.join(known) or 'none'}",
                )

    def _search_exact(self, queries: Vectors, k: int) -> Hits:
        return self._search(queries, k, self.options, exact=True)

    def _search(
        self,
        queries: Vectors,
        k: int,
        options: Mapping[str, OptionValue],
        where: Where | None = None,
        exact: bool = False,
    ) -> Hits:
        request = {
            "using": self.vector_name,
            "limit": k,
            "with_payload": [f"{OWN}.id", f"{OWN}.order"],
            "params": self._parameters(options, exact) if self._connection.remote else None,
            "filter": None if where is None else filter_of(where),
        }
        vectors = [vector for vector, _ in self._points(queries)]
        if self.vector_name is not None:  # a query without terms finds nothing and is not sent
            vectors = [vector.get(self.vector_name) for vector in vectors]
        present = [(row, vector) for row, vector in enumerate(vectors) if vector is not None]
        answers: list[list[tuple[float, int, str]]] = [[] for _ in vectors]
        for start in range(0, len(present), self._batch):
            part = present[start : start + self._batch]
            requests = [models().QueryRequest(query=query, **request) for _, query in part]
            found = self._ask("query_batch_points", requests=requests)
            for (row, _), answer in zip(part, found, strict=True):
                owns = [(point, self._own(point)) for point in answer.points]
                answers[row] = sorted(
                    (-float(point.score), int(own["order"]), own["id"]) for point, own in owns
                )
        if where is not None and not any(answers):
            self._check_fields(where)
        scores = np.full((len(answers), max(map(len, answers))), -np.inf, dtype=np.float32)
        for row, answer in enumerate(answers):
            scores[row, : len(answer)] = [-lower for lower, _, _ in answer]
        return Hits([[name for _, _, name in answer] for answer in answers], scores, k)

    def _stored(self, vectors: bool = False) -> list[tuple[int, str, dict[str, Any], Any]]:
        found: list[tuple[int, str, dict[str, Any], Any]] = []
        place: Any = None
        while True:
            page = {"limit": _SCROLL, "offset": place, "with_payload": True, "with_vectors": vectors}
            points, place = self._ask("scroll", **page)
            for point in points:
                own = self._own(point)
                record = {name: value for name, value in point.payload.items() if name != OWN}
                found.append((int(own["order"]), str(own["id"]), record, point.vector))
            if place is None:
                return sorted(found, key=lambda item: item[0])

    @property
    def ids(self) -> list[str]:
        """The ids of all items, in order of insertion; read from the collection each time."""
        return [name for _, name, _, _ in self._stored()]

    @property
    def records(self) -> dict[str, Record]:
        """The metadata of every item by id, in order of insertion; read from the collection each time."""
        return {name: record for _, name, record, _ in self._stored()}

    def _write(self, folder: Path) -> None:
        if self._connection.remote:
            return
        items = self._stored(vectors=True)
        write_json(folder / "ids.json", [name for _, name, _, _ in items])
        write_json(folder / "records.json", [record for _, _, record, _ in items])
        self._write_rows(folder, self._rows([vector for *_, vector in items]))

    @classmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        index = cls(**header.known())
        if index._connection.remote:
            index._check_items()
        else:
            ids, records = load_ids(folder / "ids.json"), read_json(folder / "records.json")
            rows = index._read_rows(folder, header.items)
            index._prepare("opened", records)
            index._upload(ids, rows, "opened", 0, records)
        index.refresh()
        return index

    def _check_items(self) -> None:
        if not self._ask("collection_exists"):
            raise StorageError(
                f"there is no {self._place}",
                "it was deleted, or the index was built on another server: build it again",
            )
        self._check_collection()
        points, _ = self._ask("scroll", limit=1, with_payload=True)
        for own in map(self._own, points):
            for what, expected in (("encoder", self.encoder), ("vocabulary", self._vocabulary)):
                if own.get(what) != expected:
                    raise MismatchError(
                        f"{self._place} holds items of {what} {own.get(what)}, the saved index is of {expected}",
                        "another index took its place: open that one, or build this one again elsewhere",
                    )

    def rebuild(self, **options: Any) -> Self:
        """As the contract says; on a server into another collection, for it keeps its own in order."""
        chosen = {**self.options, **options}
        same = all(chosen[name] == self.options[name] for name in ("url", "collection"))
        if self._connection.remote and same:
            raise UsageError(
                f"{self._place} cannot be rebuilt into itself",
                "the server clears deleted items away by itself; to copy it, pass collection=NAME",
            )
        items = self._stored(vectors=True)
        embeddings = self._embedded(
            [name for _, name, _, _ in items], self._rows([item[3] for item in items])
        )
        records = [record for _, _, record, _ in items]
        return type(self).build(embeddings, records=records, **chosen)


class SparseQdrantIndex(QdrantIndex):
    """One sparse vector per point, none of an empty bag; the server's inverted index misses no item."""

    engine_name = "qdrant-sparse"
    vector_name = "terms"

    def _configuration(self) -> dict[str, Any]:
        vectors = {self.vector_name: models().SparseVectorParams()}
        return {"vectors_config": {}, "sparse_vectors_config": vectors}

    def _check_collection(self) -> None:
        have = self._ask("get_collection").config.params.sparse_vectors or {}
        if set(have) != {self.vector_name} or have[self.vector_name].modifier not in (None, "none"):
            raise MismatchError(
                f"{self._place} holds sparse vectors {sorted(have)}, plain ones named {self.vector_name!r} "
                "are needed",
                _ELSE,
            )

    def _points(self, rows: csr_array) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
        sparse_vector = models().SparseVector
        for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            terms, weights = rows.indices[start:end], rows.data[start:end]
            bag = sparse_vector(indices=terms.tolist(), values=weights.tolist())
            yield {self.vector_name: bag} if len(terms) else {}, {"terms": terms, "weights": weights}

    def _rows(self, vectors: Sequence[Any]) -> csr_array:
        bags = [(vector or {}).get(self.vector_name) for vector in vectors]
        terms = [bag.indices if bag else [] for bag in bags]
        weights = np.array([value for bag in bags if bag for value in bag.values], dtype=np.float32)
        starts = np.cumsum([0, *map(len, terms)])
        columns = np.array([term for bag in terms for term in bag], dtype=np.int64)
        return canonical_rows(csr_array((weights, columns, starts), shape=(len(bags), self.width)))

    def _parameters(self, options: Mapping[str, OptionValue], exact: bool) -> Any:
        return models().SearchParams(exact=exact)

    def _write_rows(self, folder: Path, rows: csr_array) -> None:
        SparseRows(rows).write(folder)

    def _read_rows(self, folder: Path, items: int) -> csr_array:
        return SparseRows.read(folder, items, self.width).csr()


declare("qdrant", QdrantIndex)
declare("qdrant-sparse", SparseQdrantIndex)
