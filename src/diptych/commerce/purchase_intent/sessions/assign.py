"""Which session an event belongs to: one pass over events in order.

A session begins where the key changes or more than the gap has gone by, in whole microseconds: so exactly 30 minutes
are no end. Sessions are numbered by counting such beginnings, pages by counting pages, and both are all that later
steps need of the order.

Texts that only a session's first event says (client, device, channel) are left out of all others, and so is a
visitor who was known at the event before: rows stay small, and to gather a session is to take what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.engine import Ordered
from diptych.commerce.purchase_intent.sessions.keys import NOT_GIVEN, key_columns
from diptych.commerce.purchase_intent.sessions.schema import SessionOptions
from diptych.data.logs.schema import LENGTH_ACTIONS, SECOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["ORDER", "assigned", "needed"]

ORDER = ("t_us", "event_id")
"""Of events within a key."""

_OF_FIRST = ("client_id", "device", "channel")
_OF_ALL = (*ORDER, "local_day", "local_hour", "local_dow", "is_purchase", "page_type", "query")


def needed(events: ir.Table, options: SessionOptions) -> tuple[ir.Table, tuple[str, ...]]:
    """The columns of events that sessions are made of, and the names of those that are the key."""
    keys = key_columns(events, options.by)
    return events.select(*_OF_ALL, *_OF_FIRST, "action", "visitor_id", **keys), tuple(keys)


def assigned(ordered: Ordered, keys: Sequence[str], options: SessionOptions) -> ir.Table:
    """Events with the number of their session.

    Args:
        ordered: events by key, time and number.
        keys: names of the key's columns.
        options: what a session is.

    Returns:
        One row per event: ``number`` of the session, which counts from 1 within the ordered rows' partition;
        ``pages_before``, of all pages there; ``is_first`` of its session; what it is; what only some events say,
        null at others; ``misplaced`` where a row does not come after the one before, which must not be.
    """
    import ibis

    rows, before = ordered.rows, ordered.window()
    lagged = {name: rows[name].lag().over(before) for name in {*keys, *ORDER, "visitor_id"}}
    same = reduce(and_, (rows[name] == lagged[name] for name in keys))
    in_time = rows.t_us - lagged["t_us"] <= round(options.gap_minutes * 60 * SECOND)
    if options.by == "given":
        in_time = in_time | (rows.given != NOT_GIVEN)
    known = rows.visitor_id.notnull()
    rows = rows.mutate(
        is_first=~(same & in_time).fill_null(False),
        is_page=rows.action == "page",
        is_query=rows.action == "query",
        is_known=known,
        is_news=known & ~rows.visitor_id.identical_to(lagged["visitor_id"]),
        misplaced=ibis.literal(False)
        if ordered.partition
        else _comes_not_after(rows, lagged, [*keys, *ORDER]).fill_null(False),
    )
    so_far = ordered.window(rows=(None, 0))
    return rows.select(
        *ordered.partition,
        *_OF_ALL,
        "is_first",
        "is_page",
        "is_query",
        "is_known",
        "misplaced",
        number=rows.count(where=rows.is_first).over(so_far),
        pages_before=rows.count(where=rows.is_page).over(so_far) - rows.is_page.cast("int64"),
        is_action=rows.action.isin(LENGTH_ACTIONS),
        visitor_id=_where(rows.is_known & (rows.is_news | rows.is_first), rows.visitor_id),
        **{f"first_{name}": _where(rows.is_first, rows[name]) for name in _OF_FIRST},
    )


def _comes_not_after(rows: ir.Table, lagged: dict[str, Any], names: Sequence[str]) -> ir.BooleanValue:
    """Whether a row is equal to the one before or lies in front of it, by these columns in turn."""
    *others, last = names
    found = rows[last] <= lagged[last]
    for name in reversed(others):
        found = (rows[name] < lagged[name]) | ((rows[name] == lagged[name]) & found)
    return found


def _where(is_so: ir.BooleanValue, value: ir.Value) -> ir.Value:
    import ibis

    return ibis.ifelse(is_so, value, ibis.null(value.type()))
