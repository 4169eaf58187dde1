"""The state of a Qdrant collection: made or checked before a build, counted and looked at after it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from diptych.core.context import task
from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.index.engine import OptionValue
from diptych.index.qdrant_connection import Connection, models
from diptych.index.qdrant_filters import Where, field_types
from diptych.index.qdrant_forms import Form
from diptych.index.qdrant_points import OWN, Record, Stamp, read_payload

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
