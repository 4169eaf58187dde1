"""The three tables that one pass over a log's events makes; all statistics and features come from them.

``sessions``: one row per session; ``pages``: the first pages of every session that is long enough to predict on;
``queries``: one row per submitted query, normalised. A session ends after the gap without an event: strictly more, so
that exactly 30 minutes are one session still (thesis section 6.2). Its identifier is that of its first event.

::

    LOG/sessions/client-30min-10p-0a1b2c/
      sessions.json                     of which log, by which options, and how many
      sessions/part-00.parquet
      pages/part-00.parquet
      queries/part-00.parquet
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.logs.schema import columns
from diptych.commerce.purchase_intent.options import SessionKey, SessionOptions
from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    import ibis.expr.types as ir

BUFFER = 2
"""Pages that have to follow the last step, and a purchase the present one."""


SESSIONS = columns(
    """
    session_id              int64   event_id of its first event
    client_id               string  of its first event
    visitor_id              string? the first visitor known in it: a log-in assigns all of it
    person                  string  the visitor where known, else the client: what groups of a split are made of
    start_us                int64   time of the first event
    end_us                  int64   time of the last event
    start_day               int32   local day of the first event
    start_hour              int8    local hour of the first event
    start_dow               int8    local week day of the first event, 0 is Monday
    device                  string  of the first event
    channel                 string  of the first event
    n_events                int64   all events
    length                  int64   actions: pages, queries, and items put into and taken out of the basket
    n_pages                 int64   pages opened
    n_queries               int64   queries submitted
    n_visitors              int64   different visitors known in it; more than one is odd and is reported
    purchase                bool    whether anything was bought in it
    first_purchase_us       int64?  when, first
    pages_before_purchase   int64?  pages opened strictly before the first purchase event
    pages_before_identified int64?  pages opened strictly before the first event with a visitor
    """
)

PAGES = columns(
    """
    session_id int64  of the session
    position   int64  1 is the first page
    t_us       int64  when it was opened
    page_type  string or unknown
    """
)

QUERIES = columns(
    """
    session_id int64  of the session
    query      string normalised: Unicode lower case, blanks at the ends cut and others made one
    device     string of the session
    purchase   bool   of the session
    """
)

TABLES = ("sessions", "pages", "queries")


@dataclass(frozen=True)
class SessionTables(Artifact, kind="sessions", recreate="diptych intent describe LOG"):
    """Tables of sessions.

    Attributes:
        about: of which log, by which options, and how many.
        folder: where they are.
    """

    about: dict[str, Any]
    folder: Path = field(init=False, default=Path(), compare=False)

    @property
    def log_name(self) -> str:
        """Of the log."""
        return str(self.about["log"])

    @property
    def zone(self) -> str:
        """The zone of local hours and days."""
        return str(self.about["zone"])

    @property
    def fingerprint(self) -> str:
        """Of the log and the options: equal ones have equal tables."""
        return str(self.about["fingerprint"])

    def files(self, name: str) -> list[Path]:
        """The files of a table, one per pass, in order; at least one."""
        if name not in TABLES:
            raise UnknownNameError("table of sessions", name, TABLES)
        found = sorted((self.folder / name).glob("part-*.parquet"))
        if not found:
            raise DataError(f"{self.folder / name} holds no files", f"remove {self.folder} and make it again")
        return found

    def line(self) -> str:
        """One line: what a session is, and how many there are."""
        options = SessionOptions(**self.about["options"])
        return f"{self.log_name}: {self.about['counts']['sessions']:,} sessions {options.words}"


NOT_GIVEN = ""
"""Stands for the missing session of the log's own."""


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
