"""A description of a log: its statistics as tables, charts and CSV files (thesis section 6.4).

::

    FOLDER/
      description.json         of which log and sessions, by which options; all counts, unprotected: not to be passed on
      tables/overview.csv      the statistics as they may be shown, for spreadsheets
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diptych.commerce.purchase_intent.disclosure import DisclosureControl
from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.options import DescribeOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.commerce.purchase_intent.shown import TEXTS, Column, Row, number
from diptych.commerce.purchase_intent.statistics import ALL, CLASSES, ORDER, STATISTICS, Counts, Statistic
from diptych.core.artifact import Artifact
from diptych.core.chart import Chart, Series
from diptych.core.context import track
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import write_csv
from diptych.core.table import Cell, Table

_MOST_ROWS, _MOST_GROUPS, _MOST_CURVES = 20, 10, 6  # of a table, of a chart; the CSV file has all
_LONG = 60  # characters of a name from a log
_LOOKS: Mapping[bool, Mapping[str, Any]] = {True: {"colour": "blue"}, False: {"colour": "orange"}}
_NAMES = {True: "purchase", False: "no purchase"}


@dataclass(frozen=True)
class Description(
    Artifact, kind="description", version=2, recreate="diptych intent describe LOG --out FOLDER"
):
    """The statistics of a log.

    Attributes:
        about: everything the numbers depend on: ``log``, ``zone``, fingerprints, ``session_options``, ``options``,
            ``engine``, ``counts``, ``notes``. JSON-able.
        unprotected: statistic → all its rows, in order; nothing but :meth:`rows`, which controls what is disclosed,
            may read them.
    """

    about: Mapping[str, Any]
    unprotected: Mapping[str, Sequence[Row]]
    folder: Path = field(init=False, default=Path(), compare=False)  # where it is

    @property
    def name(self) -> str:
        """Of the log."""
        return str(self.about["log"])

    @property
    def statistics(self) -> list[str]:
        """Return the names of its statistics."""
        return list(self.unprotected)

    @property
    def options(self) -> DescribeOptions:
        """Return how it was computed."""
        return DescribeOptions(**self.about["options"])

    @property
    def notes(self) -> list[str]:
        """Return what a reader has to know."""
        return list(self.about["notes"])

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of one statistic as they may be shown."""
        if name not in self.unprotected:
            raise UnknownNameError("statistic of this description", name, self.unprotected)
        statistic = STATISTICS.get(name)
        return DisclosureControl.current().rows(self.unprotected[name], statistic.cells, statistic.whole)

    def totals(self) -> dict[str, Any]:
        """Return the overview as far as it may be shown; ``purchase rate`` and ``anonymous rate`` with it."""
        rows = self.rows("overview") if "overview" in self.unprotected else ()
        shown = {row["what"]: row["total"] for row in rows}
        for one in ("purchase", "anonymous"):
            part, of = shown.get(f"{one} sessions"), shown.get("sessions")
            if isinstance(part, int) and isinstance(of, int):
                shown[f"{one} rate"] = DisclosureControl.current().share(part, of)
        return shown

    def tables(self, name: str | None = None) -> list[Table]:
        """Return the tables of one statistic, or of all; what is drawn alone comes as its values."""
        names = [name] if name else [one for one in self.unprotected if one != "session-length"]
        each = (tables_of(self, one) or [chart.table() for chart in self.charts(one)] for one in names)
        return [table for tables in each for table in tables]

    def charts(self, name: str) -> list[Chart]:
        """Return the charts of one statistic."""
        rows = self.rows(name)
        if name == "session-length":
            return _lengths(_largest_first(rows))
        level = self.totals().get("purchase rate")
        return [one for given in STATISTICS.get(name).charts for one in _chart(given, rows, level)]

    def facts(self) -> dict[str, str]:
        """Return what the numbers depend on."""
        how, of = self.options, SessionOptions(**self.about["session_options"])
        words: dict[str, Any] = {"name": _name(self.name), "about": self.about, "sessions": of.words}
        words |= {"confidence": 100 * how.confidence, "ddof": how.ddof, "journey": how.journey}
        return {name: text.format(**words) for name, text in TEXTS["facts"].items()}

    def line(self) -> str:
        """Return everything the numbers depend on, in one line."""
        return "; ".join(f"{name}: {text}" for name, text in self.facts().items())

    def write_files(self, folder: Path) -> None:
        """Write the statistics for spreadsheets, as far as they may be shown."""
        (folder / "tables").mkdir()
        for name in self.unprotected:
            columns = STATISTICS.get(name).columns.split()
            cells = ([row.get(column, "") for column in columns] for row in self.rows(name))
            write_csv(folder / "tables" / f"{name}.csv", columns, cells)


