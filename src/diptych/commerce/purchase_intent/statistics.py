"""Statistics of a log's sessions (thesis sections 6.3 and 6.4): counted by any engine, finished by one query each.

The sessions are counted once into small tables; an Ibis expression takes integers and keys from these on DuckDB or
Spark. ``statistics.toml`` has the query that makes shares, intervals and standardised rates of them, in DuckDB, so
that engines cannot differ in them. Intervals take sessions as independent of each other. Those of one visitor are not
quite, so that with many sessions per visitor the truth lies outside more often than stated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.engine import Engine
from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.core.extras import require
from diptych.core.reading import read_toml
from diptych.core.registry import Registry

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

Row = dict[str, Any]

ALL = "all"  # in the place of a device: all of them together; a device that a log calls so is called "all" in quotes
CLASSES = (True, False)  # purchase sessions and others, in the order of tables
_CUBE = ("device", "channel", "purchase", "start_dow", "start_hour", "weekend")


class Counts:
    """A log's sessions and queries, and small tables of counts, each counted once when it is first needed."""

    def __init__(
        self, engine: Engine, tables: SessionTables, options: DescribeOptions, held: ExitStack
    ) -> None:
        import ibis

        self.options, self.engine, self._held = options, engine, held
        self.sessions, self.queries = (
            table.mutate(device=ibis.ifelse(table.device == ALL, f'"{ALL}"', table.device))
            for table in (engine.read(tables.files(name)) for name in ("sessions", "queries"))
        )
        if "weekend" not in self.sessions.columns:
            self.sessions = self.sessions.mutate(weekend=self.sessions.start_dow >= 5)

    def _counted(self, table: ir.Table, keys: Sequence[str], **counts: ir.Value) -> ir.Table:
        return self._held.enter_context(self.engine.held(table.group_by(keys).aggregate(**counts)))

    @cached_property
    def cube(self) -> ir.Table:
        """Sessions, and sums over them, by device, channel, class and time."""
        sessions, n = self.sessions, self.sessions.n_queries
        sums = {"events": sessions.n_events.sum(), "queries": n.sum(), "squares": (n * n).sum()}
        return self._counted(
            sessions,
            _CUBE,
            sessions=sessions.count(),
            identified=sessions.visitor_id.count(),
            several=sessions.count(where=sessions.n_visitors > 1),
            **{name: value.cast("int64") for name, value in sums.items()},
        )

    @cached_property
    def lengths(self) -> ir.Table:
        return self._counted(self.sessions, ("device", "purchase", "length"), sessions=self.sessions.count())

    @cached_property
    def visitors(self) -> ir.Table:
        known = self.sessions.filter(self.sessions.visitor_id.notnull())
        used = known.group_by(["visitor_id", "device"]).aggregate(purchase=known.purchase.any())
        each = used.group_by("visitor_id").aggregate(devices=used.count(), purchaser=used.purchase.any())
        return self._counted(each, ("purchaser", "devices"), visitors=each.count())

    @cached_property
    def typed(self) -> ir.Table:
        queries = self.queries.filter(self.queries["query"] != "")
        return self._counted(queries, ("purchase", "device", "query"), n=queries.count())

    def unique(self, *keys: str) -> ir.Table:
        """Return how many different queries there are; one that is typed on several devices is one of all of them."""
        once = self.typed.group_by([*keys, "query"]).aggregate(n=self.typed.n.sum())
        counts = {"unique": once.count(), "queries": once.n.sum().fill_null(0).cast("int64")}
        return once.group_by(list(keys)).aggregate(**counts) if keys else once.aggregate(**counts)

    def sums(self, *names: str, **keys: str) -> ir.Table:
        """Return sums of the cube's columns, by some of them under other names."""
        sums = {name: self.cube[name].sum().cast("int64") for name in names or ("sessions",)}
        by = {name: self.cube[column] for name, column in keys.items()}
        return self.cube.group_by(**by).aggregate(**sums)


def _overview(counts: Counts) -> ir.Table:
    cube, visitors, clients = counts.cube, counts.visitors, counts.sessions.client_id
    names = ("events", "sessions", "identified", "queries", "several")
    bought = cube.purchase, visitors.purchaser
    parts = (
        counts.unique().select(distinct="unique"),
        cube.aggregate(
            **{name: cube[name].sum() for name in names},
            purchases=cube.sessions.sum(where=bought[0]),
            devices=cube.device.nunique(),
        ),
        visitors.aggregate(known=visitors.visitors.sum(), buyers=visitors.visitors.sum(where=bought[1])),
        counts.sessions.aggregate(clients=clients.nunique()),
    )
    return reduce(lambda one, other: one.cross_join(other), parts)


def _transitions(counts: Counts) -> ir.Table:
    import ibis

    known = counts.sessions.filter(counts.sessions.visitor_id.notnull())
    known = known.select("visitor_id", "start_us", "session_id", "device", "purchase")
    # Nothing of visitors that never bought is counted, and they are nearly all.
    theirs = known.semi_join(known.filter(known.purchase).select("visitor_id").distinct(), "visitor_id")
    in_turn = {"group_by": "visitor_id", "order_by": ["start_us", "session_id"]}
    is_counted = theirs.purchase
    if counts.options.journey == "journey":
        is_counted = theirs.purchase.any().over(ibis.window(**in_turn, rows=(0, None)))
    before = theirs.device.lag().over(ibis.window(**in_turn))
    pairs = theirs.mutate(is_counted=is_counted, from_device=before)
    pairs = pairs.filter(pairs.is_counted & pairs.from_device.notnull()).rename(to_device="device")
    return pairs.group_by(["from_device", "to_device"]).aggregate(transitions=pairs.count())


def _unique(counts: Counts) -> ir.Table:
    import ibis

    by_device, together = counts.unique("purchase", "device"), counts.unique("purchase")
    return ibis.union(by_device, together.mutate(device=ibis.literal(ALL)).select(by_device.columns))


_COUNTED: Mapping[str, Callable[[Counts], ir.Table]] = {
    "overview": _overview,
    "session-length": lambda counts: counts.lengths,
    "session-length-quantiles": lambda counts: counts.lengths,
    "week-days": lambda counts: counts.sums(purchase="purchase", place="start_dow"),
    "weekend": lambda counts: counts.sums(purchase="purchase", place="weekend"),
    "hours": lambda counts: counts.sums(purchase="purchase", place="start_hour"),
    "channels": lambda counts: counts.sums(purchase="purchase", name="channel"),
    "devices-per-visitor": lambda counts: counts.visitors,
    "devices": lambda counts: counts.sums(purchase="purchase", name="device"),
    "device-transitions": _transitions,
    "queries": lambda counts: counts.sums(
        "sessions", "queries", "squares", purchase="purchase", device="device"
    ),
    "unique-queries": _unique,
}
ORDER = tuple(_COUNTED)  # as the thesis has them


@dataclass(frozen=True)
class Statistic:
    """One statistic: what an engine counts, and what ``statistics.toml`` declares."""

    name: str
    counted: Callable[[Counts], ir.Table]
    description: str
    source: str
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
        return self.finish(counts.engine.to_arrow(self.counted(counts)), counts.options)

    def finish(self, counted: pa.Table, options: DescribeOptions) -> list[Row]:
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
for _name, _counted in _COUNTED.items():
    STATISTICS.add(Statistic(_name, _counted, **_DECLARED["statistics"][_name]))
