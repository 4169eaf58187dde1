"""Statistics of a log's sessions (thesis sections 6.3 and 6.4): one table of Ibis expressions, on any engine.

The sessions are counted once into small tables; an expression takes integers and keys from these, and shares,
intervals and standardised rates are computed from them in plain Python, so that engines cannot differ in them.
Intervals take sessions as independent of each other. Those of one visitor are not quite, so that with many sessions
per visitor the truth lies outside more often than stated.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from itertools import accumulate, groupby
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.engine import Engine
from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.core.registry import Registry

if TYPE_CHECKING:
    import ibis.expr.types as ir

Row = dict[str, Any]
Finish = Callable[[Sequence[Row], DescribeOptions], list[Row]]  # from counted rows to finished ones

ALL = "all"  # in the place of a device: all of them together; a device that a log calls so is called "all" in quotes
CLASSES = (True, False)  # purchase sessions and others, in the order of tables
_CUBE = ("device", "channel", "purchase", "start_dow", "start_hour", "weekend")


class Counts:
    """A log's sessions and queries, and small tables of counts, each counted once when it is first needed."""

    def __init__(
        self, engine: Engine, tables: SessionTables, options: DescribeOptions, held: ExitStack
    ) -> None:
        import ibis

        self.options, self._engine, self._held = options, engine, held
        self.sessions, self.queries = (
            table.mutate(device=ibis.ifelse(table.device == ALL, f'"{ALL}"', table.device))
            for table in (engine.read(tables.files(name)) for name in ("sessions", "queries"))
        )
        if "weekend" not in self.sessions.columns:
            self.sessions = self.sessions.mutate(weekend=self.sessions.start_dow >= 5)

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

    def sums(self, keys: Sequence[str], *names: str) -> ir.Table:
        """Return the sums of columns of the cube by keys."""
        sums = {name: self.cube[name].sum().cast("int64") for name in names}
        return self.cube.group_by(list(keys)).aggregate(**sums)

    def rows(self, expression: ir.Table) -> list[Row]:
        """Run an expression whose result is small."""
        found: list[Row] = self._engine.to_arrow(expression).to_pylist()
        return found


@dataclass(frozen=True)
class Statistic:
    """One statistic: what an engine counts, what follows from it, and what ``statistics.toml`` declares."""

    name: str
    expression: Callable[[Counts], ir.Table]
    finish: Finish
    description: str
    source: str
    columns: str
    section: str
    cells: str = ""
    whole: str = ""
    title: str = ""
    shown: Sequence[Mapping[str, Any]] = ()  # columns of its table
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)  # pattern of a study's rows → of LACKS


STATISTICS: Registry[Statistic] = Registry("statistic", __name__)
_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
LACKS: Mapping[str, str] = _DECLARED["lacks"]


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
    """Return (rate − mean) / standard deviation of groups, each counting once whatever its size (thesis section 6.2).

    ``ddof``: Table 6.4 divides by n under the deviation (0), of Table 6.2 three of four numbers fit n − 1 (1). None
    where there is no rate, and everywhere where groups do not differ or are too few.
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
    zero back, weak close to zero both ways. The bounds are ours. ``back``: None where the other was never left.
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


def _of_cube(*keys: str) -> Callable[[Counts], ir.Table]:
    return lambda counts: counts.sums(keys, "sessions")


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


def _overview(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    counted = {name: int(total or 0) for name, total in rows[0].items()}
    counted["anonymous"] = counted["sessions"] - counted["identified"]
    return [{"what": what, "total": counted[name]} for what, name in _DECLARED["totals"].items()]


def _lengths(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = []
    for group in _by_length(rows):
        whole = at_least = sum(row["sessions"] for row in group)
        for row in group:
            found.append({**row, "at_least": at_least, **_proportion(at_least, whole, options)})
            at_least -= row["sessions"]
    return found


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


def _weekend(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = _by_time("weekend", "weekend", (False, True), rows, options)
    days = {True: 2, False: 5}
    return [row | {"per_day": row["share"] and row["share"] / days[row["weekend"]]} for row in found]


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


def _transitions(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found = _shares(_ordered(rows, "from_device", "to_device"), "transitions", "from_device", options)
    there = {(row["from_device"], row["to_device"]): row["share"] for row in found}
    left, limits = {one for one, _ in there}, {"likely": options.likely, "near_zero": options.near_zero}
    for row in found:
        one, other = row["from_device"], row["to_device"]
        back = there.get((other, one), 0.0 if other in left else None)
        row["link"] = "self" if one == other else link(row["share"], back, **limits)
    return found


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


def _unique(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    found, over_devices = _ordered(rows, "purchase", "device"), Counter[bool]()
    for row in found:
        over_devices[row["purchase"]] += row["unique"] * (row["device"] != ALL)
    for row in found:
        row["share"] = share(row["unique"], over_devices[row["purchase"]])
        row["unique_share"] = share(row["unique"], row["queries"])
    return found


_COUNTED: Mapping[str, tuple[Callable[[Counts], ir.Table], Finish]] = {
    "overview": (_count_overview, _overview),
    "session-length": (lambda counts: counts.lengths, _lengths),
    "session-length-quantiles": (lambda counts: counts.lengths, _quantiles),
    "week-days": (_of_cube("purchase", "start_dow"), partial(_by_time, "week_day", "start_dow", range(7))),
    "weekend": (_of_cube("purchase", "weekend"), _weekend),
    "hours": (_of_cube("purchase", "start_hour"), partial(_by_time, "hour", "start_hour", range(24))),
    "channels": (_of_cube("channel", "purchase"), partial(_conversion, "channel")),
    "devices-per-visitor": (lambda counts: counts.visitors, _devices_per_visitor),
    "devices": (_of_cube("device", "purchase"), partial(_conversion, "device")),
    "device-transitions": (_count_transitions, _transitions),
    "queries": (
        lambda counts: counts.sums(("purchase", "device"), "sessions", "queries", "squares"),
        _queries,
    ),
    "unique-queries": (lambda counts: counts.unique.filter(counts.unique.purchase.notnull()), _unique),
}
ORDER = tuple(_COUNTED)  # as the thesis has them
for _name, _counted in _COUNTED.items():
    STATISTICS.add(Statistic(_name, *_counted, **_DECLARED["statistics"][_name]))
