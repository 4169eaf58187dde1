"""Columns that are statistics of a log: measured from its description, and shown whole beside the printed table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.studies.evidence import Evidence
from diptych.studies.intent_counting import Counting, Statistics
from diptych.studies.study import FurtherTable, Measurement, Subject
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.statistics import Description
    from diptych.report.intent_discretion import Discretion
    from diptych.report.intent_page import Table
    from diptych.studies.logs import LogRow

_VERSION = 1


@dataclass(frozen=True)
class Counted:
    """Rows and columns that are counted in a log.

    Attributes:
        name: of the counting.
        counting: from statistics to all rows of the study.
        statistics: what it looks at.
    """

    name: str
    counting: Counting
    statistics: tuple[str, ...]

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the log and what a person chooses."""
        return {"kind": "statistics", "counting": self.name, "of": list(self.statistics), "version": _VERSION}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """One row; nothing where the log has nothing of it."""
        row: LogRow = subject.run
        workshop = row.workshop
        description = workshop.description
        of = description.rows
        values = workshop.once(f"counting of {self.name}", lambda: self.counting(of)).get(row.row.name)
        if not values:
            return ()
        counts = {one["what"]: one["total"] for one in of("overview")}
        on = Measured(
            workshop.log.name,
            "all",
            sessions=int(counts["sessions"]),
            protocol=workshop.options.sessions_are(),
        )
        return (
            Measurement(
                values,
                on,
                description.line(),
                commands=(workshop.command("describe", workshop.log.folder),),
                kept=beside(workshop.described_in, row.folder),
            ),
        )


def beside(folder: Path, row: Path) -> str:
    """Where a folder is, seen from a row's: both can be moved together."""
    return os.path.relpath(folder.resolve(), row.resolve())


def statistics_of(evidence: Evidence) -> Statistics | None:
    """The statistics that rows were measured from; None of printed numbers, and where they are gone."""
    description = _description_of(evidence)
    return None if description is None else description.rows


def _description_of(evidence: Evidence) -> Description | None:
    from diptych.commerce.purchase_intent.statistics import Description

    folders = dict.fromkeys(folder for folders in evidence.kept.values() for folder in folders)
    return next((Description.open(folder) for folder in folders if folder.is_dir()), None)


def tables_of(name: str) -> Callable[[Evidence], list[FurtherTable]]:
    """A statistic as the page of a description shows it, with intervals and whatever the log has besides the
    thesis's rows."""

    def tables(evidence: Evidence) -> list[FurtherTable]:
        from diptych.report.intent_discretion import Discretion

        description = _description_of(evidence)
        if description is None or not description.rows(name):
            return []
        ddof = int(description.about["options"]["ddof"])
        return [_further(name, _makers(ddof)[name](description.rows(name), Discretion()))]

    return tables


def _makers(ddof: int) -> dict[str, Callable[[Sequence[Mapping[str, Any]], Discretion], Table]]:
    from diptych.report import intent_class_tables as of_classes
    from diptych.report import intent_description_tables as made

    return {
        "week-days": lambda rows, discretion: made.time_table(rows, "week_day", discretion),
        "hours": lambda rows, discretion: made.time_table(rows, "hour", discretion),
        "channels": lambda rows, discretion: made.group_table(rows, "channel", ddof, discretion),
        "devices": lambda rows, discretion: made.group_table(rows, "device", ddof, discretion),
        "devices-per-visitor": made.device_count_table,
        "device-transitions": made.transition_table,
        "queries": of_classes.query_table,
        "unique-queries": of_classes.unique_table,
    }


def _further(name: str, table: Table) -> FurtherTable:
    from diptych.commerce.purchase_intent.statistics import STATISTICS

    over = [text for text, span in table.groups for _ in range(span)] or [""] * len(table.columns)
    header = tuple(
        f"{text}: {column}" if text else column for text, column in zip(over, table.columns, strict=True)
    )
    rows = tuple(
        tuple(f"{cell.text} ({cell.note})" if cell.note else cell.text for cell in row) for row in table.rows
    )
    statistic = STATISTICS.get(name)
    note = f"{statistic.description}. In brackets: 95 % intervals. Counts of one to four are not shown."
    return FurtherTable(
        f"{table.caption}: all that the log has", f"{note} {table.after}".strip(), header, rows
    )
