"""A description as tables and charts, with what may not be shown left out (thesis section 6.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.shown import (
    Column,
    Discretion,
    Row,
    interval,
    measured,
    number,
    percent,
    signed,
)
from diptych.commerce.purchase_intent.statistics.describe import (
    ALL,
    CLASSES,
    ORDER,
    STATISTICS,
    Description,
)
from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table

WEEK_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LINKS: Mapping[str, tuple[str, str]] = {
    "strong": ("blue", "likely both ways"),
    "one-sided": ("orange", "likely there, hardly ever back"),
    "weak": ("olive", "hardly ever, either way"),
}
"""Kinds of links between devices: colour and meaning."""

_MOST_ROWS = 20  # of a table; the CSV file has all
_MOST_GROUPS = 10  # of a chart
_MOST_CURVES = 6
_LONG = 60  # characters of a name from a log
_NAMES = {True: "purchase", False: "no purchase"}
_COLOURS = {True: "blue", False: "orange"}


_GROUPS = (
    Column("Sessions", "sessions"),
    Column("Purchase sessions", "purchase_sessions"),
    Column("% of purchase sessions", "purchase_share", 1, 100.0),
    Column("% of others", "other_share", 1, 100.0),
    Column("Rate, %", "rate", 2, 100.0, ends=""),
    Column("Standardised", "standardised", 2, sign=True),
)
_BY_CLASS: Mapping[str, tuple[str, tuple[Column, ...]]] = {
    "session-length-quantiles": (
        "Session length in actions",
        (
            Column("Sessions", "sessions"),
            Column("Mean", "mean", 1),
            *(Column(name.upper(), name, 0) for name in ("p50", "p90", "p99")),
        ),
    ),
    "queries": (
        "Queries per session",
        (
            Column("Sessions", "sessions"),
            Column("Queries", "queries"),
            Column("Per session", "per_session", 2, ends=""),
            Column("% of queries", "share", 1, 100.0),
        ),
    ),
    "unique-queries": (
        "Different queries",
        (
            Column("Different", "unique"),
            Column("% of different", "share", 1, 100.0),
            Column("% different", "unique_share", 1, 100.0),
        ),
    ),
}


def description_tables(description: Description) -> list[Table]:
    """Return the tables of every statistic, in the order of the thesis; what is drawn alone comes as its values."""
    names = [name for name in description.tables if name != "session-length"]
    return [table for name in names for table in statistic_shown(description, name)[0]]


def statistic_shown(description: Description, name: str) -> tuple[list[Table], list[Chart]]:
    """Return the tables and charts of one statistic; what is drawn alone comes as its values, too."""
    rows = description.rows(name)
    tables, charts = (
        tables_of(name, rows, DescribeOptions(**description.about["options"])),
        charts_of(name, rows),
    )
    return tables or [chart.table() for chart in charts], charts


def tables_of(name: str, rows: Sequence[Row], options: DescribeOptions | None = None) -> list[Table]:
    """Return the tables of one statistic."""
    if not rows:
        return []
    discretion = Discretion.current()
    if name in ("channels", "devices"):
        ordered = sorted(rows, key=lambda row: (-row["sessions"], row[name.removesuffix("s")]))
        return [_groups(name.removesuffix("s"), discretion.rows(name, ordered), options or DescribeOptions())]
    shown = discretion.rows(name, rows)
    if name in _BY_CLASS:
        return [_by_class(*_BY_CLASS[name], shown)]
    if name in _TABLES:
        return [_TABLES[name](shown)]
    return [] if name in ORDER or discretion.hide_rates else [_plain(name, rows)]


def charts_of(name: str, rows: Sequence[Row]) -> list[Chart]:
    """Return the charts of one statistic."""
    return _CHARTS[name](rows) if rows and name in _CHARTS else []


def _overview(rows: Sequence[Row]) -> Table:
    """Thesis Table 6.1."""
    discretion, totals = Discretion.current(), {row["what"]: row["total"] for row in rows}
    lines = []
    for what, total in totals.items():
        part = "sessions " in f"{what} " and totals.get("sessions") and not discretion.small(total)
        share = percent(total / totals["sessions"]) if part and what != "sessions" else ""
        count = Cell(number(total), value=total) if what == "device types" else discretion.count(total)
        lines.append([Cell(what), count, Cell(share)])
    return Table("The log in numbers", ("What", "Total", "% of sessions"), lines)


def _by_class(caption: str, columns: Sequence[Column], rows: Sequence[Row]) -> Table:
    """Return a line per device, all of them together first, and columns for either class."""
    found = {(row["device"], row["purchase"]): row for row in rows}
    devices = sorted({row["device"] for row in rows}, key=lambda one: (one != ALL, one))
    columns = [one for one in columns if any(one.key in row for row in rows)]
    lines = []
    for device in devices[: _MOST_ROWS + 1]:
        line = [Cell("all devices" if device == ALL else _name(device))]
        for purchase in CLASSES:
            row = found.get((device, purchase))
            line += [one.cell(row) if row else Cell("0" if one.key == "sessions" else "–") for one in columns]
        lines.append(line)
    return Table(
        caption,
        ("Device", *(one.title for _ in CLASSES for one in columns)),
        lines,
        groups=(("", 1), ("purchase", len(columns)), ("no purchase", len(columns))),
        after=_further(len(devices) - len(lines), "devices"),
    )


def _groups(key: str, rows: Sequence[Row], options: DescribeOptions) -> Table:
    """Thesis Tables 6.2 and 6.4."""
    columns = [one for one in _GROUPS if one.key in rows[0]]
    lines = [[Cell(_name(row[key])), *(one.cell(row) for one in columns)] for row in rows[:_MOST_ROWS]]
    titles = [
        f"{one.title}, ddof {options.ddof}" if one.key == "standardised" else one.title for one in columns
    ]
    after = _further(len(rows) - len(lines), f"{key}s")
    return Table(f"{key.capitalize()}s of sessions", (key.capitalize(), *titles), lines, after=after)


def _device_counts(rows: Sequence[Row]) -> Table:
    """Thesis Table 6.3."""
    found = {(row["devices"], row["purchaser"]): row for row in rows}
    names = sorted({row["devices"] for row in rows}, key=lambda one: (one != "> 1", len(one), one))
    lines = []
    for devices in names:
        shares = (measured(found.get((devices, one), {}), "share", 1, 100.0) for one in CLASSES)
        lines.append([Cell(f"{devices} {'device' if devices in ('1', '> 1') else 'devices'}"), *shares])
    return Table("Devices per visitor, in %", ("Devices", "Purchasers", "Other visitors"), lines)


def _transitions(rows: Sequence[Row]) -> Table:
    """Thesis Figure 6.5 as a matrix: from a line's device to a column's, the more probable the darker."""
    parts: Counter[str] = Counter()
    for row in rows:
        parts.update(dict.fromkeys((row["from_device"], row["to_device"]), row["transitions"]))
    order = sorted(parts, key=lambda one: (-parts[one], one))
    devices = order[:_MOST_GROUPS]
    found: dict[tuple[str, str], Row] = {(row["from_device"], row["to_device"]): row for row in rows}
    never: Row = {"share": 0.0, "link": ""}
    lines = [
        [Cell(_name(one)), *(_transition(found.get((one, other), never)) for other in devices)]
        for one in devices
    ]
    kinds = {row["link"] for row in rows if row["share"] is not None}
    meanings = "; ".join(f"{kind}: {meaning}" for kind, (_, meaning) in LINKS.items() if kind in kinds)
    further = _further(len(order) - len(devices), "devices")
    return Table(
        "Probability of the next device, in %",
        ("From, to", *map(_name, devices)),
        lines,
        after=". ".join(filter(None, (meanings, further))),
    )


def _transition(row: Row) -> Cell:
    share, link = row["share"], row["link"] if row["link"] in LINKS else ""
    if share is None:
        return Cell("–")
    note = "; ".join(filter(None, (interval(row.get("low"), row.get("high"), 1, 100.0), link)))
    return Cell(percent(share), note, share, LINKS[link][0] if link else "green", value=100 * share)


def _plain(name: str, rows: Sequence[Row]) -> Table:
    """Return a statistic of a plug-in: its rows as they are, but for those with a small count."""
    meanings = STATISTICS.get(name).columns if name in STATISTICS.names() else dict.fromkeys(rows[0], "")
    shown = [row for row in Discretion.current().rows(name, rows) if None not in row.values()][:_MOST_ROWS]
    values = [[row.get(column) for column in meanings] for row in shown]
    texts = [
        [f"{one:,.4g}" if isinstance(one, float) else _name(str(one)) for one in line] for line in values
    ]
    meant = "; ".join(f"{column}: {meaning}" for column, meaning in meanings.items() if meaning)
    return Table.of(
        name, f"{meant} {_further(len(rows) - len(shown), 'rows')}".strip(), tuple(meanings), texts
    )


def _name(name: str) -> str:
    return f"{name[:_LONG]}…" if len(name) > _LONG else name or "(empty)"


def _further(n: int, what: str) -> str:
    return f"{n:,} further {what} are in the CSV file." if n > 0 else ""


_TABLES: Mapping[str, Callable[[Sequence[Row]], Table]] = {
    "overview": _overview,
    "devices-per-visitor": _device_counts,
    "device-transitions": _transitions,
}


def _scaled(rows: Iterable[Row], name: str) -> list[float | None]:
    return [None if row.get(name) is None else 100 * row[name] for row in rows]


def _lengths(rows: Sequence[Row]) -> list[Chart]:
    """Thesis Figure 6.2: a chart per device, those with most sessions."""
    sessions: Counter[str] = Counter()
    for row in rows:
        sessions[row["device"]] += row["sessions"]
    devices = sorted(sessions, key=lambda one: (one != ALL, -sessions[one], one))
    curves: dict[tuple[str, bool], dict[int, float]] = {}
    shown = Discretion.current().rows("session-length", rows)
    for row in sorted(shown, key=lambda row: row["length"]):
        if row["length"] >= 1:  # 0 has no place on a logarithmic axis
            curve = curves.setdefault((row["device"], row["purchase"]), {})
            curve.setdefault(1, 100 * row["share"])  # all are at least as long as the shortest
            curve[row["length"]] = 100 * row["share"]
    charts = []
    for device in devices[:1] if len(devices) == 2 else devices[:_MOST_CURVES]:  # one device is all there is
        if not any((device, purchase) in curves for purchase in CLASSES):
            continue
        lines = []
        for of in dict.fromkeys((ALL, device)):
            for purchase in CLASSES:
                if curve := curves.get((of, purchase), {}):
                    name = _NAMES[purchase] + (", all devices" if of != device else "")
                    look: dict[str, Any] = {"colour": _COLOURS[purchase], "pale": of != device}
                    lines.append(Series(name, [*curve.values()], [*curve], mark="step", **look))
        lines += [Series(name, [level], mark="level") for name, level in (("P50", 50.0), ("P90", 10.0))]
        title = "Session length" if device == ALL else f"Session length: {_name(device)}"
        charts.append(Chart(title, lines, "actions", "% of sessions at least so long", log="xy"))
    return charts


def _over_time(rows: Sequence[Row], name: str, key: str, places: int) -> list[Chart]:
    """Thesis Figures 6.3 and 6.4."""
    lines, is_day = [], key == "week_day"
    shown = Discretion.current().rows(name, rows)
    for purchase in CLASSES:
        found = {row[key]: row for row in shown if row["purchase"] == purchase}
        ordered = [found.get(place, {}) for place in range(places)]
        y, low, high = (_scaled(ordered, column) for column in ("share", "low", "high"))
        if any(value is not None for value in y):
            more: dict[str, Any] = {"mark": "bar"} if is_day else {"x": range(places)}
            more |= {"low": low, "high": high} if any(end is not None for end in low) else {}
            lines.append(Series(_NAMES[purchase], y, colour=_COLOURS[purchase], **more))
    if not lines:
        return []
    lines.append(Series("all alike", [100 / places], mark="level"))
    title, days = f"{'Week day' if is_day else 'Hour'} of the start", [day[:3] for day in WEEK_DAYS]
    return [
        Chart(title, lines, "" if is_day else "hour", "% of the class's sessions", days if is_day else ())
    ]


def _rates(rows: Sequence[Row], key: str) -> list[Chart]:
    """Shares of both classes by group, and conversion rates or, where those are hidden, standardised ones."""
    discretion = Discretion.current()
    ordered = sorted(rows, key=lambda row: (-row["sessions"], row[key]))[:_MOST_GROUPS]
    shown = discretion.rows(f"{key}s", ordered)
    names = [_name(row[key]) for row in shown]

    def chart(title: str, series: Sequence[Series], x: str) -> Chart:
        return Chart(title, series, x, "", names, across=True)

    bars = []
    for purchase, column in ((True, "purchase_share"), (False, "other_share")):
        look: dict[str, Any] = {
            "colour": _COLOURS[purchase],
            "texts": [percent(row[column]) for row in shown],
        }
        bars.append(Series(_NAMES[purchase], _scaled(shown, column), mark="bar", **look))
    charts = [chart(f"{key.capitalize()}s of both classes", bars, "% of the class's sessions")]
    if discretion.hide_rates:
        values = [row["standardised"] for row in shown]
        points = [Series("", values, mark="bar", texts=[signed(value) for value in values])]
        rates = chart("Standardised conversion rate", points, "deviations from the mean rate")
    else:
        values, low, high = (_scaled(shown, column) for column in ("rate", "low", "high"))
        texts = [number(value, 1) for value in values]
        points = [Series("conversion rate", values, low=low, high=high, mark="point", texts=texts)]
        buys, sessions = (sum(row[column] for row in rows) for column in ("purchase_sessions", "sessions"))
        if sessions and not discretion.small(buys, sessions - buys):
            points.append(Series("of all", [100 * buys / sessions], mark="level"))
        rates = chart("Conversion rate", points, "% of the group's sessions")
    return [*charts, *([rates] if any(value is not None for value in values) else [])]


_CHARTS: Mapping[str, Callable[[Sequence[Row]], list[Chart]]] = {
    "session-length": _lengths,
    "week-days": lambda rows: _over_time(rows, "week-days", "week_day", 7),
    "hours": lambda rows: _over_time(rows, "hours", "hour", 24),
    "channels": lambda rows: _rates(rows, "channel"),
    "devices": lambda rows: _rates(rows, "device"),
}
