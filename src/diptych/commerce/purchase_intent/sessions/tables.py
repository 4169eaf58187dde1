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

from diptych.commerce.purchase_intent.options import SessionKey, SessionOptions
from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, UnknownNameError
from diptych.data.logs.schema import Column

if TYPE_CHECKING:
    import ibis.expr.types as ir

BUFFER = 2
"""Pages that have to follow the last step, and a purchase the present one."""


SESSIONS = (
    Column("session_id", "int64", False, "event_id of its first event"),
    Column("client_id", "string", False, "of its first event"),
    Column("visitor_id", "string", True, "the first visitor known in it: a log-in assigns all of it"),
    Column(
        "person",
        "string",
        False,
        "the visitor where known, else the client: what groups of a split are made of",
    ),
    Column("start_us", "int64", False, "time of the first event"),
    Column("end_us", "int64", False, "time of the last event"),
    Column("start_day", "int32", False, "local day of the first event"),
    Column("start_hour", "int8", False, "local hour of the first event"),
    Column("start_dow", "int8", False, "local week day of the first event, 0 is Monday"),
    Column("device", "string", False, "of the first event"),
    Column("channel", "string", False, "of the first event"),
    Column("n_events", "int64", False, "all events"),
    Column(
        "length", "int64", False, "actions: pages, queries, and items put into and taken out of the basket"
    ),
    Column("n_pages", "int64", False, "pages opened"),
    Column("n_queries", "int64", False, "queries submitted"),
    Column(
        "n_visitors", "int64", False, "different visitors known in it; more than one is odd and is reported"
    ),
    Column("purchase", "bool", False, "whether anything was bought in it"),
    Column("first_purchase_us", "int64", True, "when, first"),
    Column("pages_before_purchase", "int64", True, "pages opened strictly before the first purchase event"),
    Column(
        "pages_before_identified",
        "int64",
        True,
        "pages opened strictly before the first event with a visitor",
    ),
)

PAGES = (
    Column("session_id", "int64", False, "of the session"),
    Column("position", "int64", False, "1 is the first page"),
    Column("t_us", "int64", False, "when it was opened"),
    Column("page_type", "string", False, "or unknown"),
)

QUERIES = (
    Column("session_id", "int64", False, "of the session"),
    Column(
        "query", "string", False, "normalised: Unicode lower case, blanks at the ends cut and others made one"
    ),
    Column("device", "string", False, "of the session"),
    Column("purchase", "bool", False, "of the session"),
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
