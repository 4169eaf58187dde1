"""Statistics of a log's sessions (thesis sections 6.3 and 6.4): one table of Ibis expressions, on any engine.

The sessions are counted once into small tables; an expression takes integers and keys from these, and shares,
intervals and standardised rates are computed from them in plain Python, so that engines cannot differ in them.
Intervals take sessions as independent of each other. Those of one visitor are not quite, so that with many sessions
per visitor the truth lies outside more often than stated.

::

    FOLDER/
      description.json         of which log and sessions, by which options; all counts, unprotected: not to be passed on
      tables/overview.csv      the statistics as they may be shown, for spreadsheets
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from itertools import accumulate, groupby
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.disclosure import DisclosureControl
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

    from diptych.core.chart import Chart
    from diptych.core.table import Table

Row = dict[str, Any]
Finish = Callable[[Sequence[Row], DescribeOptions], list[Row]]  # from counted rows to finished ones

ALL = "all"  # in the place of a device: all of them together; a device that a log calls so is called "all" in quotes
CLASSES = (True, False)  # purchase sessions and others, in the order of tables
JOURNEYS = {
    "pair": "from the session before a purchase session to it",
    "journey": "all from the purchase session before, or the visitor's first session, to a purchase session",
}  # which transitions between devices count
_CUBE = ("device", "channel", "purchase", "start_dow", "start_hour", "weekend")


class Counts:
    """A log's sessions and queries, and small tables of counts, each counted once when it is first needed."""

    def __init__(self, engine: Engine, tables: SessionTables, options: DescribeOptions) -> None:
        import ibis

        self.options, self._engine, self._held = options, engine, ExitStack()
        self.sessions, self.queries = (
            table.mutate(device=ibis.ifelse(table.device == ALL, f'"{ALL}"', table.device))
            for table in (engine.read(tables.files(name)) for name in ("sessions", "queries"))
        )
        if "weekend" not in self.sessions.columns:
            self.sessions = self.sessions.mutate(weekend=self.sessions.start_dow >= 5)

    def __enter__(self) -> Counts:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _hold(self, expression: ir.Table) -> ir.Table:
        return self._held.enter_context(self._engine.held(expression))

    @cached_property
    def cube(self) -> ir.Table:
        """Sessions, and sums over them, by device, channel, class and time."""
        sessions, n = self.sessions, self.sessions.n_queries
        sums = {"events": sessions.n_events.sum(), "queries": n.sum(), "squares": (n * n).sum()}
        counts = {
            "sessions": sessions.count(),
            "identified": sessions.visitor_id.count(),
            "several": sessions.count(where=sessions.n_visitors > 1),
            **{name: value.cast("int64") for name, value in sums.items()},
        }
        return self._hold(sessions.group_by(list(_CUBE)).aggregate(**counts))

    @cached_property
    def lengths(self) -> ir.Table:
        """Sessions by device, class and length."""
        by_length = self.sessions.group_by(["device", "purchase", "length"])
        return self._hold(by_length.aggregate(sessions=self.sessions.count()))

    @cached_property
    def visitors(self) -> ir.Table:
        """Known visitors by whether they bought, and by their number of devices."""
        known = self.sessions.filter(self.sessions.visitor_id.notnull())
        used = known.group_by(["visitor_id", "device"]).aggregate(purchase=known.purchase.any())
        each = used.group_by("visitor_id").aggregate(devices=used.count(), purchaser=used.purchase.any())
        return self._hold(each.group_by(["purchaser", "devices"]).aggregate(visitors=each.count()))

    @cached_property
    def unique(self) -> ir.Table:
        """Different queries by class and device; one that is typed on several, or in both classes, is one of each."""
        import ibis

        queries = self.queries.filter(self.queries["query"] != "")
        typed = queries.group_by(["purchase", "device", "query"]).aggregate(n=queries.count())
        parts = []
        for keys in (["purchase", "device"], ["purchase"], []):
            once = typed.group_by([*keys, "query"]).aggregate(n=typed.n.sum())
            counts = {"unique": once.count(), "queries": once.n.sum().fill_null(0).cast("int64")}
            part = once.group_by(keys).aggregate(**counts) if keys else once.aggregate(**counts)
            part = part if "device" in keys else part.mutate(device=ibis.literal(ALL))
            part = part if keys else part.mutate(purchase=ibis.null("boolean"))
            parts.append(part.select("purchase", "device", "unique", "queries"))
        return self._hold(ibis.union(*parts))

    def sums(self, table: ir.Table, keys: Sequence[str], *names: str) -> ir.Table:
        """Return the sums of columns by keys."""
        return table.group_by(list(keys)).aggregate(
            **{name: table[name].sum().cast("int64") for name in names}
        )

    def rows(self, expression: ir.Table) -> list[Row]:
        """Run an expression whose result is small."""
        return self._engine.to_arrow(expression).to_pylist()


