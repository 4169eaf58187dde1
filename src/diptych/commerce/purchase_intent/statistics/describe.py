"""Statistics of a log's sessions, on any engine: each is one Ibis expression, and what follows from its small result.

The expression gives integers and keys; shares, intervals and standardised rates are computed from them in plain
Python, once, so that engines cannot differ in them.

::

    FOLDER/
      description.json         of which log and sessions, by which options; all tables
      tables/overview.csv      the same tables, for spreadsheets
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.options import DescribeOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import write_csv
from diptych.core.registry import Registry

if TYPE_CHECKING:
    import ibis.expr.types as ir

Row = dict[str, Any]
"""One row of a result, JSON-able."""


@dataclass(frozen=True)
class Tables:
    """The tables of sessions as expressions, see :mod:`diptych.commerce.purchase_intent.sessions`."""

    sessions: ir.Table
    queries: ir.Table


Finish = Callable[[Sequence[Row], DescribeOptions], list[Row]]


@dataclass(frozen=True)
class Statistic:
    """One statistic.

    Attributes:
        name: e.g. ``channels``.
        description: one line.
        source: table or figure of the thesis.
        columns: name → meaning of the finished rows' columns.
        expression: counts and keys, on any engine.
        finish: from the counted rows to the finished ones; plain Python, deterministic order.
    """

    name: str
    description: str
    source: str
    columns: Mapping[str, str]
    expression: Callable[[Tables, DescribeOptions], ir.Table]
    finish: Finish


STATISTICS: Registry[Statistic] = Registry("statistic", "diptych.commerce.purchase_intent.statistics.kinds")
"""All statistics; each is declared in a file of its own."""


ALL = "all"
"""In the place of a device: all of them together."""

CALLED_ALL = '"all"'
"""A device type that a log calls so: one of all, which must not be taken for them."""

CLASSES = (True, False)
"""Purchase sessions, and others: the order of tables."""

INTERVAL: Mapping[str, str] = {
    "low": "lower end of the interval; null where nothing can be said",
    "high": "upper end of it",
}


def apart_from_all(table: ir.Table) -> ir.Table:
    """The same table, in which no device is called as all of them are."""
    import ibis

    return table.mutate(device=ibis.ifelse(table.device == ALL, CALLED_ALL, table.device))


def sorted_with_all(devices: Iterable[str]) -> list[str]:
    """All together first, then each."""
    return [ALL, *sorted(set(devices) - {ALL})]


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
    folder: Path = field(init=False, default=Path(), compare=False)  # where it is

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


ORDER = (
    "overview",
    "session-length",
    "session-length-quantiles",
    "week-days",
    "hours",
    "channels",
    "devices-per-visitor",
    "devices",
    "device-transitions",
    "queries",
    "unique-queries",
)
"""As thesis sections 6.3 and 6.4 have them; any other comes after these."""

JOURNEYS: Mapping[str, str] = {
    "pair": "from the session before a purchase session to it",
    "journey": "all from the purchase session before, or the visitor's first session, to a purchase session",
}
"""Which transitions between devices count."""


def choose_statistics(names: Iterable[str] | None = None) -> list[Statistic]:
    """The statistics of these names, each once, in the order of :data:`ORDER`; all when none are named."""
    wanted = STATISTICS.names() if names is None else [STATISTICS.get(name).name for name in names]
    if not wanted:
        raise UsageError("no statistic was asked for", f"for example {', '.join(ORDER[:2])}")
    place = {name: number for number, name in enumerate(ORDER)}
    return [
        STATISTICS.get(name)
        for name in sorted(set(wanted), key=lambda name: (place.get(name, len(place)), name))
    ]


def describe(
    tables: SessionTables,
    *,
    engine: Engine | None = None,
    options: DescribeOptions | None = None,
    names: Iterable[str] | None = None,
) -> Description:
    """Count on the engine, and compute shares, intervals and rates from the counts."""
    options = options or DescribeOptions()
    chosen = choose_statistics(names)
    found: dict[str, list[Row]] = {}
    with open_engine() if engine is None else nullcontext(engine) as runs:
        sessions, queries = (
            apart_from_all(runs.read(tables.files(name))) for name in ("sessions", "queries")
        )
        read = Tables(sessions, queries)
        for statistic in track(chosen, "statistics", unit="statistics"):
            counted = runs.to_arrow(statistic.expression(read, options)).to_pylist()
            found[statistic.name] = statistic.finish(counted, options)
        about = {
            "log": tables.log_name,
            "zone": tables.zone,
            "log_fingerprint": tables.about["log_fingerprint"],
            "sessions_fingerprint": tables.fingerprint,
            "session_options": tables.about["options"],
            "options": options.model_dump(),
            "engine": runs.name,
            "counts": tables.about["counts"],
            "notes": _notes(tables.about["counts"], tables.about["options"]),
        }
    return Description(about, found)


def _notes(counts: Mapping[str, int], options: Mapping[str, Any]) -> list[str]:
    """What a reader has to know."""
    sessions, purchases, identified = counts["sessions"], counts["purchases"], counts["identified"]
    notes = []
    if not sessions:
        return ["the log has no events: there is nothing to describe"]
    if not purchases:
        notes.append("no session has a purchase: its class is empty, and all conversion rates are 0")
    elif purchases == sessions:
        notes.append("every session has a purchase: there is nothing to compare them with")
    if not identified:
        notes.append(
            "no visitor is known anywhere: nothing can be said of devices per visitor and of switches"
        )
    if counts["several_visitors"]:
        notes.append(
            f"{counts['several_visitors']:,} sessions have several visitors; each counts for the first of them"
        )
    if options["by"] == "visitor":
        notes.append("sessions are by visitor: what a client did before logging in is another session")
    return notes
