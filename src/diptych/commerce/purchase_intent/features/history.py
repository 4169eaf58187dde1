"""What was known of a visitor when a session began: one expression, on any engine.

Three streams per visitor are put in the order of time: sessions that ask, sessions that count, purchases that
count; what an asking session gets is what was added up strictly before it. So nothing is compared with everything,
and nobody sees the present session, one that begins later, or a purchase that comes later in an earlier one.

A session counts from its start where its visitor was known before its first page. Where the visitor logged in
later, it counts from its end: before the log-in nobody knew whose it was. The same holds for a purchase before
the log-in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.features.columns import EARLIER_DEVICES
from diptych.core.extras import require

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["HISTORY", "visitor_history"]

HISTORY = (
    "sessions",
    "orders",
    "last_purchase_us",
    "devices",
    "switches",
    "pairs",
    *EARLIER_DEVICES,
)
"""Columns of the result, beside ``session_id``."""

_ASKS, _VISIT, _PURCHASE = 0, 1, 2
"""At one moment whoever asks comes first, so that it sees only what was strictly before."""


def visitor_history(sessions: ir.Table, least_pages: int) -> ir.Table:
    """The history of every session that has a visitor and at least that many pages.

    Args:
        sessions: as :data:`~diptych.commerce.purchase_intent.sessions.schema.SESSIONS`.
        least_pages: of sessions that ask; all sessions of their visitors count.

    Returns:
        One row per asking session: ``session_id`` and :data:`HISTORY`.
    """
    ibis = require("ibis", "commerce", "history of visitors")
    known = sessions.filter(sessions.visitor_id.notnull())
    asking = known.filter(known.n_pages >= least_pages)
    known = known.semi_join(asking.select("visitor_id").distinct(), "visitor_id")
    visits = _visits(known)
    added = _added_up(asking, visits, _purchases(known))
    numbered = _numbered(visits)
    joined = added.left_join(
        numbered,
        [added.visitor_id == numbered.visitor_id, added.sessions == numbered.number],
    )
    return joined.select(
        added.session_id,
        added.sessions,
        added.orders,
        added.last_purchase_us,
        added.devices,
        ibis.coalesce(numbered.switches, 0).name("switches"),
        ibis.greatest(added.sessions - 1, 0).name("pairs"),
        *(numbered[name] for name in EARLIER_DEVICES),
    )


def _visits(known: ir.Table) -> ir.Table:
    ibis = require("ibis", "commerce", "history of visitors")
    return known.select(
        "visitor_id",
        "session_id",
        "device",
        at_us=ibis.ifelse(known.pages_before_identified == 0, known.start_us, known.end_us),
    )


def _purchases(known: ir.Table) -> ir.Table:
    ibis = require("ibis", "commerce", "history of visitors")
    bought = known.filter(known.first_purchase_us.notnull())
    was_known = (bought.pages_before_identified == 0) | (
        bought.pages_before_identified < bought.pages_before_purchase
    )
    return bought.select(
        "visitor_id",
        "session_id",
        "device",
        at_us=ibis.ifelse(was_known, bought.first_purchase_us, bought.end_us),
        bought_us=bought.first_purchase_us,
    )


def _added_up(asking: ir.Table, visits: ir.Table, purchases: ir.Table) -> ir.Table:
    """Counts of what was before each asking session."""
    ibis = require("ibis", "commerce", "history of visitors")
    nothing = ibis.null("int64")
    streams = (
        asking.select("visitor_id", "session_id", "device", at_us=asking.start_us).mutate(
            role=ibis.literal(_ASKS, "int64"), bought_us=nothing
        ),
        visits.mutate(role=ibis.literal(_VISIT, "int64"), bought_us=nothing),
        purchases.mutate(role=ibis.literal(_PURCHASE, "int64")),
    )
    columns = ("visitor_id", "session_id", "device", "at_us", "role", "bought_us")
    stream = ibis.union(*(one.select(*columns) for one in streams))
    so_far = {"order_by": ["at_us", "role"], "rows": (None, 0)}
    visit = (stream.role == _VISIT).cast("int64")
    stream = stream.mutate(
        visit=visit,
        on_device=visit.sum().over(ibis.window(group_by=["visitor_id", "device"], **so_far)),
    )
    by_visitor = ibis.window(group_by="visitor_id", **so_far)
    first_on_device = ((stream.visit == 1) & (stream.on_device == 1)).cast("int64")
    stream = stream.mutate(
        sessions=stream.visit.sum().over(by_visitor),
        orders=(stream.role == _PURCHASE).cast("int64").sum().over(by_visitor),
        last_purchase_us=stream.bought_us.max().over(by_visitor),
        earlier_devices=first_on_device.sum().over(by_visitor),
    )
    asked = stream.filter(stream.role == _ASKS)
    return asked.mutate(devices=asked.earlier_devices + (asked.on_device == 0).cast("int64"))


def _numbered(visits: ir.Table) -> ir.Table:
    """The visits of each visitor, 1 is the first, with the devices of those before and the switches so far."""
    ibis = require("ibis", "commerce", "history of visitors")
    order = {"group_by": "visitor_id", "order_by": ["at_us", "session_id"]}
    in_turn = ibis.window(**order)
    first, *others = EARLIER_DEVICES
    numbered = visits.mutate(
        number=ibis.row_number().over(in_turn) + 1,
        **{first: visits.device},
        **{name: visits.device.lag(back).over(in_turn) for back, name in enumerate(others, start=1)},
    )
    switched = (numbered[others[0]].notnull() & (numbered.device != numbered[others[0]])).cast("int64")
    return numbered.mutate(switches=switched.sum().over(ibis.window(**order, rows=(None, 0))))
