"""From events with the number of their session to the three tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.engine import Ordered
from diptych.commerce.purchase_intent.sessions.assign import ORDER
from diptych.commerce.purchase_intent.sessions.queries import normalised
from diptych.commerce.purchase_intent.sessions.schema import (
    BUFFER,
    PAGES,
    QUERIES,
    SESSIONS,
    SessionOptions,
)
from diptych.data.logs.schema import UNKNOWN, Column

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["counted", "pages_table", "queries_table", "sessions_table"]


def counted(events: ir.Table, ordered: Ordered) -> ir.Table:
    """One row per session: its number, and what is added up over its events, whatever their order.

    Nearly all sessions have one visitor or none. Of several, only the first and the last in the alphabet are known
    here: :func:`sessions_table` looks for the first in time.

    Args:
        events: as :func:`~diptych.commerce.purchase_intent.sessions.assign.assigned` gives them.
        ordered: what they were assigned in.
    """
    return events.group_by([*ordered.partition, "number"]).aggregate(
        session_id=events.event_id.max(where=events.is_first),  # of one event: no other is the first
        device=events.first_device.arbitrary(),  # no other has one
        visitor_id=events.visitor_id.min(),
        other_visitor=events.visitor_id.max(),
        end_us=events.t_us.max(),
        n_events=events.count(),
        length=events.count(where=events.is_action),
        n_pages=events.count(where=events.is_page),
        n_queries=events.count(where=events.is_query),
        purchase=events.is_purchase.any(),
        first_purchase_us=events.t_us.min(where=events.is_purchase),
        pages_earlier=events.pages_before.min(),
        until_purchase=events.pages_before.min(where=events.is_purchase),
        until_identified=events.pages_before.min(where=events.is_known),
    )


def sessions_table(events: ir.Table, counts: ir.Table, ordered: Ordered) -> ir.Table:
    """The table ``sessions``, in the order of ``session_id``: what first events say, with the counts of sessions."""
    import ibis

    keys = [*ordered.partition, "number"]
    first = events.filter(events.is_first)
    first = first.select(
        *keys,
        client_id=first.first_client_id,
        start_us=first.t_us,
        start_day=first.local_day,
        start_hour=first.local_hour,
        start_dow=first.local_dow,
        channel=first.first_channel,
    )
    rows = first.inner_join(counts, keys).left_join(_of_several(events, counts, keys), keys)
    visitor_id = ibis.coalesce(rows.first_visitor, rows.visitor_id)
    rows = rows.mutate(
        visitor_id=visitor_id,
        person=ibis.coalesce(visitor_id, rows.client_id),
        n_visitors=ibis.coalesce(rows.visitors, visitor_id.notnull().cast("int64")),
        pages_before_purchase=rows.until_purchase - rows.pages_earlier,
        pages_before_identified=rows.until_identified - rows.pages_earlier,
    )
    return _as_declared(rows, SESSIONS).order_by("session_id")


def _of_several(events: ir.Table, counts: ir.Table, keys: list[str]) -> ir.Table:
    """Of sessions with several visitors: the first in time, and how many. They are few, and the order is dear."""
    import ibis

    several = counts.filter(counts.visitor_id != counts.other_visitor).select(keys)
    told = events.filter(events.visitor_id.notnull()).semi_join(several, keys)
    turn = ibis.row_number().over(ibis.window(group_by=keys, order_by=ORDER))
    told = told.select(*keys, "visitor_id", turn=turn)
    return told.group_by(keys).aggregate(
        first_visitor=told.visitor_id.max(where=told.turn == 0), visitors=told.visitor_id.nunique()
    )


def pages_table(events: ir.Table, counts: ir.Table, ordered: Ordered, options: SessionOptions) -> ir.Table:
    """The table ``pages``: first pages of sessions that are long enough to predict on."""
    long = counts.filter(counts.n_pages >= options.pages + BUFFER)
    keys = [*ordered.partition, "number"]
    of_session = long.select(*keys, "session_id", "pages_earlier")
    pages = events.filter(events.is_page).inner_join(of_session, keys)
    pages = pages.mutate(
        position=pages.pages_before - pages.pages_earlier + 1, page_type=pages.page_type.fill_null(UNKNOWN)
    )
    kept = pages.filter(pages.position <= options.pages)
    return _as_declared(kept, PAGES).order_by("session_id", "position")


def queries_table(events: ir.Table, counts: ir.Table, ordered: Ordered) -> ir.Table:
    """The table ``queries``; one whose text the log does not have is the empty text."""
    keys = [*ordered.partition, "number"]
    of_session = counts.select(*keys, "session_id", "device", "purchase")
    queries = events.filter(events.is_query).inner_join(of_session, keys)
    queries = queries.mutate(query=normalised(queries["query"]).fill_null(""))
    return _as_declared(queries, QUERIES).order_by("session_id", "query")


def _as_declared(table: ir.Table, columns: tuple[Column, ...]) -> ir.Table:
    kinds = {"bool": "boolean", "double": "float64"}
    return table.select(
        **{column.name: table[column.name].cast(kinds.get(column.type, column.type)) for column in columns}
    )
