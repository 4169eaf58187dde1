"""The statistics of thesis sections 6.3 and 6.4."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.statistics.describe import (
    ALL,
    CLASSES,
    INTERVAL,
    STATISTICS,
    Row,
    Statistic,
    Tables,
    sorted_with_all,
)
from diptych.commerce.purchase_intent.statistics.intervals import (
    Link,
    by_device_and_class,
    conversion_by,
    counted_lengths,
    link,
    mean_interval,
    over_time,
    proportion,
    share,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir


STATISTICS.add(conversion_by("channel", "channels", "thesis Table 6.2"))


def _expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    import ibis

    known = tables.sessions.filter(tables.sessions.visitor_id.notnull())
    known = known.select("visitor_id", "start_us", "session_id", "device", "purchase")
    # Nothing of visitors that never bought is counted, and they are nearly all.
    purchasers = known.filter(known.purchase).select("visitor_id").distinct()
    theirs = known.semi_join(purchasers, "visitor_id")
    in_turn = {"group_by": "visitor_id", "order_by": ["start_us", "session_id"]}
    ends_in_purchase = theirs.purchase
    if options.journey == "journey":
        ends_in_purchase = theirs.purchase.any().over(ibis.window(**in_turn, rows=(0, None)))
    pairs = theirs.mutate(
        counts=ends_in_purchase, from_device=theirs.device.lag().over(ibis.window(**in_turn))
    )
    pairs = pairs.filter(pairs.counts & pairs.from_device.notnull())
    return pairs.group_by(["from_device", to_device := pairs.device.name("to_device")]).aggregate(
        transitions=to_device.count()
    )


def _finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    counts = {(row["from_device"], row["to_device"]): row["transitions"] for row in rows}
    left: Counter[str] = Counter()
    for (device, _), n in counts.items():
        left[device] += n
    finished = []
    for (before, after), n in sorted(counts.items()):
        kind: Link = "self"
        if before != after:
            back = share(counts.get((after, before), 0), left[after])
            kind = link(n / left[before], back, likely=options.likely, near_zero=options.near_zero)
        finished.append(
            {
                "from_device": before,
                "to_device": after,
                "transitions": n,
                **proportion(n, left[before], options),
                "link": kind,
            }
        )
    return finished


STATISTICS.add(
    Statistic(
        "device-transitions",
        "devices of a known visitor's consecutive sessions, of which the later one is a purchase session",
        "thesis Figure 6.5",
        {
            "from_device": "of the session before",
            "to_device": "of the session after it",
            "transitions": "between two consecutive sessions of one visitor",
            "share": "of all transitions from the device: the probability",
            **INTERVAL,
            "link": "self, strong, one-sided, weak or none",
        },
        _expression,
        _finish,
    )
)


STATISTICS.add(conversion_by("device", "devices", "thesis Table 6.4"))


def _devices_per_visitor_expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    known = tables.sessions.filter(tables.sessions.visitor_id.notnull())
    used = known.group_by(["visitor_id", "device"]).aggregate(purchase=known.purchase.any())
    visitors = used.group_by("visitor_id").aggregate(devices=used.count(), purchaser=used.purchase.any())
    return visitors.group_by(["purchaser", "devices"]).aggregate(visitors=visitors.count())


def _devices_per_visitor_finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    finished = []
    for purchaser in CLASSES:
        counts = {row["devices"]: row["visitors"] for row in rows if row["purchaser"] is purchaser}
        whole = sum(counts.values())
        groups = {"> 1": sum(n for devices, n in counts.items() if devices > 1)}
        groups |= {str(devices): n for devices, n in sorted(counts.items())}
        for devices, n in groups.items():
            if n:
                row: Row = {"purchaser": purchaser, "devices": devices, "visitors": n}
                finished.append(row | proportion(n, whole, options))
    return finished


STATISTICS.add(
    Statistic(
        "devices-per-visitor",
        "how many different devices the sessions of a known visitor began on",
        "thesis Table 6.3, which says per session and means per visitor",
        {
            "purchaser": "whether the visitor has a purchase session",
            "devices": "how many, or more than one",
            "visitors": "known in sessions",
            "share": "of the purchasers, or of the others",
            **INTERVAL,
        },
        _devices_per_visitor_expression,
        _devices_per_visitor_finish,
    )
)


STATISTICS.add(over_time("hours", "hour", "start_hour", 24, "0 to 23", "thesis Figure 6.4"))


_WHAT = (
    "events",
    "sessions",
    "anonymous sessions",
    "identified sessions",
    "purchase sessions",
    "clients",
    "identified visitors",
    "purchasers",
    "queries",
    "distinct queries",
    "device types",
    "sessions with several visitors",
)


def _overview_expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    sessions, queries = tables.sessions, tables.queries
    counted = sessions.aggregate(
        events=sessions.n_events.sum().fill_null(0),
        sessions=sessions.count(),
        identified=sessions.visitor_id.count(),
        purchases=sessions.count(where=sessions.purchase),
        several=sessions.count(where=sessions.n_visitors > 1),
        queries=sessions.n_queries.sum().fill_null(0),
    )
    distinct = (
        sessions.aggregate(clients=sessions.client_id.nunique()),
        sessions.aggregate(visitors=sessions.visitor_id.nunique()),
        sessions.aggregate(purchasers=sessions.visitor_id.nunique(where=sessions.purchase)),
        sessions.aggregate(devices=sessions.device.nunique()),
        queries.aggregate(texts=queries["query"].nunique(where=queries["query"] != "")),
    )
    for one in distinct:
        counted = counted.cross_join(one)
    return counted


def _overview_finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    (row,) = rows
    totals = (
        row["events"],
        row["sessions"],
        row["sessions"] - row["identified"],
        row["identified"],
        row["purchases"],
        row["clients"],
        row["visitors"],
        row["purchasers"],
        row["queries"],
        row["texts"],
        row["devices"],
        row["several"],
    )
    return [{"what": what, "total": total} for what, total in zip(_WHAT, totals, strict=True)]


STATISTICS.add(
    Statistic(
        "overview",
        "how many events, sessions, clients, visitors and queries there are",
        "thesis Table 6.1",
        {
            "what": "anonymous and identified: sessions, by whether a visitor is known anywhere in them; clients: that "
            "sessions began on; purchasers: visitors with a purchase session",
            "total": "how many",
        },
        _overview_expression,
        _overview_finish,
    )
)


def _queries_expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    sessions = tables.sessions
    n = sessions.n_queries
    return sessions.group_by(["purchase", "device"]).aggregate(
        sessions=sessions.count(), queries=n.sum(), squares=(n * n).sum()
    )


def _queries_finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    finished = []
    for purchase in CLASSES:
        sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            if row["purchase"] is purchase:
                for device in (row["device"], ALL):
                    sums[device].update({name: row[name] for name in ("sessions", "queries", "squares")})
        for device in sorted_with_all(sums) if sums else ():
            of = sums[device]
            low, high = mean_interval(of["queries"], of["squares"], of["sessions"], options.confidence)
            finished.append(
                {
                    "purchase": purchase,
                    "device": device,
                    "sessions": of["sessions"],
                    "queries": of["queries"],
                    "per_session": of["queries"] / of["sessions"],
                    "low": low,
                    "high": high,
                    "share": share(of["queries"], sums[ALL]["queries"]),
                }
            )
    return finished


STATISTICS.add(
    Statistic(
        "queries",
        "queries per session, by class and device",
        "thesis Table 6.5",
        {
            "purchase": "class of sessions",
            "device": "of the first event; all together, too",
            "sessions": "of the class and device",
            "queries": "submitted in them",
            "per_session": "mean number",
            **INTERVAL,
            "low": "lower end of the interval, cut at 0; null where nothing can be said, as of one session",
            "share": "of the class's queries; null where it has none",
        },
        _queries_expression,
        _queries_finish,
    )
)


def _session_length_finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    finished = []
    for device, purchase, lengths in by_device_and_class(rows):
        whole = at_least = sum(n for _, n in lengths)
        for length, n in lengths:
            finished.append(
                {
                    "device": device,
                    "purchase": purchase,
                    "length": length,
                    "sessions": n,
                    "at_least": at_least,
                    **proportion(at_least, whole, options),
                }
            )
            at_least -= n
    return finished


STATISTICS.add(
    Statistic(
        "session-length",
        "share of sessions with at least so many actions, by device and class",
        "thesis Figure 6.2",
        {
            "device": "of the first event; all together, too",
            "purchase": "class of sessions",
            "length": "actions: pages, queries, and items put into and taken out of the basket",
            "sessions": "of exactly this length",
            "at_least": "of this length or longer",
            "share": "those of all sessions of the device and class",
            **INTERVAL,
        },
        counted_lengths,
        _session_length_finish,
    )
)


_PERCENT = (50, 90, 99)


def _session_length_quantiles_finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    return [
        {
            "device": device,
            "purchase": purchase,
            "sessions": (whole := sum(n for _, n in lengths)),
            "mean": sum(length * n for length, n in lengths) / whole,
            **{f"p{percent}": _quantile(lengths, percent, whole) for percent in _PERCENT},
            "max": lengths[-1][0],
        }
        for device, purchase, lengths in by_device_and_class(rows)
    ]


def _quantile(lengths: Sequence[tuple[int, int]], percent: int, whole: int) -> int:
    up_to = 0
    for length, n in lengths:
        up_to += n
        if 100 * up_to >= percent * whole:
            return length
    raise AssertionError("shares end at 1")


STATISTICS.add(
    Statistic(
        "session-length-quantiles",
        "mean and quantiles of session length, by device and class",
        "thesis section 6.4.1",
        {
            "device": "of the first event; all together, too",
            "purchase": "class of sessions",
            "sessions": "of the device and class",
            "mean": "actions per session",
            **{
                f"p{percent}": f"the smallest length with at least {percent} % of the sessions at or below"
                for percent in _PERCENT
            },
            "max": "the longest",
        },
        counted_lengths,
        _session_length_quantiles_finish,
    )
)


# Different queries: thesis Table 6.6.
#
# A query may be asked on several devices and in both classes, and is then one of each. (Table 6.6's numbers add up to
# those of the whole log, which they can only if every query was counted in one place alone.)
def _unique_queries_expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    import ibis

    queries = tables.queries.filter(tables.queries["query"] != "")
    asked = queries.group_by(["purchase", "device", "query"]).aggregate(n=queries.count())
    by_device = asked.group_by(["purchase", "device"]).aggregate(unique=asked.count(), queries=asked.n.sum())
    anywhere = asked.group_by(["purchase", "query"]).aggregate(n=asked.n.sum())
    together = anywhere.group_by("purchase").aggregate(unique=anywhere.count(), queries=anywhere.n.sum())
    together = together.mutate(device=ibis.literal(ALL)).select(by_device.columns)
    return by_device.mutate(one=True).union(together.mutate(one=False))


def _unique_queries_finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    finished = []
    for purchase in CLASSES:
        of_class = {row["device"] if row["one"] else ALL: row for row in rows if row["purchase"] is purchase}
        over_devices = sum(row["unique"] for row in of_class.values() if row["one"])
        for device in sorted_with_all(of_class) if of_class else ():
            row = of_class[device]
            finished.append(
                {
                    "purchase": purchase,
                    "device": device,
                    "unique": row["unique"],
                    "queries": row["queries"],
                    "share": share(row["unique"], over_devices),
                    "unique_share": share(row["unique"], row["queries"]),
                }
            )
    return finished


STATISTICS.add(
    Statistic(
        "unique-queries",
        "different queries, by class and device; in lower case, blanks made one",
        "thesis Table 6.6",
        {
            "purchase": "class of sessions",
            "device": "of the first event; all together, too",
            "unique": "different queries",
            "queries": "submitted, whose text the log has",
            "share": "unique of the sum of unique over the class's devices",
            "unique_share": "unique of the queries",
        },
        _unique_queries_expression,
        _unique_queries_finish,
    )
)


STATISTICS.add(over_time("week-days", "week_day", "start_dow", 7, "0 is Monday", "thesis Figure 6.3"))
