"""From the tables of sessions to the rows of a table of features: one Ibis expression, on any engine."""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from diptych.commerce.purchase_intent.features.view import COLUMNS, EARLIER_DEVICES, SESSION
from diptych.commerce.purchase_intent.sessions import BUFFER

# What was known of a visitor when a session began.
#
# Three streams per visitor are put in the order of time: queries of long sessions, visits that count, purchases that
# count; what a query gets is what was added up strictly before it. So nothing is compared with everything, and no
# session sees itself, one that begins later, or a purchase that comes later in an earlier one.
#
# A session counts from its start where its visitor was known before its first page. Where the visitor logged in
# later, it counts from its end: before the log-in it was unknown whose it was. The same holds for a purchase before
# the log-in.

_QUERY, _VISIT, _PURCHASE = 0, 1, 2
"""At one moment queries come first, so that they see only what was strictly before."""


def visitor_history(sessions: ir.Table, least_pages: int) -> ir.Table:
    """Return the history of every session that has a visitor and at least that many pages."""
    known = sessions.filter(sessions.visitor_id.notnull())
    queries = known.filter(known.n_pages >= least_pages)
    known = known.semi_join(queries.select("visitor_id").distinct(), "visitor_id")
    on_arrival = known.pages_before_identified == 0
    visits = known.mutate(at_us=ibis.ifelse(on_arrival, known.start_us, known.end_us))
    bought = known.filter(known.first_purchase_us.notnull())
    before_purchase = bought.pages_before_identified < bought.pages_before_purchase
    was_known = (bought.pages_before_identified == 0) | before_purchase
    purchases = bought.mutate(at_us=ibis.ifelse(was_known, bought.first_purchase_us, bought.end_us))
    counts, numbered = _counts(queries.mutate(at_us=queries.start_us), visits, purchases), _numbered(visits)
    same = [counts.visitor_id == numbered.visitor_id, counts.sessions == numbered.number]
    return counts.left_join(numbered, same).select(
        *(counts[name] for name in ("session_id", "sessions", "orders", "last_purchase_us", "devices")),
        ibis.coalesce(numbered.switches, 0).name("switches"),
        ibis.greatest(counts.sessions - 1, 0).name("pairs"),
        *(numbered[name] for name in EARLIER_DEVICES),
    )


def _counts(*streams: ir.Table) -> ir.Table:
    """Return counts of what was before each query; the streams are queries, visits and purchases."""
    stream = ibis.union(
        *(
            one.select(
                "visitor_id",
                "session_id",
                "device",
                "at_us",
                role=ibis.literal(role, "int64"),
                bought_us=one.first_purchase_us if role == _PURCHASE else ibis.null("int64"),
            )
            for role, one in enumerate(streams)
        )
    )
    so_far = {"order_by": ["at_us", "role"], "rows": (None, 0)}
    by_visitor = ibis.window(group_by="visitor_id", **so_far)
    by_device = ibis.window(group_by=["visitor_id", "device"], **so_far)
    stream = stream.mutate(visit=(stream.role == _VISIT).cast("int64"))
    stream = stream.mutate(on_device=stream.visit.sum().over(by_device))
    first_on_device = ((stream.visit == 1) & (stream.on_device == 1)).cast("int64")
    stream = stream.mutate(
        sessions=stream.visit.sum().over(by_visitor),
        orders=(stream.role == _PURCHASE).cast("int64").sum().over(by_visitor),
        last_purchase_us=stream.bought_us.max().over(by_visitor),
        earlier_devices=first_on_device.sum().over(by_visitor),
    )
    queries = stream.filter(stream.role == _QUERY)
    return queries.mutate(devices=queries.earlier_devices + (queries.on_device == 0).cast("int64"))


def _numbered(visits: ir.Table) -> ir.Table:
    """Return the visits of each visitor, 1 is the first, with their last devices and the switches so far."""
    order = {"group_by": "visitor_id", "order_by": ["at_us", "session_id"]}
    in_turn = ibis.window(**order)
    devices = [visits.device.lag(back).over(in_turn) for back in range(1, len(EARLIER_DEVICES))]
    numbered = visits.select(
        "visitor_id",
        "session_id",
        "at_us",
        number=ibis.row_number().over(in_turn) + 1,
        **dict(zip(EARLIER_DEVICES, [visits.device, *devices], strict=True)),
    )
    last, before = (numbered[name] for name in EARLIER_DEVICES[:2])
    switched = (before.notnull() & (last != before)).cast("int64")
    return numbered.mutate(switches=switched.sum().over(ibis.window(**order, rows=(None, 0))))


def feature_rows(sessions: ir.Table, pages: ir.Table, steps: int, since_us: int | None) -> ir.Table:
    """Return the table of features: a row per session that has pages for the last step and the buffer."""
    long = sessions.filter(sessions.n_pages >= steps + BUFFER)
    long = long.mutate(number_of_person=long.session_id.min().over(ibis.window(group_by="person")))
    opened = {}
    for step in range(1, steps + 1):
        there = pages.position == step
        opened[f"page_type_{step}"] = pages.page_type.max(where=there)
        opened[f"page_us_{step}"] = pages.t_us.max(where=there)
    history = visitor_history(sessions, steps + BUFFER)
    by_session = pages.group_by("session_id").aggregate(**opened)
    rows = long.left_join(history, "session_id").drop("session_id_right").left_join(by_session, "session_id")
    since = ibis.ifelse(rows.sessions.notnull(), ibis.literal(since_us, "int64"), ibis.null("int64"))
    rows = rows.mutate(since_us=since, person=rows.number_of_person, label=rows.purchase)
    rows = rows.mutate(**{name: rows[name].cast("float64") for name in SESSION if name.startswith("pages_")})
    columns = {one.name: one.value(rows) for one in COLUMNS}
    return rows.select(*SESSION, *opened, **columns).order_by("session_id")
