"""Description: what sets a log's purchase sessions apart, in tables.

::

    FOLDER/
      description.json         of which log and sessions, by which options; all tables
      tables/overview.csv      the same tables, for spreadsheets
      …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.commerce.purchase_intent.sessions.schema import SessionOptions
from diptych.commerce.purchase_intent.statistics.declaration import STATISTICS, Row
from diptych.core.errors import DataError, StorageError, UnknownNameError
from diptych.core.files import atomic_folder, write_csv, write_json
from diptych.core.reading import opening, read_json

MARKER = "description.json"
TABLES = "tables"
_FORMAT = 1


@dataclass(frozen=True)
class Description:
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

    def save(self, folder: Path | str, page: Callable[[Path], object] | None = None) -> None:
        """Write it; an older description there is replaced when the new one is whole.

        Args:
            page: writes what belongs to the folder besides; it gets the folder before that has its name.
        """
        with atomic_folder(folder, MARKER) as inside:
            if page is not None:
                page(inside)
            (inside / TABLES).mkdir()
            for name, rows in self.tables.items():
                columns = list(STATISTICS.get(name).columns)
                cells = ([row.get(column, "") for column in columns] for row in rows)
                write_csv(inside / TABLES / f"{name}.csv", columns, cells)
            write_json(
                inside / MARKER, {"format": _FORMAT, "about": dict(self.about), "tables": dict(self.tables)}
            )

    @classmethod
    @opening("describe again: diptych intent describe LOG")
    def open(cls, folder: Path | str) -> Description:
        """Read what was written."""
        folder = Path(folder)
        if not (folder / MARKER).is_file():
            raise DataError(
                f"{folder} holds no description (no {MARKER})",
                "make it: diptych intent describe LOG --out FOLDER",
            )
        said = read_json(folder / MARKER)
        if not isinstance(said, dict) or said.get("format") != _FORMAT:
            raise StorageError(
                f"{folder / MARKER} is not of format {_FORMAT}", "describe again: diptych intent describe LOG"
            )
        return cls(said["about"], said["tables"])
