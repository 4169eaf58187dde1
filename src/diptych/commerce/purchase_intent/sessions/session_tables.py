"""SessionTables: a folder of the three tables, as one pass over a log wrote it.

::

    LOG/sessions/client-30min-10p-0a1b2c/
      sessions.json                     of which log, by which options, and how many
      sessions/part-00.parquet          columns and meanings: sessions.schema
      pages/part-00.parquet
      queries/part-00.parquet
      …
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.sessions.schema import SessionKey, SessionOptions
from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    import ibis.expr.types as ir


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
