"""Statistics of a log's sessions (thesis sections 6.3 and 6.4): one table of Ibis expressions, on any engine.

An expression gives integers and keys; shares, intervals and standardised rates are computed from them in plain
Python, once, so that engines cannot differ in them. Intervals take sessions as independent of each other. Those of
one visitor are not quite, so that with many sessions per visitor the truth lies outside more often than stated.

::

    FOLDER/
      description.json         of which log and sessions, by which options; all tables
      tables/overview.csv      the same tables, for spreadsheets; every number, nothing is withheld
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import accumulate, groupby
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.options import DescribeOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.commerce.purchase_intent.shown import Discretion
from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import write_csv
from diptych.core.registry import Registry

if TYPE_CHECKING:
    import ibis.expr.types as ir

Row = dict[str, Any]
Expression = Callable[["ir.Table", "ir.Table", DescribeOptions], "ir.Table"]  # of sessions and queries
Finish = Callable[[Sequence[Row], DescribeOptions], list[Row]]  # from counted rows to finished ones

ALL = "all"  # in the place of a device: all of them together; a device that a log calls so is called "all" in quotes
CLASSES = (True, False)  # purchase sessions and others, in the order of tables
JOURNEYS = {
    "pair": "from the session before a purchase session to it",
    "journey": "all from the purchase session before, or the visitor's first session, to a purchase session",
}  # which transitions between devices count


@dataclass(frozen=True)
class Statistic:
    """One statistic: its table or figure of the thesis, columns, what an engine counts, and what follows from it."""

    name: str
    description: str
    source: str
    columns: str
    expression: Expression
    finish: Finish


STATISTICS: Registry[Statistic] = Registry("statistic", __name__)


@dataclass(frozen=True)
class Description(Artifact, kind="description", recreate="diptych intent describe LOG --out FOLDER"):
    """The statistics of a log.

    Attributes:
        about: everything the numbers depend on: ``log``, ``zone``, fingerprints, ``session_options``, ``options``,
            ``engine``, ``counts``; and ``notes``, what a reader has to know. JSON-able.
        tables: statistic → all its rows, in order, with nothing withheld; :meth:`rows` is what may be shown.
    """

    about: Mapping[str, Any]
    tables: Mapping[str, Sequence[Row]]
    folder: Path = field(init=False, default=Path(), compare=False)  # where it is

    @property
    def name(self) -> str:
        """Of the log."""
        return str(self.about["log"])

    @property
    def options(self) -> DescribeOptions:
        """Return how it was computed."""
        return DescribeOptions(**self.about["options"])

    @property
    def notes(self) -> list[str]:
        """Return what a reader has to know, as far as it may be shown."""
        return Discretion.current().notes(self.about["notes"])

    def rows(self, name: str) -> list[Row]:
        """Return the rows of one statistic as they may be shown."""
        if name not in self.tables:
            raise UnknownNameError("statistic of this description", name, self.tables)
        return Discretion.current().rows(name, self.tables[name])

    def totals(self) -> dict[str, Any]:
        """Return the overview as far as it may be shown; ``purchase rate`` and ``anonymous rate`` with it."""
        discretion = Discretion.current()
        overview = self.tables.get("overview", ())
        counts = {row["what"]: row["total"] for row in overview}
        shown = {row["what"]: row["total"] for row in discretion.rows("overview", overview)}
        for one in {"purchase", "anonymous"} if counts else ():
            if f"{one} sessions" in shown:
                shown[f"{one} rate"] = discretion.share(counts[f"{one} sessions"], counts["sessions"])
        return shown

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
        (folder / "tables").mkdir()
        for name, rows in self.tables.items():
            columns = STATISTICS.get(name).columns.split()
            cells = ([row.get(column, "") for column in columns] for row in rows)
            write_csv(folder / "tables" / f"{name}.csv", columns, cells)


def choose_statistics(names: Iterable[str] | None = None) -> list[Statistic]:
    """Return the statistics of these names, each once, in the order of :data:`ORDER`; all when none are named."""
    wanted = set(ORDER if names is None else (STATISTICS.get(name).name for name in names))
    if not wanted:
        raise UsageError("no statistic was asked for", f"for example {', '.join(ORDER[:2])}")
    return [STATISTICS.get(name) for name in ORDER if name in wanted]


def describe(
    tables: SessionTables,
    *,
    engine: Engine | None = None,
    options: DescribeOptions | None = None,
    names: Iterable[str] | None = None,
) -> Description:
    """Count on the engine, and compute shares, intervals and rates from the counts."""
    import ibis

    options = options or DescribeOptions()
    chosen = choose_statistics(names)
    found: dict[str, list[Row]] = {}
    with open_engine() if engine is None else nullcontext(engine) as runs:
        sessions, queries = (
            table.mutate(device=ibis.ifelse(table.device == ALL, f'"{ALL}"', table.device))
            for table in (runs.read(tables.files(name)) for name in ("sessions", "queries"))
        )
        for statistic in track(chosen, "statistics", unit="statistics"):
            counted = runs.to_arrow(statistic.expression(sessions, queries, options)).to_pylist()
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
            "notes": _notes(tables.about["counts"], tables.about["options"]["by"]),
        }
    return Description(about, found)


def _notes(counts: Mapping[str, int], by: str) -> list[str]:
    """Return what a reader has to know."""
    sessions, purchases, several = counts["sessions"], counts["purchases"], counts["several_visitors"]
    if not sessions:
        return ["the log has no events: there is nothing to describe"]
    notes = (
        (not purchases, "no session has a purchase: its class is empty, and all conversion rates are 0"),
        (purchases == sessions, "every session has a purchase: there is nothing to compare them with"),
        (
            not counts["identified"],
            "no visitor is known anywhere: nothing can be said of devices per visitor and of switches",
        ),
        (several, f"{several:,} sessions have several visitors; each counts for the first of them"),
        (by == "visitor", "sessions are by visitor: what a client did before logging in is another session"),
    )
    return [note for is_so, note in notes if is_so]


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


def proportion(part: int, of: int, confidence: float, name: str = "share") -> Row:
    """Return a share with its interval."""
    low, high = wilson(part, of, confidence)
    return {name: share(part, of), "low": low, "high": high}


def mean(total: int, squares: int, of: int, confidence: float, name: str) -> Row:
    """Return a mean of counts with its normal interval, cut at 0, from their sum and that of their squares."""
    if of < 2:
        return {name: total / of, "low": None, "high": None}
    # In whole numbers up to here: a difference of large floats would be all rounding.
    half = _normal(confidence) * math.sqrt((squares * of - total * total) / (of * (of - 1)) / of)
    return {name: total / of, "low": max(0.0, total / of - half), "high": total / of + half}


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


def _by_length(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each device, and of all together, and class, by rising length."""
    ordered = _ordered(_together(rows, "sessions"), "device", "purchase", "length")
    for _, group in groupby(ordered, lambda row: (row["device"], row["purchase"])):
        yield list(group)


