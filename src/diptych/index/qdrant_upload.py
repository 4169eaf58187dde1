"""Items to a Qdrant collection and back: in blocks, with progress, taken up again after a kill.

A point's number is made from the item's id, so sending an item twice changes nothing; its payload
holds a fingerprint of its content, so what is there already is not sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from diptych.core.context import task
from diptych.index.qdrant_connection import Connection, models
from diptych.index.qdrant_forms import Form
from diptych.index.qdrant_points import (
    OWN,
    Record,
    Stamp,
    content_of,
    payload_of,
    point_id,
    read_payload,
)

_SCROLL = 1024


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
    *,
    orders: Sequence[int],
    records: Sequence[Record] | None,
    batch: int,
    resume: bool,
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
