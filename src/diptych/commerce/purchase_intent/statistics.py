"""A description of a log: the statistics of its sessions (thesis sections 6.3 and 6.4), tables, charts, CSV files.

The sessions are counted once into small tables, of which a query takes integers and keys on DuckDB or Spark; another
makes shares, intervals and standardised rates of them, in DuckDB, so that engines cannot differ in them. Both stand in
``statistics.toml``. Intervals take sessions as independent of each other. Those of one visitor are not quite, so that
with many sessions per visitor the truth lies outside more often than stated.

A folder has ``description.json`` with all counts, unprotected: not to be passed on; and ``tables/``, the statistics as
they may be shown, for spreadsheets.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.options import DescribeOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.commerce.purchase_intent.shown import TEXTS, DisclosureControl, Row, number, table_of
from diptych.core.artifact import Artifact
from diptych.core.chart import Chart, Series
from diptych.core.context import track
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.files import write_csv
from diptych.core.reading import read_toml
from diptych.core.registry import Registry
from diptych.core.table import Table

ALL = "all"  # in the place of a device: all of them together; a device that a log calls so is called "all" in quotes
CLASSES = (True, False)  # purchase sessions and others, in the order of tables


class Counts:
    """A log's sessions and queries, and small tables of counts, each counted once when it is first needed."""

    def __init__(
        self, engine: Engine, tables: SessionTables, options: DescribeOptions, held: ExitStack
    ) -> None:
        self.options, self.engine, self._held = options, engine, held
        read = {name: engine.read(tables.files(name)) for name in ("sessions", "queries")}
        self._words: dict[str, str] = _DECLARED["words"] | {"counted": _DECLARED["words"][options.journey]}
        if "weekend" in read["sessions"].columns:  # a table of whole sessions brings it
            self._words["weekend"] = "weekend"
        self._words |= {name: table.get_name() for name, table in read.items()}

    def of(self, sql: str) -> Any:
        """Return the rows of a query, a table of Ibis, in whose braces tables of counts stand by name."""
        for name, counted in _DECLARED["tables"].items():
            if f"{{{name}}}" in sql and name not in self._words:
                self._words[name] = self._held.enter_context(self.engine.held(self.of(counted))).get_name()
        return self.engine.sql(sql.format(**self._words))


@dataclass(frozen=True)
class Statistic:
    """One statistic, as ``statistics.toml`` declares it."""

    name: str
    description: str
    source: str
    counted: str  # SQL of what an engine counts
    sql: str  # from counts to rows
    columns: str
    section: str
    uses: str = ""  # by it, of macros
    cells: str = ""
    whole: str = ""
    title: str = ""
    shown: Sequence[Mapping[str, Any]] = ()  # columns of its table
    charts: Sequence[Mapping[str, Any]] = ()
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)  # pattern of a study's rows → of LACKS

    def rows(self, counts: Counts) -> list[Row]:
        return self.finish(counts.engine.to_arrow(counts.of(self.counted)), counts.options)

    def finish(self, counted: Any, options: DescribeOptions) -> list[Row]:
        """Return the rows of what was counted: plain numbers, None where there is none."""
        z, macros = NormalDist().inv_cdf((1 + options.confidence) / 2), _DECLARED["macros"]
        with require("duckdb", "commerce", "describing a log").connect() as database:
            for name, value in (("ddof", options.ddof), ("z", z)):
                database.execute(f"SET VARIABLE {name} = ?", [value])
            database.register("given", counted)
            # in an order, for sums of rates are rounded
            database.execute("CREATE TABLE counted AS FROM given ORDER BY ALL")
            database.execute(macros["shares"] + macros.get(self.uses, ""))
            found = database.sql(self.sql).select(*self.columns.split())
            return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


_DECLARED = read_toml(Path(__file__).with_suffix(".toml"))
LACKS: Mapping[str, str] = _DECLARED["lacks"]
STATISTICS: Registry[Statistic] = Registry("statistic", __name__)
for _key, _one in _DECLARED["statistics"].items():
    STATISTICS.add(Statistic(_key, **_one))
ORDER = tuple(_DECLARED["statistics"])  # as the thesis has them


_MOST_ROWS, _MOST_GROUPS, _MOST_CURVES = 20, 10, 6  # of a table, of a chart; the CSV file has all
_LONG = 60  # characters of a name from a log
_LOOKS: Mapping[bool, Mapping[str, Any]] = {True: {"colour": "blue"}, False: {"colour": "orange"}}
_NAMES = {True: "purchase", False: "no purchase"}


