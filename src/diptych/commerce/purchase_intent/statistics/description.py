"""Description: what sets a log's purchase sessions apart, in tables.

::

    FOLDER/
      description.json         of which log and sessions, by which options; all tables
      tables/overview.csv      the same tables, for spreadsheets
      …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.commerce.purchase_intent.sessions.schema import SessionOptions
from diptych.commerce.purchase_intent.statistics.declaration import STATISTICS, Row
from diptych.core.artifact import Artifact
from diptych.core.errors import UnknownNameError
from diptych.core.files import write_csv

TABLES = "tables"


@dataclass(frozen=True)
class Description(Artifact, kind="description", recreate="diptych intent describe LOG --out FOLDER"):
    """The statistics of a log.

    Attributes:
        about: everything the numbers depend on: ``log``, ``zone``, fingerprints, ``session_options``, ``options``,
            ``engine``, ``counts``; and ``notes``, what a reader has to know. JSON-able.
        tables: statistic → its rows, in order.
    """

    about: Mapping[str, Any]
    tables: Mapping[str, Sequence[Row]]

    @property
    def name(self) -> str:
        """Of the log."""
        return str(self.about["log"])

    def rows(self, name: str) -> list[Row]:
        """The rows of one statistic."""
        if name not in self.tables:
            raise UnknownNameError("statistic of this description", name, self.tables)
        return list(self.tables[name])

    def line(self) -> str:
        """Everything the numbers depend on, in one line."""
        about = self.about
        how, sessions = about["options"], SessionOptions(**about["session_options"])
        return (
            f"{about['log']} ({about['log_fingerprint']}): {about['counts']['sessions']:,} sessions "
            f"{sessions.words}; hours and days of {about['zone']}; "
            f"standardised with ddof {how['ddof']}; transitions by {how['journey']}; "
            f"{100 * how['confidence']:g} % intervals; engine {about['engine']}"
        )

    def write_files(self, folder: Path) -> None:
        """Write the tables for spreadsheets."""
        (folder / TABLES).mkdir()
        for name, rows in self.tables.items():
            columns = list(STATISTICS.get(name).columns)
            cells = ([row.get(column, "") for column in columns] for row in rows)
            write_csv(folder / TABLES / f"{name}.csv", columns, cells)
