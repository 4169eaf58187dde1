"""Tables of sessions from a table whose rows are whole sessions (UCI 468), for statistics and studies.

Such a table says less than a log; ``LIMITS`` has what it cannot tell, statistic by statistic. Three columns stand for
others: OperatingSystems for the device and TrafficType for the channel, numbers without a published meaning, and a
returning visitor for one who is known.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.make import recognise_session_table
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.options import SessionOptions
from diptych.commerce.purchase_intent.sessions import TABLES, SessionTables
from diptych.core.errors import DataError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint

PAGES = ("Administrative", "Informational", "ProductRelated")
RETURNING = "Returning_Visitor"

FEATURES = {
    "week-day": ("Weekend",),
    "channel": ("TrafficType",),
    "device": ("OperatingSystems",),
    "pages": PAGES,
    "dwell-mean": tuple(f"{name}_Duration" for name in PAGES),
}
"""Feature of thesis Table 6.7 → the columns that stand for it: a flag, two codes, counts, and all time on pages."""

_LENGTHS = "lengths are pages alone; the table has operating systems for devices, as numbers"
_ABSENT = "a table of whole sessions does not have "
CANNOT = {
    "hours": f"{_ABSENT}hours",
    **dict.fromkeys(
        ("devices-per-visitor", "device-transitions"), f"{_ABSENT}more than one session of a visitor"
    ),
    **dict.fromkeys(("queries", "unique-queries"), f"{_ABSENT}queries"),
}
"""Statistic → why such a table cannot tell it."""
LIMITS = CANNOT | {
    **dict.fromkeys(("session-length", "session-length-quantiles"), _LENGTHS),
    "week-days": "the table has whether a session was at the weekend, and no days",
    "channels": "what its numbers of traffic types mean was not published",
    "devices": "the table has operating systems for devices, as numbers whose meaning was not published",
    "predictions": "whole sessions have no steps: they are predicted from all their columns but PageValues",
    "importance": "the weekend stands for the week day, numbers of traffic types and operating systems for channel "
    "and device, all time on pages for dwell time; there are no steps",
}
"""Statistic → what such a table does not tell, or in part."""

_NOTES = (
    "sessions are rows of a table: lengths are pages, hours and days are not there",
    "returning visitors count as known, all others as anonymous",
)


def is_session_table(file: Path) -> bool:
    """Return whether a file is a known table of whole sessions, by its header."""
    try:
        recognise_session_table(file)
    except DataError:
        return False
    return True


def part_of(table: FeatureTable, rows: np.ndarray, name: str) -> FeatureTable:
    """Return some of the sessions: ``rows`` as a mask, under a name of their own."""
    columns = ("session_ids", "persons", "start_us", "end_us", "pages_before_identified")
    taken: dict[str, Any] = {one: getattr(table, one)[rows] for one in columns}
    about = table.about | {
        "name": f"{table.about['name']}, {name}",
        "fingerprint": fingerprint(table.fingerprint, "part", name),
    }
    return replace(table, about=about, view=table.view.take(rows), **taken)


def sessions_of_table(table: FeatureTable, folder: Path) -> None:
    """Write the sessions of a table of whole sessions as :class:`SessionTables` into a folder."""
    pa, parquet = (
        require(name, "commerce", "a table of sessions") for name in ("pyarrow", "pyarrow.parquet")
    )
    columns, n = table.view.columns, len(table)
    pages = np.nan_to_num(sum(columns[name] for name in PAGES)).astype(np.int64)
    numbers, nothing = np.arange(n), np.zeros(n, dtype=np.int64)
    returning = columns["VisitorType"] == RETURNING
    known: dict[str, Any] = {
        **{name: nothing for name in ("start_us", "end_us", "start_day", "n_queries")},
        **{name: pages for name in ("length", "n_events", "n_pages")},
        "session_id": numbers,
        "client_id": [str(number) for number in numbers],
        "visitor_id": [
            str(number) if is_so else None for number, is_so in zip(numbers, returning, strict=True)
        ],
        "person": [str(number) for number in numbers],
        "device": [f"operating system {code}" for code in columns["OperatingSystems"]],
        "channel": [f"traffic type {code}" for code in columns["TrafficType"]],
        "n_visitors": returning.astype(np.int64),
        "purchase": table.labels,
    }
    kinds = {
        "string": pa.string(),
        "bool": pa.bool_(),
        "int64": pa.int64(),
        "int32": pa.int32(),
        "int8": pa.int8(),
    }
    for name, declared in TABLES.items():
        (folder / name).mkdir(parents=True)
        given = known if name == "sessions" else {}
        arrays = {
            column: pa.array(given.get(column, [None] * len(given and numbers)), kinds[kind])
            for column, kind in declared.items()
        }
        if name == "sessions":
            arrays["weekend"] = pa.array([text.upper() == "TRUE" for text in columns["Weekend"]])
        parquet.write_table(pa.table(arrays), folder / name / "part-0000.parquet")
    counts = {"events": int(pages.sum()), "sessions": n, "identified": int(returning.sum())}
    counts |= {"purchases": int(table.labels.sum()), "several_visitors": 0, "pages": 0, "queries": 0}
    SessionTables(
        {
            "log": str(table.about["name"]),
            "zone": "no zone",
            "log_fingerprint": table.fingerprint,
            "options": SessionOptions(by="given").model_dump(),
            "counts": counts,
            "fingerprint": fingerprint("whole sessions", table.fingerprint),
            "notes": list(_NOTES),
        }
    ).save(folder / SessionTables.marker())