def _together(rows: Sequence[Row], *counts: str) -> list[Row]:
    """Return the rows with those of all devices together."""
    sums: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = {name: ALL if name == "device" else row[name] for name in row if name not in counts}
        total = sums.setdefault(tuple(key.values()), {**key, **dict.fromkeys(counts, 0)})
        total |= {name: total[name] + row[name] for name in counts}
    return [*rows, *sums.values()]


def _shares(
    rows: Sequence[Row], count: str, by: str, options: DescribeOptions, parts: Sequence[Row] = ()
) -> list[Row]:
    """Return rows with the share that each has of the rows, or of ``parts``, that are equal in the column ``by``."""
    whole = Counter[Any]()
    for row in parts or rows:
        whole[row[by]] += row[count]
    return [row | proportion(row[count], whole[row[by]], options.confidence) for row in rows]


def _count_sessions(*keys: str) -> Expression:
    return lambda sessions, queries, options: sessions.group_by(list(keys)).aggregate(
        sessions=sessions.count()
    )


def _conversion(column: str, rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    sums = Counter({(row[column], row["purchase"]): row["sessions"] for row in rows})
    of = {kind: sum(n for (_, one), n in sums.items() if one is kind) for kind in CLASSES}
    found = []
    for group in sorted({group for group, _ in sums}):
        buys, others = sums[group, True], sums[group, False]
        counts = {"sessions": buys + others, "purchase_sessions": buys}
        shares = {"purchase_share": share(buys, of[True]), "other_share": share(others, of[False])}
        rate = proportion(buys, buys + others, options.confidence, "rate")
        found.append({column: group, **counts, **shares, **rate})
    relative = standardise([row["rate"] for row in found], options.ddof)
    return [row | {"standardised": value} for row, value in zip(found, relative, strict=True)]


def _by_time(column: str, key: str, places: int, rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    counts = Counter({(row["purchase"], row[key]): row["sessions"] for row in rows})
    grid = [(purchase, place) for purchase in CLASSES for place in range(places)]
    found = [{"purchase": one, column: place, "sessions": counts[one, place]} for one, place in grid]
    return _shares(found, "sessions", "purchase", options)


def _count_overview(sessions: ir.Table, queries: ir.Table, options: DescribeOptions) -> ir.Table:
    visitor, text = sessions.visitor_id, queries["query"]
    one_pass = {
        "events": sessions.n_events.sum().fill_null(0),
        "sessions": sessions.count(),
        "anonymous sessions": sessions.count() - visitor.count(),
        "identified sessions": visitor.count(),
        "purchase sessions": sessions.count(where=sessions.purchase),
        "queries": sessions.n_queries.sum().fill_null(0),
        "sessions with several visitors": sessions.count(where=sessions.n_visitors > 1),
    }
    distinct = {
        "clients": sessions.client_id.nunique(),
        "identified visitors": visitor.nunique(),
        "purchasers": visitor.nunique(where=sessions.purchase),
        "device types": sessions.device.nunique(),
    }
    each = [sessions.aggregate(**{name: value}) for name, value in distinct.items()]
    each.append(queries.aggregate(**{"distinct queries": text.nunique(where=text != "")}))
    return reduce(lambda one, other: one.cross_join(other), each, sessions.aggregate(**one_pass))


_TOTALS = """events; sessions; anonymous sessions; identified sessions; purchase sessions; clients; identified visitors;
purchasers; queries; distinct queries; device types; sessions with several visitors"""


def _overview(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    (row,) = rows
    return [{"what": what, "total": row[what]} for what in _TOTALS.replace("\n", " ").split("; ")]


def _lengths(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = []
    for group in _by_length(rows):
        whole = at_least = sum(row["sessions"] for row in group)
        for row in group:
            found.append({**row, "at_least": at_least, **proportion(at_least, whole, options.confidence)})
            at_least -= row["sessions"]
    return found


def _quantiles(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = []
    for group in _by_length(rows):
        up_to = list(accumulate(row["sessions"] for row in group))
        n, total = up_to[-1], sum(row["length"] * row["sessions"] for row in group)
        row = {name: group[0][name] for name in ("device", "purchase")} | {"sessions": n, "mean": total / n}
        for level in (50, 90, 99):
            below = sum(100 * seen < level * n for seen in up_to)
            row[f"p{level}"] = group[below]["length"]
        found.append(row | {"max": group[-1]["length"]})
    return found


def _count_devices(sessions: ir.Table, queries: ir.Table, options: DescribeOptions) -> ir.Table:
    known = sessions.filter(sessions.visitor_id.notnull())
    used = known.group_by(["visitor_id", "device"]).aggregate(purchase=known.purchase.any())
    visitors = used.group_by("visitor_id").aggregate(devices=used.count(), purchaser=used.purchase.any())
    return visitors.group_by(["purchaser", "devices"]).aggregate(visitors=visitors.count())


def _devices_per_visitor(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    several = Counter[bool]()
    for row in rows:
        several[row["purchaser"]] += row["visitors"] * (row["devices"] > 1)
    counted = [{**row, "devices": str(row["devices"])} for row in _ordered(rows, "devices")]
    more = [{"purchaser": one, "devices": "> 1", "visitors": n} for one, n in several.items() if n]
    return _ordered(_shares([*more, *counted], "visitors", "purchaser", options, counted), "purchaser")


def _count_transitions(sessions: ir.Table, queries: ir.Table, options: DescribeOptions) -> ir.Table:
    import ibis

    known = sessions.filter(sessions.visitor_id.notnull())
    known = known.select("visitor_id", "start_us", "session_id", "device", "purchase")
    # Nothing of visitors that never bought is counted, and they are nearly all.
    purchasers = known.filter(known.purchase).select("visitor_id").distinct()
    theirs = known.semi_join(purchasers, "visitor_id")
    in_turn = {"group_by": "visitor_id", "order_by": ["start_us", "session_id"]}
    counts = theirs.purchase
    if options.journey == "journey":
        counts = theirs.purchase.any().over(ibis.window(**in_turn, rows=(0, None)))
    pairs = theirs.mutate(counts=counts, from_device=theirs.device.lag().over(ibis.window(**in_turn)))
    pairs = pairs.filter(pairs.counts & pairs.from_device.notnull()).rename(to_device="device")
    return pairs.group_by(["from_device", "to_device"]).aggregate(transitions=pairs.count())


def _transitions(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = _shares(_ordered(rows, "from_device", "to_device"), "transitions", "from_device", options)
    there = {(row["from_device"], row["to_device"]): row["share"] for row in found}
    left, limits = {one for one, _ in there}, {"likely": options.likely, "near_zero": options.near_zero}
    for row in found:
        one, other = row["from_device"], row["to_device"]
        back = there.get((other, one), 0.0 if other in left else None)
        row["link"] = "self" if one == other else link(row["share"], back, **limits)
    return found


def _count_queries(sessions: ir.Table, queries: ir.Table, options: DescribeOptions) -> ir.Table:
    n = sessions.n_queries
    sums = {"sessions": sessions.count(), "queries": n.sum(), "squares": (n * n).sum()}
    return sessions.group_by(["purchase", "device"]).aggregate(**sums)


def _queries(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = _ordered(_together(rows, "sessions", "queries", "squares"), "purchase", "device")
    whole = {row["purchase"]: row["queries"] for row in found if row["device"] == ALL}
    for row in found:
        n, squares, confidence = row["queries"], row.pop("squares"), options.confidence
        row |= mean(n, squares, row["sessions"], confidence, "per_session")
        row["share"] = share(n, whole[row["purchase"]])
    return found


def _count_unique(sessions: ir.Table, queries: ir.Table, options: DescribeOptions) -> ir.Table:
    """Count different queries; one that is asked on several devices or in both classes is one of each."""
    import ibis

    queries = queries.filter(queries["query"] != "")
    asked = queries.group_by(["purchase", "device", "query"]).aggregate(n=queries.count())
    by_device = asked.group_by(["purchase", "device"]).aggregate(unique=asked.count(), queries=asked.n.sum())
    anywhere = asked.group_by(["purchase", "query"]).aggregate(n=asked.n.sum())
    together = anywhere.group_by("purchase").aggregate(unique=anywhere.count(), queries=anywhere.n.sum())
    return by_device.union(together.mutate(device=ibis.literal(ALL)).select(by_device.columns))


def _unique(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found, over_devices = _ordered(rows, "purchase", "device"), Counter[bool]()
    for row in found:
        over_devices[row["purchase"]] += row["unique"] * (row["device"] != ALL)
    for row in found:
        row["share"] = share(row["unique"], over_devices[row["purchase"]])
        row["unique_share"] = share(row["unique"], row["queries"])
    return found


_GROUP = "sessions purchase_sessions purchase_share other_share rate low high standardised"
_RATES = "sessions, purchase sessions and conversion rates by {} of the first event"
_LENGTH = _count_sessions("device", "purchase", "length")
_TABLE = (
    Statistic(
        "overview",
        "how many events, sessions, clients, visitors and queries there are",
        "thesis Table 6.1",
        "what total",
        _count_overview,
        _overview,
    ),
    Statistic(
        "session-length",
        "share of sessions with at least so many actions, by device and class",
        "thesis Figure 6.2",
        "device purchase length sessions at_least share low high",
        _LENGTH,
        _lengths,
    ),
    Statistic(
        "session-length-quantiles",
        "mean and quantiles of session length, by device and class",
        "thesis section 6.4.1",
        "device purchase sessions mean p50 p90 p99 max",
        _LENGTH,
        _quantiles,
    ),
    Statistic(
        "week-days",
        "sessions by the local week day of the first event; 0 is Monday",
        "thesis Figure 6.3",
        "purchase week_day sessions share low high",
        _count_sessions("purchase", "start_dow"),
        partial(_by_time, "week_day", "start_dow", 7),
    ),
    Statistic(
        "hours",
        "sessions by the local hour of the first event",
        "thesis Figure 6.4",
        "purchase hour sessions share low high",
        _count_sessions("purchase", "start_hour"),
        partial(_by_time, "hour", "start_hour", 24),
    ),
    Statistic(
        "channels",
        _RATES.format("channel"),
        "thesis Table 6.2",
        f"channel {_GROUP}",
        _count_sessions("channel", "purchase"),
        partial(_conversion, "channel"),
    ),
    Statistic(
        "devices-per-visitor",
        "how many different devices the sessions of a known visitor began on",
        "thesis Table 6.3, which says per session and means per visitor",
        "purchaser devices visitors share low high",
        _count_devices,
        _devices_per_visitor,
    ),
    Statistic(
        "devices",
        _RATES.format("device"),
        "thesis Table 6.4",
        f"device {_GROUP}",
        _count_sessions("device", "purchase"),
        partial(_conversion, "device"),
    ),
    Statistic(
        "device-transitions",
        "devices of a known visitor's consecutive sessions, of which the later one is a purchase session",
        "thesis Figure 6.5",
        "from_device to_device transitions share low high link",
        _count_transitions,
        _transitions,
    ),
    Statistic(
        "queries",
        "queries per session, by class and device",
        "thesis Table 6.5",
        "purchase device sessions queries per_session low high share",
        _count_queries,
        _queries,
    ),
    Statistic(
        "unique-queries",
        "different queries, by class and device; in lower case, blanks made one",
        "thesis Table 6.6",
        "purchase device unique queries share unique_share",
        _count_unique,
        _unique,
    ),
)
for _one in _TABLE:
    STATISTICS.add(_one)
ORDER = tuple(one.name for one in _TABLE)  # as the thesis has them
