"""Whose events make a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.sessions.schema import SessionKey
from diptych.core.errors import UnknownNameError

if TYPE_CHECKING:
    import ibis.expr.types as ir

KEYS: dict[SessionKey, str] = {
    "client": "the client's events, whoever has logged in",
    "visitor": "the visitor's events on all clients; the client's where no visitor is known",
    "given": "the client's events of one session of the log's own, whatever the gaps; others by their gaps",
}
"""Name → one line of what it is."""

NOT_GIVEN = ""
"""Stands for the missing session of the log's own."""


def check_key(by: str) -> None:
    """See that there is such a key."""
    if by not in KEYS:
        raise UnknownNameError("session key", by, KEYS)


def key_columns(events: ir.Table, by: SessionKey) -> dict[str, ir.Value]:
    """Columns of which all values of two events are equal if they can be in one session; never null."""
    import ibis

    if by == "client":
        return {"client": events.client_id}
    if by == "given":
        return {"client": events.client_id, "given": events.given_session.fill_null(NOT_GIVEN)}
    # A client may be called as a visitor is.
    return {
        "has_visitor": events.visitor_id.notnull(),
        "visitor_or_client": ibis.coalesce(events.visitor_id, events.client_id),
    }