def choose_statistics(names: Iterable[str] | None = None) -> list[Statistic]:
    """Return the statistics of these names, each once, in the order of :data:`ORDER`; all when none are named."""
    chosen = set(ORDER if names is None else (STATISTICS.get(name).name for name in names))
    if not chosen:
        raise UsageError("no statistic is named", f"for example {', '.join(ORDER[:2])}")
    return [STATISTICS.get(name) for name in ORDER if name in chosen]


def describe(
    tables: SessionTables,
    *,
    engine: Engine | None = None,
    options: DescribeOptions | None = None,
    names: Iterable[str] | None = None,
) -> Description:
    """Count on the engine, and compute shares, intervals and rates from the counts."""
    options, chosen = options or DescribeOptions(), choose_statistics(names)
    with ExitStack() as stack:
        runs = stack.enter_context(open_engine()) if engine is None else engine
        counts = Counts(runs, tables, options, stack)
        found = {one.name: one.rows(counts) for one in track(chosen, "statistics", unit="statistics")}
    about = {name: tables.about[name] for name in ("log", "zone", "log_fingerprint", "counts")}
    about |= {"sessions_fingerprint": tables.fingerprint, "session_options": tables.about["options"]}
    about |= {"options": options.model_dump(), "engine": runs.name, "notes": tables.about.get("notes", [])}
    return Description(about, found)


def tables_of(description: Description, name: str) -> list[Table]:
    """Return the tables of one statistic: a line per group, and columns for either class where rows are of one."""
    rows, statistic = description.rows(name), STATISTICS.get(name)
    if not rows or not (statistic.shown or name == "device-transitions"):
        return []
    if name == "device-transitions":
        return [_transitions(rows)]
    of_class = next((one for one in ("purchase", "purchaser") if one in rows[0]), "")
    rows = rows if of_class else _largest_first(rows)
    key = next(one for one in rows[0] if one != of_class)
    columns = [
        one for one in (Column(**given) for given in statistic.shown) if any(one.key in r for r in rows)
    ]
    found = {(row[key], row.get(of_class)): row for row in rows}
    names, classes = list(dict.fromkeys(row[key] for row in rows)), CLASSES if of_class else (None,)
    if of_class and key == "device":
        names.sort(key=lambda name: (name != ALL, name))
    lines = [
        [
            Cell(_head(key, name)),
            *(one.cell(found.get((name, of), {"sessions": 0})) for of in classes for one in columns),
        ]
        for name in names[: _MOST_ROWS + 1]
    ]
    of = ("purchasers", "others") if of_class == "purchaser" else _NAMES.values()
    groups = [("", 1), *((one, len(columns)) for one in of)] if of_class else ()
    heads = (key.capitalize(), *[one.title for one in columns] * len(classes))
    return [Table(statistic.title, heads, lines, groups, _further(len(names) - len(lines), f"{key}s"))]