@dataclass(frozen=True)
class Statistic:
    """One statistic: its table or figure of the thesis, columns, what an engine counts, and what follows from it.

    Where ``cells`` names a column of counts, its rows are suppressed as wholes, and the counts add up over rows with
    equal ``whole``: see :meth:`DisclosureControl.rows`.
    """

    name: str
    description: str
    source: str
    columns: str
    expression: Callable[[Counts], ir.Table]
    finish: Finish
    cells: str = ""
    whole: str = ""


STATISTICS: Registry[Statistic] = Registry("statistic", __name__)
ORDER: list[str] = []  # of their names: as the thesis has them


@dataclass(frozen=True)
class Description(
    Artifact, kind="description", version=2, recreate="diptych intent describe LOG --out FOLDER"
):
    """The statistics of a log.

    Attributes:
        about: everything the numbers depend on: ``log``, ``zone``, fingerprints, ``session_options``, ``options``,
            ``engine``, ``counts``; ``notes``; ``limits``, statistic → why the log cannot tell it. JSON-able.
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
        """Return what a reader has to know, as far as it may be shown."""
        return DisclosureControl.current().notes(self.about["notes"])

    def rows(self, name: str) -> list[Row]:
        """Return the rows of one statistic as they may be shown."""
        if name not in self.unprotected:
            raise UnknownNameError("statistic of this description", name, self.unprotected)
        statistic = STATISTICS.get(name)
        return DisclosureControl.current().rows(self.unprotected[name], statistic.cells, statistic.whole)

    def totals(self) -> Row:
        """Return the overview as far as it may be shown; ``purchase rate`` and ``anonymous rate`` with it."""
        shown = (
            {row["what"]: row["total"] for row in self.rows("overview")}
            if "overview" in self.unprotected
            else {}
        )
        for one in ("purchase", "anonymous"):
            part, of = shown.get(f"{one} sessions"), shown.get("sessions")
            if isinstance(part, int) and isinstance(of, int):
                shown[f"{one} rate"] = DisclosureControl.current().share(part, of)
        return shown

    def tables(self, name: str | None = None) -> list[Table]:
        """Return the tables of one statistic, or of all; what is drawn alone comes as its values."""
        from diptych.commerce.purchase_intent.described import tables_of

        names = [name] if name else [one for one in self.unprotected if one != "session-length"]
        each = (tables_of(self, one) or [chart.table() for chart in self.charts(one)] for one in names)
        return [table for tables in each for table in tables]

    def charts(self, name: str) -> list[Chart]:
        """Return the charts of one statistic."""
        from diptych.commerce.purchase_intent.described import charts_of

        return charts_of(self, name)

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
        counts = stack.enter_context(Counts(runs, tables, options))
        each = track(chosen, "statistics", unit="statistics")
        found = {one.name: one.finish(counts.rows(one.expression(counts)), options) for one in each}
        about = {
            "log": tables.log_name,
            "zone": tables.zone,
            "log_fingerprint": tables.about["log_fingerprint"],
            "sessions_fingerprint": tables.fingerprint,
            "session_options": tables.about["options"],
            "options": options.model_dump(),
            "engine": runs.name,
            "counts": tables.about["counts"],
            "notes": _notes(tables),
            "limits": dict(tables.about.get("limits", {})),
        }
    return Description(about, found)


def _notes(tables: SessionTables) -> list[str]:
    """Return what a reader has to know."""
    counts, by = tables.about["counts"], tables.about["options"]["by"]
    sessions, purchases, several = counts["sessions"], counts["purchases"], counts["several_visitors"]
    if not sessions:
        return ["the log has no events: there is nothing to describe"]
    notes = {
        "no session has a purchase: its class is empty, and all conversion rates are 0": not purchases,
        "every session has a purchase: there is nothing to compare them with": purchases == sessions,
        "no visitor is known anywhere: nothing can be said of devices per visitor and of switches": not counts[
            "identified"
        ],
        f"{several:,} sessions have several visitors; each counts for the first of them": several,
        "sessions are by visitor: what a client did before logging in is another session": by == "visitor",
    }
    return [note for note, is_so in notes.items() if is_so] + list(tables.about.get("notes", ()))


def share(part: int, of: int) -> float | None:
    """Return a part of a whole; None of nothing."""
    return part / of if of else None


def _normal(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson(part: int, of: int, confidence: float) -> tuple[float | None, float | None]:
    """Return the score interval of a share, which holds near 0 and 1, too (Wilson, JASA 1927); None of nothing."""
    if not of:
        return None, None
    z = _normal(confidence)
    centre, whole = part + z * z / 2, of + z * z
    half = z * math.sqrt(part * (of - part) / of + z * z / 4)
    # Of none and of all the formula is 0 and 1 but for rounding.
    return 0.0 if part == 0 else (centre - half) / whole, 1.0 if part == of else (centre + half) / whole


def _proportion(part: int, of: int, options: DescribeOptions, name: str = "share") -> Row:
    low, high = wilson(part, of, options.confidence)
    return {name: share(part, of), "low": low, "high": high}


def mean_between(counts: Mapping[int, int], low: float, high: float) -> float:
    """Return the mean of lengths between two quantiles, on which sessions count with what lies inside."""
    n, total, seen = sum(counts.values()), 0.0, 0
    for length, sessions in sorted(counts.items()):
        inside = min(seen + sessions, high * n) - max(seen, low * n)
        total += length * max(0.0, inside)
        seen += sessions
    return total / ((high - low) * n)


def standardise(rates: Sequence[float | None], ddof: int = 0) -> list[float | None]:
    """Return (rate − mean) / standard deviation of groups, each counting once whatever its size.

    Thesis section 6.2. Its worked example and Table 6.4 divide by n under the deviation (``ddof`` 0); three of the
    four numbers of Table 6.2 fit n − 1 (``ddof`` 1). None where there is no rate, and everywhere where groups do not
    differ or are too few.
    """
    known = [rate for rate in rates if rate is not None]
    if len(known) <= ddof or all(rate == known[0] for rate in known):
        return [None] * len(rates)
    middle = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((rate - middle) ** 2 for rate in known) / (len(known) - ddof))
    return [None if rate is None else (rate - middle) / deviation for rate in rates]


def link(there: float, back: float | None, *, likely: float, near_zero: float) -> str:
    """Return the kind of link between two devices, the same from either side: strong, one-sided, weak or none.

    Thesis section 6.4.4 tells them apart by eye: strong is likely both ways, one-sided likely one way and close to
    zero back, weak close to zero both ways. Its words and numbers leave little room: 1/16 from TV to tablet is high,
    and so is about 0.02 from PC to tablet. That both bounds are 0.01 is ours. ``back`` is None where the other
    device was never left.
    """
    if back is None:
        return "none"
    lower, higher = sorted((there, back))
    if lower >= likely or higher < near_zero:
        return "strong" if lower >= likely else "weak"
    return "one-sided" if higher >= likely and lower < near_zero else "none"


def _ordered(rows: Iterable[Row], *keys: str) -> list[Row]:
    """Return rows by these columns: purchases first, then all devices together, then what is smaller."""

    def place(value: Any) -> tuple[bool, Any]:
        return value != ALL, not value if isinstance(value, bool) else value

    return sorted(rows, key=lambda row: [place(row[key]) for key in keys])


def _together(rows: Sequence[Row], *counts: str) -> list[Row]:
    """Return the rows with those of all devices together."""
    sums: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = {name: ALL if name == "device" else row[name] for name in row if name not in counts}
        total = sums.setdefault(tuple(key.values()), {**key, **dict.fromkeys(counts, 0)})
        total |= {name: total[name] + row[name] for name in counts}
    return [*rows, *sums.values()]


def _by_length(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each device, and of all together, and class, by rising length."""
    ordered = _ordered(_together(rows, "sessions"), "device", "purchase", "length")
    for _, group in groupby(ordered, lambda row: (row["device"], row["purchase"])):
        yield list(group)


