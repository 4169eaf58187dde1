"""Items of a Qdrant collection: points and payloads, vectors as the client takes them, upload and download.

A point's number is made from the item's id, so sending an item twice changes nothing; its payload holds a
fingerprint of its content, so what is there already is not sent again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from diptych.core.context import task
from diptych.core.errors import DataError, MismatchError, StorageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings, canonical_rows
from diptych.index.engine import OptionValue
from diptych.index.qdrant_connection import Connection, models
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import load_array
from diptych.index.vectors import dense_vectors, row_norms

Record = Mapping[str, Any]

OWN = "diptych"
"""The payload's field of this package; beside it lie the fields of the item's metadata."""

_NAMESPACE = uuid.UUID("6f0f3f66-4f0a-5d0e-9d3b-9a1f6f1c2d57")  # of this package; never change it


def point_id(name: str) -> str:
    """The point of item ``name``: the same on every server and in every run (UUID version 5)."""
    return str(uuid.uuid5(_NAMESPACE, name))


@dataclass(frozen=True)
class Stamp:
    """Where items come from.

    Attributes:
        encoder: fingerprint of what made their vectors.
        source: fingerprint of the embeddings they were built from, or ``"added"``.
        vocabulary: fingerprint of the terms of sparse vectors.
    """

    encoder: str
    source: str
    vocabulary: str = ""

    @classmethod
    def of(cls, embeddings: Embeddings | SparseEmbeddings) -> Self:
        """The stamp of all items of ``embeddings``."""
        vocabulary = embeddings.vocabulary if isinstance(embeddings, SparseEmbeddings) else ""
        said = (embeddings.encoder, vocabulary, embeddings.data, embeddings.kind, embeddings.width)
        return cls(embeddings.encoder, fingerprint(*said), vocabulary)


def payload_of(name: str, order: int, stamp: Stamp, content: str, record: Record | None) -> dict[str, Any]:
    """The payload of an item; ``order`` grows with insertion, ``content`` see :func:`content_of`."""
    own = {"id": name, "order": order, "content": content, **vars(stamp)}
    return {OWN: own, **(record or {})}


def content_of(parts: Mapping[str, np.ndarray], encoder: str, record: Record | None) -> str:
    """Fingerprint of one item: its vector, what made it, its metadata."""
    return fingerprint(fingerprint_arrays(parts), encoder, record or {})


def read_payload(payload: Record | None, place: str) -> dict[str, Any]:
    """This package's part of a payload."""
    own = (payload or {}).get(OWN)
    if not isinstance(own, dict) or "id" not in own:
        raise StorageError(
            f"{place} holds points that diptych did not write", "keep the collection to one index"
        )
    return own


def check_records(records: Sequence[Record] | None, ids: Sequence[str]) -> list[dict[str, Any]] | None:
    """The metadata of each id as JSON gives it back; None without any."""
    if records is None:
        return None
    if len(records) != len(ids):
        raise DataError(f"metadata of {len(records):,} items given for {len(ids):,}", "give one per item")
    checked = []
    for name, record in zip(ids, records, strict=True):
        if OWN in record:
            raise DataError(
                f"the metadata of {name!r} has a field {OWN!r}, which is taken", "give the field another name"
            )
        try:
            checked.append(json.loads(json.dumps(dict(record), allow_nan=False)))
        except (TypeError, ValueError) as error:
            raise DataError(
                f"the metadata of {name!r} is not JSON: {error}", "give texts, numbers, lists, mappings"
            ) from None
    return checked


@dataclass(frozen=True, eq=False)
class _DescribedEmbeddings(Embeddings):
    records: Sequence[Record] | None = None


@dataclass(frozen=True, eq=False)
class _DescribedSparseEmbeddings(SparseEmbeddings):
    records: Sequence[Record] | None = None