def _largest_first(rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows of devices or channels with those of most sessions first, where that is disclosed; ALL before any."""
    key = next((one for one in ("device", "channel") if rows and one in rows[0]), None)
    if key is None:
        return rows
    sizes = Counter[str]()
    for row in rows:
        sizes[row[key]] += row["sessions"] if isinstance(row.get("sessions"), int) else 0
    return sorted(rows, key=lambda row: (row[key] != ALL, -sizes[row[key]], row[key]))


def _head(key: str, name: Any) -> str:
    if key == "weekend":
        return "Saturday, Sunday" if name else "Monday–Friday"
    return "all devices" if name == ALL else _name(name)


def _transitions(rows: Sequence[Row]) -> Table:
    """Thesis Figure 6.5 as a matrix: from a line's device to a column's."""
    found = {(row["from_device"], row["to_device"]): row for row in rows}
    every = sorted({device for pair in found for device in pair})
    devices, share = every[:_MOST_GROUPS], Column("", "share", 1, 100.0, ends="")
    lines = [
        [Cell(_name(one)), *(share.cell(found.get((one, other), {"share": 0.0})) for other in devices)]
        for one in devices
    ]
    heads = ("From, to", *map(_name, devices))
    after = _further(len(every) - len(devices), "devices")
    return Table("Probability of the next device, in %", heads, lines, after=after)


def _name(name: str) -> str:
    return f"{name[:_LONG]}…" if len(name) > _LONG else name or "(empty)"


def _further(n: int, what: str) -> str:
    return f"{n:,} further {what} are in the CSV file." if n > 0 else ""


def _lengths(rows: Sequence[Row]) -> list[Chart]:
    """Thesis Figure 6.2: a chart per device, those with most sessions."""
    curves: dict[str, dict[bool, dict[int, float]]] = {}
    for row in rows:
        if row["length"] >= 1:  # 0 has no place on a logarithmic axis
            curve = curves.setdefault(row["device"], {}).setdefault(row["purchase"], {1: 100 * row["share"]})
            curve[row["length"]] = 100 * row["share"]  # all are at least as long as the shortest
    charts = []
    for device in list(curves)[: 1 if len(curves) == 2 else _MOST_CURVES]:  # one device is all there is
        lines = [
            Series(_NAMES[buys], [*curve.values()], [*curve], mark="step", **_LOOKS[buys])
            for buys, curve in curves[device].items()
        ]
        lines += [Series(name, [level], mark="level") for name, level in (("P50", 50.0), ("P90", 10.0))]
        title = "Session length" if device == ALL else f"Session length: {_name(device)}"
        charts.append(Chart(title, lines, "actions", "% of sessions at least so long", log="xy"))
    return charts


def _chart(given: Mapping[str, Any], rows: Sequence[Row], of_all: float | None) -> list[Chart]:
    """Return a chart as ``statistics.toml`` declares it; none where none of its values is disclosed."""
    lines, across = [], "of_class" not in given
    rows = _largest_first(rows)[:_MOST_GROUPS] if across else rows
    classes = [
        {"name": _NAMES[one], "key": "share", "of": one, "ends": True, **_LOOKS[one]} for one in CLASSES
    ]
    for one in given.get("series", classes):
        mine = [row for row in rows if row.get("purchase") == one.get("of")]
        scale, ends = one.get("scale", 100), ("low", "high") if one.get("ends") else ()
        y, *bounds = (_scaled(mine, key, scale) for key in (one["key"], *ends))
        more: dict[str, Any] = {"colour": one.get("colour", ""), "mark": given["mark"]}
        if across:
            more["texts"] = [number(value, one.get("decimals", 1), one.get("sign", "")) for value in y]
        elif "categories" not in given:
            more["x"] = range(len(y))
        if any(bounds and bounds[0]):
            more |= dict(zip(ends, bounds, strict=True))
        if any(value is not None for value in y):
            lines.append(Series(one["name"], y, **more))
    if not lines or (rows and given.get("unless") in rows[0]):
        return []
    levels = {"all alike": 100 / len(lines[0].y), "of all": None if of_all is None else 100 * of_all}
    if (level := levels.get(given.get("level", ""))) is not None:
        lines.append(Series(given["level"], [level], mark="level"))
    names = [_name(next(iter(row.values()))) for row in rows] if across else given.get("categories", ())
    return [Chart(given["title"], lines, given.get("x", ""), given.get("y", ""), names, across=across)]


def _scaled(rows: Sequence[Row], key: str, scale: float) -> list[float | None]:
    return [None if row.get(key) is None else scale * row[key] for row in rows]