def _shares(rows: Sequence[Row], count: str, by: str, options: DescribeOptions) -> list[Row]:
    """Return rows with the share that each has of the rows that are equal in the column ``by``."""
    whole = Counter[Any]()
    for row in rows:
        whole[row[by]] += row[count]
    return [row | _proportion(row[count], whole[row[by]], options) for row in rows]


def _declared(
    name: str,
    columns: str,
    source: str,
    description: str,
    expression: Callable[[Counts], ir.Table],
    **cells: str,
) -> Callable[[Finish], Finish]:
    """Register a statistic that the decorated function finishes."""

    def declare(finish: Finish) -> Finish:
        ORDER.append(
            STATISTICS.add(Statistic(name, description, source, columns, expression, finish, **cells)).name
        )
        return finish

    return declare


def _of_cube(*keys: str) -> Callable[[Counts], ir.Table]:
    return lambda counts: counts.sums(counts.cube, keys, "sessions")


def _count_overview(counts: Counts) -> ir.Table:
    cube, visitors, clients = counts.cube, counts.visitors, counts.sessions.client_id
    names = ("events", "sessions", "identified", "queries", "several")
    of_queries = counts.unique.filter(counts.unique.purchase.isnull()).select(distinct="unique")
    bought = cube.purchase, visitors.purchaser
    parts = (
        cube.aggregate(
            **{name: cube[name].sum() for name in names},
            purchases=cube.sessions.sum(where=bought[0]),
            devices=cube.device.nunique(),
        ),
        visitors.aggregate(known=visitors.visitors.sum(), buyers=visitors.visitors.sum(where=bought[1])),
        counts.sessions.aggregate(clients=clients.nunique()),
    )
    return reduce(lambda one, other: one.cross_join(other), parts, of_queries)