def with_records(
    embeddings: Embeddings | SparseEmbeddings, records: Sequence[Record]
) -> Embeddings | SparseEmbeddings:
    """Return the embeddings with metadata per row, by which searches can be restricted."""
    values = {field.name: getattr(embeddings, field.name) for field in fields(embeddings)}
    kind = _DescribedSparseEmbeddings if isinstance(embeddings, SparseEmbeddings) else _DescribedEmbeddings
    return kind(**values, records=check_records(records, embeddings.ids))


_ELSE = "name another collection, or pass replace=True to delete this one first"


class DenseForm:
    """One nameless vector per point, compared by the inner product as it is.

    Not by the cosine: under that Qdrant would scale what it stores to unit length.
    """

    using: str | None = None  # the vector's name in the collection

    def checked(self, rows: Any, ids: Sequence[str]) -> np.ndarray:
        dense = dense_vectors(rows, rows.shape[1], "item")
        row_norms(dense, ids, "item")
        return dense

    def configuration(self, width: int, options: Mapping[str, OptionValue]) -> dict[str, Any]:
        m = models()
        graph = m.HnswConfigDiff(m=options["m"], ef_construct=options["ef_construction"])
        return {"vectors_config": m.VectorParams(size=width, distance=m.Distance.DOT, hnsw_config=graph)}

    def check(self, connection: Connection, width: int) -> None:
        have = connection.ask("get_collection").config.params.vectors
        size = getattr(have, "size", None)
        if size is None:
            raise MismatchError(
                f"{connection.place} holds no nameless dense vectors, {width} wide ones are needed", _ELSE
            )
        if size != width or str(have.distance) != "Dot":
            raise MismatchError(
                f"{connection.place} holds vectors of width {size} compared by {have.distance}, "
                f"these are of width {width}, compared by Dot",
                _ELSE,
            )

    def vectors(self, rows: np.ndarray) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
        for row in rows:
            yield row.tolist(), {"row": row}

    def rows(self, vectors: Sequence[Any], width: int) -> np.ndarray:
        rows: np.ndarray = np.array(vectors, dtype=np.float32).reshape(-1, width)
        return rows

    def parameters(self, options: Mapping[str, OptionValue], *, exact: bool) -> Any:
        m = models()
        return m.SearchParams(exact=True) if exact else m.SearchParams(hnsw_ef=options["ef_search"])

    def write(self, folder: Path, rows: np.ndarray) -> None:
        np.save(folder / "rows.npy", rows)

    def read(self, folder: Path, items: int, width: int) -> np.ndarray:
        return load_array(folder / "rows.npy", (items, width), np.float32, mapped=False)


class SparseForm:
    """One sparse vector named ``terms`` per point; a bag without terms is a point without a vector."""

    using: str | None = "terms"

    def checked(self, rows: Any, ids: Sequence[str]) -> csr_array:
        return rows  # the contract checked them

    def configuration(self, width: int, options: Mapping[str, OptionValue]) -> dict[str, Any]:
        return {"vectors_config": {}, "sparse_vectors_config": {self.using: models().SparseVectorParams()}}

    def check(self, connection: Connection, width: int) -> None:
        have = connection.ask("get_collection").config.params.sparse_vectors or {}
        if set(have) != {self.using} or have[self.using].modifier not in (None, "none"):
            raise MismatchError(
                f"{connection.place} holds sparse vectors {sorted(have)}, plain ones named {self.using!r} "
                "are needed",
                _ELSE,
            )

    def vectors(self, rows: csr_array) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
        sparse_vector = models().SparseVector
        for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            terms, weights = rows.indices[start:end], rows.data[start:end]
            bag = sparse_vector(indices=terms.tolist(), values=weights.tolist())
            yield {self.using: bag} if len(terms) else {}, {"terms": terms, "weights": weights}

    def rows(self, vectors: Sequence[Any], width: int) -> csr_array:
        bags = [(vector or {}).get(self.using) for vector in vectors]
        terms = [bag.indices if bag else [] for bag in bags]
        weights = np.array([value for bag in bags if bag for value in bag.values], dtype=np.float32)
        starts = np.cumsum([0, *map(len, terms)])
        columns = np.array([term for bag in terms for term in bag], dtype=np.int64)
        return canonical_rows(csr_array((weights, columns, starts), shape=(len(bags), width)))

    def parameters(self, options: Mapping[str, OptionValue], *, exact: bool) -> Any:
        return models().SearchParams(exact=exact)

    def write(self, folder: Path, rows: csr_array) -> None:
        SparseRows(rows).write(folder)

    def read(self, folder: Path, items: int, width: int) -> csr_array:
        return SparseRows.read(folder, items, width).csr()


