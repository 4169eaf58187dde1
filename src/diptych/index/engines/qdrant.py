"""Qdrant: collections of a server or a cluster, dense or sparse, restricted by metadata.

``qdrant`` holds dense vectors in the server's HNSW graph, ``qdrant-sparse`` bags of terms in its inverted index.
Both may share a collection: an item is one point with a vector ``dense``, a vector ``terms``, and its metadata once;
an index sees the points with a vector of its own. Without a ``url`` both run in this process, for tests.

A point's number is made from the item's id, so sending an item twice changes nothing; its payload holds a
fingerprint of its content, so what is there already is not sent again. A reserved point without a vector says what
an index is of (encoder, width, terms, provenance): its address is enough to open it.
"""

import json
import re
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from diptych.core.context import task
from diptych.core.errors import DataError, DiptychError, MismatchError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.data.loading import read_ahead
from diptych.data.records import Record, Where
from diptych.data.row_store import release_pages
from diptych.encoders.embeddings import canonical_rows, term_fingerprint
from diptych.index.contract import Change, Index
from diptych.index.engine import Hits, Known, OptionValue, Vectors, declare
from diptych.index.qdrant_connection import OWN, Connection, field_types, filter_of, models
from diptych.index.storage import Header

_NAMESPACE = uuid.UUID("6f0f3f66-4f0a-5d0e-9d3b-9a1f6f1c2d57")  # of this package; never change it
_RESERVED = uuid.uuid5(_NAMESPACE, "an index")  # of points that say what an index is of
_ELSE = "name another collection, or pass replace=True to delete this one first"
_SCROLL = 1024
_PAUSE, _LONGEST_WAIT = 0.5, 600.0  # seconds
_OF_PLACE = ("url", "collection", "key_variable", "replace")  # options that say where an index is


def point_id(name: str) -> str:
    """Return the point of item ``name``: the same on every server and in every run (UUID version 5)."""
    return str(uuid.uuid5(_NAMESPACE, name))