@_declared(
    *("overview", "what total", "thesis Table 6.1"),
    "how many events, sessions, clients, visitors and queries there are",
    _count_overview,
)
def _overview(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    counted = {name: int(total or 0) for name, total in rows[0].items()}
    totals = {
        "events": counted["events"],
        "sessions": counted["sessions"],
        "anonymous sessions": counted["sessions"] - counted["identified"],
        "identified sessions": counted["identified"],
        "purchase sessions": counted["purchases"],
        "clients": counted["clients"],
        "identified visitors": counted["known"],
        "purchasers": counted["buyers"],
        "queries": counted["queries"],
        "distinct queries": counted["distinct"],
        "device types": counted["devices"],
        "sessions with several visitors": counted["several"],
    }
    return [{"what": what, "total": total} for what, total in totals.items()]


@_declared(
    *("session-length", "device purchase length sessions at_least share low high", "thesis Figure 6.2"),
    "share of sessions with at least so many actions, by device and class",
    lambda counts: counts.lengths,
)
def _lengths(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = []
    for group in _by_length(rows):
        whole = at_least = sum(row["sessions"] for row in group)
        for row in group:
            found.append({**row, "at_least": at_least, **_proportion(at_least, whole, options)})
            at_least -= row["sessions"]
    return found


@_declared(
    "session-length-quantiles",
    *("device purchase sessions mean p50 p90 p99 middle max", "thesis section 6.4.1"),
    "mean and quantiles of session length, and the mean from P50 to P90 (middle), by device and class",
    lambda counts: counts.lengths,
    cells="sessions",
    whole="purchase",
)
def _quantiles(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = []
    for group in _by_length(rows):
        counts = {row["length"]: row["sessions"] for row in group}
        up_to, total = list(accumulate(counts.values())), sum(length * n for length, n in counts.items())
        row = {name: group[0][name] for name in ("device", "purchase")}
        row |= {"sessions": up_to[-1], "mean": total / up_to[-1]}
        for level in (50, 90, 99):
            row[f"p{level}"] = group[sum(100 * seen < level * up_to[-1] for seen in up_to)]["length"]
        found.append(row | {"middle": mean_between(counts, 0.5, 0.9), "max": group[-1]["length"]})
    return found


def _by_time(
    column: str, key: str, places: Sequence[Any], rows: Sequence[Row], options: DescribeOptions
) -> list[Row]:
    counts = Counter({(row["purchase"], row[key]): row["sessions"] for row in rows})
    if counts and all(place is None for _, place in counts):
        return []  # a table of sessions that has no times
    grid = [(purchase, place) for purchase in CLASSES for place in places]
    found = [{"purchase": one, column: place, "sessions": counts[one, place]} for one, place in grid]
    return _shares(found, "sessions", "purchase", options)


_declared(
    *("week-days", "purchase week_day sessions share low high", "thesis Figure 6.3"),
    "sessions by the local week day of the first event; 0 is Monday",
    _of_cube("purchase", "start_dow"),
    cells="sessions",
    whole="purchase",
)(partial(_by_time, "week_day", "start_dow", range(7)))


@_declared(
    *("weekend", "purchase weekend sessions share low high per_day", "thesis Figure 6.3"),
    "sessions on Saturdays and Sundays, and on other days; per_day is the share divided by 2 or 5",
    _of_cube("purchase", "weekend"),
    cells="sessions",
    whole="purchase",
)
def _weekend(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = _by_time("weekend", "weekend", (False, True), rows, options)
    days = {True: 2, False: 5}
    return [row | {"per_day": row["share"] and row["share"] / days[row["weekend"]]} for row in found]


_declared(
    *("hours", "purchase hour sessions share low high", "thesis Figure 6.4"),
    "sessions by the local hour of the first event",
    _of_cube("purchase", "start_hour"),
    cells="sessions",
    whole="purchase",
)(partial(_by_time, "hour", "start_hour", range(24)))


def _conversion(column: str, rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    sums = Counter({(row[column], row["purchase"]): row["sessions"] for row in rows})
    of = {kind: sum(n for (_, one), n in sums.items() if one is kind) for kind in CLASSES}
    found = []
    for group in sorted({group for group, _ in sums}):
        buys, others = sums[group, True], sums[group, False]
        counts = {"sessions": buys + others, "purchase_sessions": buys}
        shares = {"purchase_share": share(buys, of[True]), "other_share": share(others, of[False])}
        found.append({column: group, **counts, **shares, **_proportion(buys, buys + others, options, "rate")})
    relative = standardise([row["rate"] for row in found], options.ddof)
    return [row | {"standardised": value} for row, value in zip(found, relative, strict=True)]


def _declare_conversion(name: str, column: str, source: str) -> None:
    _declared(
        name,
        f"{column} sessions purchase_sessions purchase_share other_share rate low high standardised",
        source,
        f"sessions, purchase sessions and conversion rates by {column} of the first event",
        _of_cube(column, "purchase"),
        cells="purchase_sessions",
    )(partial(_conversion, column))


_declare_conversion("channels", "channel", "thesis Table 6.2")


@_declared(
    *("devices-per-visitor", "purchaser devices visitors share low high"),
    "thesis Table 6.3, which says per session and means per visitor",
    "how many different devices the sessions of a known visitor began on",
    lambda counts: counts.visitors,
    cells="visitors",
    whole="purchaser",
)
def _devices_per_visitor(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = [{**row, "devices": str(row["devices"])} for row in _ordered(rows, "devices")]
    found = _shares(found, "visitors", "purchaser", options)
    for one in CLASSES:
        mine = [row for row in found if row["purchaser"] is one]
        several = sum(row["visitors"] for row in mine if row["devices"] != "1")
        if several:
            more = _proportion(several, sum(row["visitors"] for row in mine), options)
            found.insert(0, {"purchaser": one, "devices": "> 1", "visitors": several, **more})
    return _ordered(found, "purchaser")


_declare_conversion("devices", "device", "thesis Table 6.4")


def _count_transitions(counts: Counts) -> ir.Table:
    import ibis

    known = counts.sessions.filter(counts.sessions.visitor_id.notnull())
    known = known.select("visitor_id", "start_us", "session_id", "device", "purchase")
    # Nothing of visitors that never bought is counted, and they are nearly all.
    purchasers = known.filter(known.purchase).select("visitor_id").distinct()
    theirs = known.semi_join(purchasers, "visitor_id")
    in_turn = {"group_by": "visitor_id", "order_by": ["start_us", "session_id"]}
    is_counted = theirs.purchase
    if counts.options.journey == "journey":
        is_counted = theirs.purchase.any().over(ibis.window(**in_turn, rows=(0, None)))
    before = theirs.device.lag().over(ibis.window(**in_turn))
    pairs = theirs.mutate(is_counted=is_counted, from_device=before)
    pairs = pairs.filter(pairs.is_counted & pairs.from_device.notnull()).rename(to_device="device")
    return pairs.group_by(["from_device", "to_device"]).aggregate(transitions=pairs.count())


@_declared(
    *("device-transitions", "from_device to_device transitions share low high link", "thesis Figure 6.5"),
    "devices of a known visitor's consecutive sessions, of which the later one is a purchase session",
    _count_transitions,
    cells="transitions",
    whole="from_device",
)
def _transitions(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = _shares(_ordered(rows, "from_device", "to_device"), "transitions", "from_device", options)
    there = {(row["from_device"], row["to_device"]): row["share"] for row in found}
    left, limits = {one for one, _ in there}, {"likely": options.likely, "near_zero": options.near_zero}
    for row in found:
        one, other = row["from_device"], row["to_device"]
        back = there.get((other, one), 0.0 if other in left else None)
        row["link"] = "self" if one == other else link(row["share"], back, **limits)
    return found


@_declared(
    *("queries", "purchase device sessions queries per_session low high share", "thesis Table 6.5"),
    "queries per session, by class and device",
    lambda counts: counts.sums(counts.cube, ["purchase", "device"], "sessions", "queries", "squares"),
    cells="sessions",
    whole="purchase",
)
def _queries(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = _ordered(_together(rows, "sessions", "queries", "squares"), "purchase", "device")
    whole = {row["purchase"]: row["queries"] for row in found if row["device"] == ALL}
    for row in found:
        n, total, squares = row["sessions"], row["queries"], row.pop("squares")
        row |= {"per_session": total / n, "low": None, "high": None}
        if n > 1:
            # In whole numbers up to here: a difference of large floats would be all rounding.
            half = _normal(options.confidence) * math.sqrt((squares * n - total * total) / (n * (n - 1)) / n)
            row |= {"low": max(0.0, total / n - half), "high": total / n + half}
        row["share"] = share(total, whole[row["purchase"]])
    return found


@_declared(
    *("unique-queries", "purchase device unique queries share unique_share", "thesis Table 6.6"),
    "different queries, by class and device; in lower case, blanks made one",
    lambda counts: counts.unique.filter(counts.unique.purchase.notnull()),
    cells="queries",
    whole="purchase",
)
def _unique(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found, over_devices = _ordered(rows, "purchase", "device"), Counter[bool]()
    for row in found:
        over_devices[row["purchase"]] += row["unique"] * (row["device"] != ALL)
    for row in found:
        row["share"] = share(row["unique"], over_devices[row["purchase"]])
        row["unique_share"] = share(row["unique"], row["queries"])
    return found