_SCROLL = 1024


Form = DenseForm | SparseForm
"""How a kind of vectors looks to Qdrant."""


@dataclass(frozen=True)
class Stored:
    """An item as a collection gives it back.

    Attributes:
        name: its id.
        order: grows with insertion.
        record: its metadata.
        vector: in the client's form; None when it was not asked for.
    """

    name: str
    order: int
    record: Record
    vector: Any


def upload(
    connection: Connection,
    form: Form,
    ids: Sequence[str],
    rows: Any,
    stamp: Stamp,
    orders: Sequence[int],
    records: Sequence[Record] | None,
    batch: int,
    *,
    resume: bool = False,
) -> int:
    """Send items, those excepted that are there with the same content.

    Args:
        rows: (n, width) vectors.
    """
    sent = 0
    vectors = enumerate(form.vectors(rows))
    with task("uploading to Qdrant", len(ids), "items") as bar:
        while block := list(islice(vectors, batch)):
            points: dict[str, Any] = {}
            for row, (vector, parts) in block:
                record = None if records is None else records[row]
                content = content_of(parts, stamp.encoder, record)
                payload = payload_of(ids[row], orders[row], stamp, content, record)
                points[point_id(ids[row])] = (vector, payload)
            if resume:
                for number, content in _contents(connection, list(points)).items():
                    if points[number][1][OWN]["content"] == content:
                        del points[number]
            _send(connection, points)
            sent += len(points)
            bar.advance(len(block), "" if points else "already there")
    return sent


def _send(connection: Connection, points: dict[str, Any]) -> None:
    if points:
        point = models().PointStruct
        structs = [point(id=n, vector=vector, payload=payload) for n, (vector, payload) in points.items()]
        connection.ask("upsert", points=structs, wait=True)


def _contents(connection: Connection, numbers: list[str]) -> dict[str, str]:
    found = connection.ask("retrieve", ids=numbers, with_payload=[f"{OWN}.content"], with_vectors=False)
    return {str(point.id): (point.payload or {}).get(OWN, {}).get("content", "") for point in found}


def held_items(connection: Connection, names: Sequence[str], batch: int) -> set[str]:
    """Those of ``names`` that the collection holds."""
    held: set[str] = set()
    for start in range(0, len(names), batch):
        numbers = {point_id(name): name for name in names[start : start + batch]}
        points = connection.ask("retrieve", ids=list(numbers), with_payload=False, with_vectors=False)
        held.update(numbers[str(point.id)] for point in points)
    return held


def delete_items(connection: Connection, names: Sequence[str], batch: int) -> None:
    """Delete ``names``, in blocks."""
    for start in range(0, len(names), batch):
        points = models().PointIdsList(points=[point_id(name) for name in names[start : start + batch]])
        connection.ask("delete", points_selector=points, wait=True)


def read_items(connection: Connection, *, vectors: bool) -> list[Stored]:
    """All items in order of insertion."""
    found: list[Stored] = []
    place: Any = None
    while True:
        points, place = connection.ask(
            "scroll", limit=_SCROLL, offset=place, with_payload=True, with_vectors=vectors
        )
        for point in points:
            own = read_payload(point.payload, connection.place)
            record = {name: value for name, value in point.payload.items() if name != OWN}
            found.append(Stored(own["id"], int(own["order"]), record, point.vector))
        if place is None:
            return sorted(found, key=lambda item: item.order)