class QdrantIndex(Index):
    """Dense vectors in a collection of a Qdrant server, or of the client's stand-in inside this process.

    Scores are float32 inner products. Equal ones are ordered by insertion; which of
    several equal items come last among k is the server's choice. What was deleted the server clears
    away by itself. Other programs may search the collection meanwhile, and after they changed it
    :meth:`refresh` counts anew. A saved index holds where its collection is and not its items.

    The stand-in compares every item with every query in Python, and its makers say that it is not for
    production: it serves for tests and for trying things out, and cannot be saved.
    """

    engine_name = "qdrant"
    vector_name: ClassVar[str] = "dense"

    def __init__(self, known: Known) -> None:
        super().__init__(known)
        self._connection = Connection(self.options)
        self._ask, self._place = self._connection.ask, self._connection.place
        self._batch, self._items, self._source = int(self.options["batch"]), 0, ""
        self.captions = None
        self.read_ahead: dict[str, dict[str, Any]] = {}  # payloads by id, see :meth:`prefetch`
        self._stamp = f"{OWN}.{self.vector_name}"  # the payload's field of the items of this index

    def _configuration(self) -> dict[str, Any]:
        """Return what a new collection is made with: not the cosine, under which Qdrant would scale what it stores."""
        m = models()
        graph = m.HnswConfigDiff(m=self.options["m"], ef_construct=self.options["ef_construction"])
        return {"dense": m.VectorParams(size=self.width, distance=m.Distance.DOT, hnsw_config=graph)}

    def _check_collection(self) -> None:
        have = self._ask("get_collection").config.params.vectors
        have = have.get(self.vector_name) if isinstance(have, dict) else None
        if have is None or have.size != self.width or str(have.distance) != "Dot":
            found = (
                f"vectors of width {have.size} compared by {have.distance}" if have else "no dense vectors"
            )
            expected = f"these are of width {self.width}, compared by Dot"
            raise MismatchError(
                f"{self._place} holds {found}, {expected}", f"{_ELSE}; index dense vectors before terms"
            )

    def _points(self, rows: Any) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
        return ((row.tolist(), {"row": row}) for row in rows)

    def _rows(self, points: Sequence[Any]) -> Vectors:
        vectors = [point.vector[self.vector_name] for point in points]
        return np.array(vectors, dtype=np.float32).reshape(-1, self.width)

    @classmethod
    def _build(cls, items: Change, known: Known) -> Self:
        options, about = known.options, known.about
        # What was to be replaced is: an index built from these options must not change this one.
        index = cls(known._replace(options={**options, "replace": False}))
        rows = index._checked(items.vectors, items.ids, "item")
        made = (index.encoder, index._vocabulary, about["data"], about["kind"], index.width)
        index._source = fingerprint(*made)
        index._find_captions("captions" in items.lines)
        index._prepare(field_types(_records(items)), bool(options["replace"]))
        index._upload(items, rows, 0)
        if index._connection.remote and not index._wait_until_indexed():
            index.about["indexing"] = "unfinished when the recall was measured"
        if index.refresh() != len(items.ids):
            raise StorageError(
                f"{index._place} holds {len(index):,} items after {len(items.ids):,} were uploaded",
                "another program writes to it: give the index a collection of its own",
            )
        return index

    def _prepare(self, fields: Mapping[str, str], replace: bool) -> None:
        """Make the collection, or refuse one that holds anything else under this vector."""
        exists = bool(self._ask("collection_exists"))
        if exists and replace:
            self._ask("delete_collection")
        if not exists or replace:
            o, terms = self.options, {"terms": models().SparseVectorParams()}
            self._ask(
                "create_collection",
                vectors_config=self._configuration(),
                sparse_vectors_config=terms,
                shard_number=o["shards"],
                replication_factor=o["replicas"],
                write_consistency_factor=o["write_consistency"],
            )
        else:
            self._check_collection()
            self._refuse_others()
        self._publish()
        if self._connection.remote:
            # the same again changes nothing, so a build that was stopped may repeat it
            for field, kind in {f"{self._stamp}.source": "keyword", **fields}.items():
                self._ask("create_payload_index", field_name=field, field_schema=kind, wait=True)

    def _refuse_others(self) -> None:
        views = _views(self._connection)
        if not views and (strange := int(self._ask("count", exact=True).count)):
            raise MismatchError(f"{self._place} holds {strange:,} points that diptych did not write", _ELSE)
        mine = views.get(self.vector_name)
        if mine is not None and mine["source"] != self._source and self.refresh():
            raise MismatchError(
                f"{self._place} already holds {len(self):,} items of other embeddings (encoder {mine['encoder']}, "
                f"those to be uploaded: {self.encoder})",
                _ELSE,
            )

    def _publish(self) -> None:
        """Write into the collection what the index is of, for who opens it by its address."""
        view = {name: getattr(self, name) for name in ("encoder", "width", "about", "terms")}
        view |= {"source": self._source, "captions": self.captions is not None}
        view["options"] = {name: value for name, value in self.options.items() if name not in _OF_PLACE}
        number = str(uuid.uuid5(_RESERVED, self.vector_name))
        point = models().PointStruct(id=number, vector={}, payload={OWN: {"index": view}})
        self._ask("upsert", points=[point], wait=True)

    def _find_captions(self, there: bool) -> None:
        if there:
            self.captions = _Payloads(self, _captions_of)

    def _upload(self, items: Change, rows: Any, first: int) -> None:
        """Send items, those excepted that are there with the same content; ``first`` is the first one's order."""
        ids, lines = items.ids, items.lines

        def send(block: Sequence[tuple[int, tuple[Any, dict[str, np.ndarray]]]]) -> tuple[int, bool]:
            there = {str(point.id): point for point in self._retrieve([ids[row] for row, _ in block])}
            # Points of another index are written with what that one has of them.
            numbers = [number for number, point in there.items() if self._is_shared(point)]
            shared = self._ask("retrieve", ids=numbers, with_vectors=True) if numbers else ()
            kept = {str(point.id): (point.payload, dict(point.vector or {})) for point in shared}
            points = []
            for row, (vector, parts) in block:
                name, number = ids[row], point_id(ids[row])
                known = {what: json.loads(given[row]) for what, given in lines.items()}
                record = known.pop("records", {})
                content = fingerprint(fingerprint_arrays(parts), self.encoder, record, known, first)
                if number in there and _of(there[number], self.vector_name).get("content") == content:
                    continue
                payload, vectors = kept.get(number, ({}, {}))
                stamp = {"order": first + row, "source": self._source, "content": content}
                own = {**payload.get(OWN, {}), "id": name, **known, self.vector_name: stamp}
                vectors |= {self.vector_name: vector}
                named = {key: value for key, value in vectors.items() if value is not None}
                payload = {**payload, **record, OWN: own}
                points.append(models().PointStruct(id=number, vector=named, payload=payload))
            if points:
                self._ask("upsert", points=points, wait=True)
            return len(block), bool(points)

        numbered, remote = enumerate(self._points(rows)), self._connection.remote
        blocks = iter(lambda: list(islice(numbered, self._batch)), [])
        parallel = int(self.options["parallel"]) if remote else 0  # the stand-in is not for several threads
        with task("uploading to Qdrant", len(ids), "items") as bar:
            for count, is_sent in read_ahead(send, blocks, parallel, 2 * parallel):
                bar.advance(count, "" if is_sent else "already there")
                release_pages(getattr(rows, "base", None))

    def _retrieve(self, names: Sequence[str], payload: Any = (OWN,), **more: Any) -> Any:
        numbers = [point_id(name) for name in names]
        return self._ask("retrieve", ids=numbers, with_payload=payload, **more)

    def _is_shared(self, point: Any) -> bool:
        """Return whether another index of the collection has the item, too."""
        return any(_of(point, name) for name in _VIEWS if name != self.vector_name)

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

    def _own(self, point: Any) -> tuple[int, str]:
        """Return an item's order and id."""
        if not (stamp := _of(point, self.vector_name)):
            raise StorageError(
                f"{self._place} holds points that diptych did not write", "keep the collection to one program"
            )
        return int(stamp["order"]), str(point.payload[OWN]["id"])

    @property
    def _mine(self) -> Any:
        """Return the filter of the points that this index has."""
        m = models()
        none = m.IsEmptyCondition(is_empty=m.PayloadField(key=f"{self._stamp}.source"))
        return m.Filter(must_not=[none])

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
            found = self._retrieve(names[start : start + self._batch])
            held.update(point.payload[OWN]["id"] for point in found if _of(point, self.vector_name))
        return held

    def refresh(self) -> int:
        """Ask the collection how many items it holds now, and return it."""
        self._items = int(self._ask("count", count_filter=self._mine, exact=True).count)
        return self._items

    def _insert(self, change: Change) -> None:
        deque(_records(change), 0)  # checked before any is sent
        try:
            # Their order is later than every row number and every earlier addition of any client.
            self._upload(change, change.vectors, time.time_ns())
            self._find_captions("captions" in change.lines)
        finally:
            self.refresh()

    def _delete(self, ids: Sequence[str]) -> None:
        m = models()
        try:
            for start in range(0, len(ids), self._batch):
                found = self._retrieve(ids[start : start + self._batch])
                shared = [point.id for point in found if self._is_shared(point)]
                if shared:
                    payload = m.DeletePayload(points=shared, keys=[self._stamp])
                    vectors = m.DeleteVectors(points=shared, vector=[self.vector_name])
                    first = m.DeletePayloadOperation(delete_payload=payload)
                    changes = [first, m.DeleteVectorsOperation(delete_vectors=vectors)]
                    self._ask("batch_update_points", update_operations=changes, wait=True)
                if alone := [point.id for point in found if point.id not in shared]:
                    self._ask("delete", points_selector=m.PointIdsList(points=alone), wait=True)
        finally:
            self.refresh()

    def _check_fields(self, where: Where) -> None:
        """Refuse conditions on fields that no item has: they let nothing through, silently."""
        m = models()
        for field in where:
            having = m.Filter(must_not=[m.IsEmptyCondition(is_empty=m.PayloadField(key=field))])
            if not self._ask("scroll", scroll_filter=having, limit=1, with_payload=False)[0]:
                some: Any = self._ask("scroll", scroll_filter=self._mine, limit=1, with_payload=True)[0]
                known = sorted(set(some[0].payload) - {OWN}) if some else []
                raise UsageError(
                    f"no item of {self._place} has a field {field!r}",
                    f"fields of one of its items: {', '.join(known) or 'none'}",
                )

    def _search_exact(self, queries: Vectors, k: int, where: Where | None = None) -> Hits:
        return self._search(queries, k, self.options, where, exact=True)

    def _search(
        self,
        queries: Vectors,
        k: int,
        options: Mapping[str, OptionValue],
        where: Where | None = None,
        exact: bool = False,
    ) -> Hits:
        how = models().SearchParams(exact=exact, hnsw_ef=options.get("ef_search"))
        request = {
            "using": self.vector_name,
            "limit": k,
            "with_payload": [f"{OWN}.id", f"{self._stamp}.order"],
            "params": how if self._connection.remote else None,
            "filter": None if where is None else filter_of(where),
        }
        vectors = [vector for vector, _ in self._points(queries)]
        # A query without terms finds nothing and is not sent.
        present = [(row, vector) for row, vector in enumerate(vectors) if vector is not None]
        answers: list[list[tuple[float, int, str]]] = [[] for _ in vectors]
        for start in range(0, len(present), self._batch):
            part = present[start : start + self._batch]
            requests = [models().QueryRequest(query=query, **request) for _, query in part]
            found = self._ask("query_batch_points", requests=requests)
            for (row, _), answer in zip(part, found, strict=True):
                answers[row] = sorted((-float(point.score), *self._own(point)) for point in answer.points)
        if where is not None and not any(answers):
            self._check_fields(where)
        scores = np.full((len(answers), max(map(len, answers))), -np.inf, dtype=np.float32)
        for row, answer in enumerate(answers):
            scores[row, : len(answer)] = [-lower for lower, _, _ in answer]
        return Hits([[name for _, _, name in answer] for answer in answers], scores, k)

    def _stored(self, vectors: bool = False) -> list[Any]:
        """Return the points of all items, in order of insertion."""
        found: list[Any] = []
        page: dict[str, Any] = {"scroll_filter": self._mine, "limit": _SCROLL, "offset": None}
        page |= {"with_payload": True, "with_vectors": [self.vector_name] if vectors else False}
        while True:
            points, page["offset"] = self._ask("scroll", **page)
            found += points
            if page["offset"] is None:
                return sorted(found, key=self._own)

    @property
    def ids(self) -> list[str]:
        """The ids of all items, in order of insertion; read from the collection each time."""
        return [self._own(point)[1] for point in self._stored()]

    @property
    def records(self) -> Mapping[str, Record]:
        """The metadata of every item by id, each read from the collection when it is needed."""
        return _Payloads(self, _record_of)

    def prefetch(self, ids: Sequence[str]) -> None:
        self.read_ahead = self.payloads(ids)

    def payloads(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what the points of items hold, of those that are there."""
        points = self._retrieve(ids, True) if ids else ()
        return {str(point.payload[OWN]["id"]): point.payload for point in points}

    def vectors(self, ids: Sequence[str]) -> Vectors:
        points = self._retrieve(ids, with_vectors=[self.vector_name])
        found = {point.payload[OWN]["id"]: point for point in points}
        return self._rows([found[name] for name in ids])

    def _write(self, folder: Path) -> None:
        if not self._connection.remote:
            raise UsageError(f"the {self._place} ends with it", "name a server with the option url")
        self._publish()

    @classmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        index = cls(header.known())
        index._join(_views(index._connection).get(cls.vector_name, {}))
        return index

    def _join(self, view: Mapping[str, Any]) -> None:
        """Make this the index that the collection says it holds."""
        self._check_collection()
        own = {"encoder": view.get("encoder"), "vocabulary": view.get("about", {}).get("vocabulary", "")}
        for what, expected in (("encoder", self.encoder), ("vocabulary", self._vocabulary)):
            if own[what] != expected:
                raise MismatchError(
                    f"{self._place} holds items of {what} {own[what]}, the saved index is of {expected}",
                    "another index took its place: open that one, or build this one again elsewhere",
                )
        self._source = str(view["source"])
        self._find_captions(bool(view.get("captions")))
        self.refresh()

    def rebuild(self, **options: Any) -> Self:
        """As the contract says; on a server into another collection, for it keeps its own in order."""
        chosen = {**self.options, **options}
        same = all(chosen[name] == self.options[name] for name in ("url", "collection"))
        if self._connection.remote and same:
            raise UsageError(
                f"{self._place} cannot be rebuilt into itself",
                "the server clears deleted items away by itself; to copy it, pass collection=NAME",
            )
        points = self._stored(vectors=True)
        ids = [self._own(point)[1] for point in points]
        captions = (
            None
            if self.captions is None
            else {name: _captions_of(point.payload) for name, point in zip(ids, points, strict=True)}
        )
        records, items = (
            [_record_of(point.payload) for point in points],
            self._embedded(ids, self._rows(points)),
        )
        return type(self).build(items, records=records, captions=captions, **chosen)


class SparseQdrantIndex(QdrantIndex):
    """One sparse vector per point, none of an empty bag; the server's inverted index misses no item."""

    engine_name = "qdrant-sparse"
    vector_name = "terms"

    def _configuration(self) -> dict[str, Any]:
        return {}

    def _check_collection(self) -> None:
        have = self._ask("get_collection").config.params.sparse_vectors or {}
        if self.vector_name not in have or have[self.vector_name].modifier not in (None, "none"):
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
            yield bag if len(terms) else None, {"terms": terms, "weights": weights}

    def _rows(self, points: Sequence[Any]) -> csr_array:
        vectors = [(point.vector or {}).get(self.vector_name) for point in points]
        terms = [bag.indices if bag else [] for bag in vectors]
        weights = np.array([value for bag in vectors if bag for value in bag.values], dtype=np.float32)
        starts = np.cumsum([0, *map(len, terms)])
        columns = np.array([term for bag in terms for term in bag], dtype=np.int64)
        return canonical_rows(csr_array((weights, columns, starts), shape=(len(vectors), self.width)))


_VIEWS = {index.vector_name: index for index in (QdrantIndex, SparseQdrantIndex)}


def _of(point: Any, name: str) -> dict[str, Any]:
    """Return what the index of the vector ``name`` wrote into a point's payload; nothing where it wrote none."""
    own = (point.payload or {}).get(OWN)
    found = own.get(name) if isinstance(own, dict) else None
    return found if isinstance(found, dict) else {}


def _views(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return what the indexes of a collection are of, by the name of their vector."""
    numbers = {str(uuid.uuid5(_RESERVED, name)): name for name in _VIEWS}
    points = connection.ask("retrieve", ids=list(numbers), with_payload=True)
    return {numbers[str(point.id)]: _of(point, "index") for point in points}


class _Payloads(Mapping[str, Any]):
    """A part of the points' payload by item, each read when it is needed."""

    def __init__(self, index: QdrantIndex, part: Callable[[dict[str, Any]], Any]) -> None:
        self._index, self._part = index, part

    def __getitem__(self, name: str) -> Any:
        ahead = self._index.read_ahead  # which another thread replaces
        return self._part(ahead[name] if name in ahead else self._index.payloads([name])[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._index.ids)

    def __len__(self) -> int:
        return len(self._index)


def _records(items: Change) -> Iterator[dict[str, Any]]:
    """Yield the metadata of items; its fields stand next to this package's."""
    for name, line in zip(items.ids, items.lines.get("records", ()), strict=False):
        if OWN in (record := json.loads(line)):
            message = f"the metadata of {name!r} has a field {OWN!r}, which is taken"
            raise DataError(message, "give the field another name")
        yield record


def _captions_of(payload: dict[str, Any]) -> list[str]:
    return list(payload[OWN].get("captions", ()))


def _record_of(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name != OWN}


def open_address(address: str) -> Index:
    """Open an index by where it is, ``qdrant:http://HOST:6333/COLLECTION``, with nothing but the address.

    Of a collection with dense vectors and terms these are the dense ones; ``…/COLLECTION/terms`` names the others.
    The environment variable ``QDRANT_API_KEY`` holds the key, where the server wants one.

    Raises:
        UsageError: the address is none.
        StorageError: no server answers, or it holds no index there.
    """
    found = re.fullmatch(r"qdrant:(https?):/+(.+?)/([^/]+?)(?:/(dense|terms))?/?", address)
    if found is None:
        raise UsageError(f"{address} is no address of an index", "qdrant:http://HOST:6333/COLLECTION")
    scheme, host, collection, wanted = found.groups()
    place = {"url": f"{scheme}://{host}", "collection": collection}
    views = _views(connection := Connection(QdrantIndex.engine().resolve(place)))
    name = wanted or next((name for name in _VIEWS if name in views), "dense")
    if name not in views:
        raise StorageError(
            f"{connection.place} holds no index of {name}",
            f"it holds {' and '.join(views) or 'none that diptych wrote'}; build it: diptych index … --engine qdrant",
        )
    view, kind = views[name], _VIEWS[name]
    try:
        options = kind.engine().resolve({**view["options"], **place})
        index = kind(Known(view["encoder"], view["width"], options, view["about"], tuple(view["terms"])))
        sound = term_fingerprint(index.terms) == index._vocabulary or not index.terms
    except (DiptychError, AttributeError, KeyError, TypeError) as error:
        raise StorageError(
            f"what {connection.place} says of its index cannot be read: {error}", _ELSE
        ) from None
    if not sound or (len(index.terms) or index.width) != index.width:
        raise StorageError(f"{connection.place} holds other terms than its index was built of", _ELSE)
    index._join(view)
    return index


declare("qdrant", QdrantIndex)
declare("qdrant-sparse", SparseQdrantIndex)