@dataclass(frozen=True)
class Description(
    Artifact, kind="description", version=3, recreate="diptych intent describe LOG --out FOLDER"
):
    """The statistics of a log."""

    about: Mapping[
        str, Any
    ]  # everything the numbers depend on: log, zone, fingerprints, options, counts, notes
    unprotected: Mapping[str, Sequence[Row]]  # of each statistic; nothing but rows() may read them
    folder: Path = field(init=False, default=Path(), compare=False)  # where it is

    @property
    def name(self) -> str:
        return str(self.about["log"])

    @property
    def statistics(self) -> list[str]:
        return list(self.unprotected)

    @property
    def options(self) -> DescribeOptions:
        return DescribeOptions(**self.about["options"])

    @property
    def notes(self) -> list[str]:
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
        """Return the tables of one statistic, or of all; what is only drawn comes as its values."""
        names = [name] if name else [one for one in self.unprotected if one != "session-length"]
        each = (tables_of(self, one) or [chart.table() for chart in self.charts(one)] for one in names)
        return [table for tables in each for table in tables]

    def charts(self, name: str) -> list[Chart]:
        """Return the charts of a statistic, one per device where it is declared so."""
        rows, level, found = (
            _largest_first(self.rows(name)),
            self.totals().get("purchase rate"),
            list[Chart](),
        )
        for given in STATISTICS.get(name).charts:
            per = given.get("per", "")
            devices = list(dict.fromkeys(row.get(per, ALL) for row in rows)) or [ALL]
            for device in devices[: 1 if len(devices) == 2 else _MOST_CURVES]:  # one device is all there is
                title = given["title"] if device == ALL else f"{given['title']}: {_name(device)}"
                mine = [row for row in rows if row.get(per, ALL) == device]
                found += _chart({**given, "title": title}, mine, level)
        return found

    def facts(self) -> dict[str, str]:
        how, of = self.options, SessionOptions(**self.about["session_options"])
        words: dict[str, Any] = {"name": _name(self.name), "about": self.about, "sessions": of.words}
        words |= {"confidence": 100 * how.confidence, "ddof": how.ddof, "journey": how.journey}
        return {name: text.format(**words) for name, text in TEXTS["facts"].items()}

    def line(self) -> str:
        return "; ".join(f"{name}: {text}" for name, text in self.facts().items())

    def write_files(self, folder: Path) -> None:
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
    with open_engine() if engine is None else nullcontext(engine) as runs, ExitStack() as stack:
        counts = Counts(runs, tables, options, stack)
        found = {one.name: one.rows(counts) for one in track(chosen, "statistics", unit="statistics")}
    about = {name: tables.about[name] for name in ("log", "zone", "log_fingerprint", "counts")}
    about |= {"sessions_fingerprint": tables.fingerprint, "session_options": tables.about["options"]}
    about |= {"options": options.model_dump(), "engine": runs.name, "notes": tables.about.get("notes", [])}
    return Description(about, found)


def tables_of(description: Description, name: str) -> list[Table]:
    rows, statistic = _largest_first(description.rows(name)), STATISTICS.get(name)
    if not rows or not statistic.shown:
        return []
    keys = [key for key in statistic.columns.split() if key in _KEYS]
    names = [[_KEYS[key](row[key]) for key in keys] for row in rows[:_MOST_ROWS]]
    further = len(rows) - len(names)
    after = f"{further:,} further lines are in the CSV file." if further > 0 else ""
    heads = [key.replace("_", " ").capitalize() for key in keys]
    return [table_of(statistic.shown, statistic.title, names, rows[: len(names)], heads, after=after)]


def _largest_first(rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows of devices or channels with those of most sessions first, where that is disclosed; ALL before any."""
    key = next((one for one in ("device", "channel") if rows and one in rows[0]), None)
    if key is None:
        return rows
    sizes = Counter[str]()
    for row in rows:
        sizes[row[key]] += row["sessions"] if isinstance(row.get("sessions"), int) else 0
    return sorted(rows, key=lambda row: (row[key] != ALL, -sizes[row[key]], row[key]))


def _name(name: str) -> str:
    return f"{name[:_LONG]}…" if len(name) > _LONG else name or "(empty)"


_KEYS: Mapping[str, Callable[[Any], str]] = {  # columns that name a row, and how a table writes them
    **dict.fromkeys(("what", "channel", "device", "devices", "from_device", "to_device", "link"), _name),
    "purchase": _NAMES.__getitem__,
    "purchaser": {True: "purchasers", False: "others"}.__getitem__,
    "weekend": {True: "Saturday, Sunday", False: "Monday–Friday"}.__getitem__,
}


def _chart(given: Mapping[str, Any], rows: Sequence[Row], of_all: float | None) -> list[Chart]:
    """Return one chart; none where none of its values is disclosed."""
    lines, across, places = [], "of_class" not in given, given.get("places", "")
    rows = rows[:_MOST_GROUPS] if across else [row for row in rows if row.get(places, 1) >= 1]
    classes = [
        {"name": _NAMES[one], "key": "share", "of": one, "ends": not places, **_LOOKS[one]} for one in CLASSES
    ]
    for one in given.get("series", classes):
        mine = [row for row in rows if row.get("purchase") == one.get("of")]
        scale, ends = one.get("scale", 100), ("low", "high") if one.get("ends") else ()
        y, *bounds = (
            [None if row.get(key) is None else scale * row[key] for row in mine]
            for key in (one["key"], *ends)
        )
        more: dict[str, Any] = {"colour": one.get("colour", ""), "mark": given["mark"]}
        if across:
            more["texts"] = [number(value, one.get("decimals", 1), one.get("sign", "")) for value in y]
        elif "categories" not in given:
            more["x"] = [row[places] for row in mine] if places else range(len(y))
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
    look = {"across": across, "log": given.get("log", "")}
    return [Chart(given["title"], lines, given.get("x", ""), given.get("y", ""), names, **look)]
