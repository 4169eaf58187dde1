"""The rows of a description as tables of its page, with what may not be shown left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from diptych.core.table import Cell, Table
from diptych.report.intent_content import (
    WEEK_DAYS,
    Discretion,
    interval,
    label,
    listed,
    number,
    percent,
    signed,
)
from diptych.report.intent_figures import ALL, LINKS, transition_order
from diptych.report.page import shorten

Row = Mapping[str, Any]

MOST_ROWS = 20
"""Groups that a table shows; the rest is one line, and the CSV file has all."""

MOST_DEVICES = 12
"""Devices of a matrix."""

_OF_SESSIONS = (
    "anonymous sessions",
    "identified sessions",
    "purchase sessions",
    "sessions with several visitors",
)
_BY_CLASS = ("purchase sessions", "purchasers")
_LONG = 60  # characters of a name from a log
_NONE = Cell("–")
_COUNTS = frozenset(
    {"clients", "purchase_sessions", "purchasers", "queries", "sessions", "transitions", "unique", "visitors"}
)


def overview_table(rows: Sequence[Row], discretion: Discretion) -> Table:
    """Of ``overview``: thesis Table 6.1."""
    sessions = next((row["total"] for row in rows if row["what"] == "sessions"), 0)
    cells = []
    for row in rows:
        if discretion.hide_rates and row["what"] in _BY_CLASS:
            continue
        of_all = row["what"] in _OF_SESSIONS and sessions and not discretion.small(row["total"])
        shown = number(row["total"]) if row["what"] == "device types" else discretion.count(row["total"])
        cells.append(
            (Cell(row["what"]), Cell(shown), Cell(f"{percent(row['total'] / sessions)}" if of_all else ""))
        )
    return Table("The log in numbers", ("What", "Total", "% of sessions"), cells)


def time_table(rows: Sequence[Row], key: str, discretion: Discretion) -> Table:
    """Of ``week-days`` or ``hours``: what their figure shows."""
    days = key == "week_day"
    names = WEEK_DAYS if days else tuple(f"{hour} to {hour + 1} h" for hour in range(24))
    found = {(row["purchase"], row[key]): row for row in rows}
    cells = [
        (
            Cell(name),
            *(
                _share_cell(found.get((purchase, place)), "sessions", discretion)
                for purchase in (True, False)
            ),
        )
        for place, name in enumerate(names)
    ]
    return Table(
        f"Sessions by {'week day' if days else 'hour'}, in % of their class",
        ("Week day" if days else "Hour", "Purchase", "No purchase"),
        cells,
        folded=True,
    )


def group_table(rows: Sequence[Row], key: str, ddof: int, discretion: Discretion) -> Table:
    """Of ``channels`` or ``devices``: thesis Tables 6.2 and 6.4."""
    order = sorted(rows, key=lambda row: (-row["sessions"], row[key]))
    shown, rest = order[:MOST_ROWS], order[MOST_ROWS:]
    hidden = discretion.hide_rates
    counts = () if hidden else ("Sessions", "Purchase sessions")
    rates = () if hidden else ("Rate, %",)
    cells = []
    for row in shown:
        buy, other = row["purchase_sessions"], row["sessions"] - row["purchase_sessions"]
        small = discretion.small(buy, other)
        head = [Cell(shown_name(row[key]))]
        if not hidden:
            head += [
                Cell(discretion.count(row["sessions"])),
                Cell("–" if small and not discretion.small(buy) else discretion.count(buy)),
            ]
        head += [_NONE if small else Cell(percent(row[name])) for name in ("purchase_share", "other_share")]
        if not hidden:
            head += [_NONE if small else Cell(percent(row["rate"], 2), interval(row["low"], row["high"], 2))]
        cells.append((*head, _NONE if small else Cell(signed(row["standardised"]))))
    further = ""
    if rest:
        further = further_text(len(rest), f"{key}s") + (
            "" if hidden else f" They have {number(sum(row['sessions'] for row in rest))} sessions."
        )
    return Table(
        f"{key.capitalize()}s of sessions",
        (
            key.capitalize(),
            *counts,
            "% of purchase sessions",
            "% of others",
            *rates,
            f"Standardised, ddof {ddof}",
        ),
        cells,
        after=further,
    )


def device_count_table(rows: Sequence[Row], discretion: Discretion) -> Table:
    """Of ``devices-per-visitor``: thesis Table 6.3."""
    found = {(row["devices"], row["purchaser"]): row for row in rows}
    counts = list(dict.fromkeys(row["devices"] for row in rows))
    cells = [
        (
            Cell(f"{devices} {'device' if devices in ('1', '> 1') else 'devices'}"),
            *(
                _share_cell(found.get((devices, purchaser)), "visitors", discretion)
                for purchaser in (True, False)
            ),
        )
        for devices in sorted(counts, key=lambda one: (one != "> 1", len(one), one))
    ]
    return Table("Devices per visitor, in %", ("Devices", "Purchasers", "Other visitors"), cells)


def transition_table(rows: Sequence[Row], discretion: Discretion) -> Table:
    """Of ``device-transitions``: the matrix, from a line's device to a column's."""
    order = transition_order(rows)
    devices = order[:MOST_DEVICES]
    found = {(row["from_device"], row["to_device"]): row for row in rows}
    cells = []
    for one in devices:
        line = [Cell(shown_name(one))]
        for other in devices:
            row = found.get((one, other))
            if row is None or not row["transitions"]:
                line.append(Cell("0"))
            elif discretion.small(row["transitions"]):
                line.append(_NONE)
            else:
                colour = LINKS[row["link"]][0] if row["link"] in LINKS else "blue"
                ends = "" if discretion.hide_rates else interval(row["low"], row["high"])
                line.append(Cell(percent(row["share"]), ends, row["share"], colour))
        cells.append(tuple(line))
    return Table(
        "Probability of the next device, in %",
        ("From, to", *(label(device, 16) for device in devices)),
        cells,
        after=further_text(len(order) - len(devices), "devices"),
    )


def plain_table(name: str, rows: Sequence[Row], meanings: Mapping[str, str], discretion: Discretion) -> Table:
    """Of a statistic that this page knows nothing about: its rows as they are, but for those of small "
    "counts."""
    columns = list(meanings) or (list(rows[0]) if rows else [])
    shown = [row for row in rows if not discretion.small(*(row[one] for one in columns if one in _COUNTS))]
    cells = [tuple(_plain(row[column]) for column in columns) for row in shown[:MOST_ROWS]]
    said = "; ".join(f"{column}: {meaning}" for column, meaning in meanings.items())
    further = further_text(len(rows) - len(cells), "rows")
    return Table(
        name, columns, cells, after=" ".join(part for part in (f"{said}." if said else "", further) if part)
    )


def _plain(value: Any) -> Cell:
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, float):
        return Cell(f"{value:,.4g}")
    return Cell("–" if value is None else shown_name(str(value)))


def _share_cell(row: Row | None, counted: str, discretion: Discretion) -> Cell:
    if row is None or discretion.small(row[counted]):
        return _NONE
    return Cell(percent(row["share"]), "" if discretion.hide_rates else interval(row["low"], row["high"]))


def further_text(n: int, what: str) -> str:
    """Where to find what a table leaves out; nothing for nothing."""
    return f"{n:,} further {what} are in the CSV file." if n > 0 else ""


def shown_name(name: str) -> str:
    """A name from a log as tables show it."""
    return shorten(name, _LONG) or "(empty)"


def length_table(quantiles: Sequence[Row], discretion: Discretion) -> Table:
    """Of ``session-length-quantiles``: thesis Figure 6.2 in numbers."""

    def cells(row: Row) -> tuple[Cell, ...]:
        counts = () if discretion.hide_rates else (Cell(discretion.count(row["sessions"])),)
        if discretion.small(row["sessions"]):
            return (*counts, *(_NONE,) * 4)
        quantiles = (
            _NONE if discretion.few_beyond(level, row["sessions"]) else Cell(number(row[name]))
            for name, level in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
        )
        return (*counts, Cell(number(row["mean"], 1)), *quantiles)

    counts = () if discretion.hide_rates else ("Sessions",)
    columns = (*counts, "Mean", "P50", "P90", "P99")
    return _class_table("Session length in actions", quantiles, columns, cells, discretion)


def query_table(rows: Sequence[Row], discretion: Discretion) -> Table:
    """Of ``queries``: thesis Table 6.5."""
    hidden = discretion.hide_rates
    columns = (
        ("Per session", "% of queries") if hidden else ("Sessions", "Queries", "Per session", "% of queries")
    )

    def cells(row: Row) -> tuple[Cell, ...]:
        small = discretion.small(row["sessions"])
        ends = "" if hidden else interval(row["low"], row["high"], 2, 1.0)
        values = (
            _NONE if small else Cell(number(row["per_session"], 2), ends),
            _NONE if small else Cell(percent(row["share"])),
        )
        if hidden:
            return values
        return (
            Cell(discretion.count(row["sessions"])),
            _NONE if small else Cell(number(row["queries"])),
            *values,
        )

    return _class_table("Queries per session", rows, columns, cells, discretion)


def unique_table(rows: Sequence[Row], discretion: Discretion) -> Table:
    """Of ``unique-queries``: thesis Table 6.6."""
    hidden = discretion.hide_rates
    columns = ("% of different", "% different") if hidden else ("Different", "% of different", "% different")

    def cells(row: Row) -> tuple[Cell, ...]:
        if discretion.small(row["queries"]):
            return (_NONE,) * len(columns)
        counts = () if hidden else (Cell(number(row["unique"])),)
        return (
            *counts,
            Cell(percent(row["share"])),
            Cell(percent(row["unique_share"]) if row["queries"] else "–"),
        )

    return _class_table("Different queries", rows, columns, cells, discretion)


def _class_table(
    caption: str,
    rows: Sequence[Row],
    columns: Sequence[str],
    cells: Callable[[Row], tuple[Cell, ...]],
    discretion: Discretion,
) -> Table:
    """A line per device, all of them together first; the first column counts, unless counts are left out."""
    found = {(row["device"], row["purchase"]): row for row in rows}
    devices = sorted({row["device"] for row in rows}, key=lambda one: (one != ALL, one))
    shown = devices[: MOST_ROWS + 1]
    nobody = (_NONE if discretion.hide_rates else Cell("0"), *(_NONE,) * (len(columns) - 1))
    lines = []
    for device in shown:
        buy, other = (
            cells(found[device, purchase]) if (device, purchase) in found else nobody
            for purchase in (True, False)
        )
        lines.append((_device(device), *buy, *other))
    return Table(
        caption,
        ("Device", *columns, *columns),
        lines,
        groups=(("", 1), ("purchase", len(columns)), ("no purchase", len(columns))),
        after=further_text(len(devices) - len(shown), "devices"),
    )


def _device(name: str) -> Cell:
    return Cell("all devices" if name == ALL else shown_name(name))


_WORKING_DAYS = range(5)
_EVENING = range(18, 23)
_MOST_LINKS = 4
_INTENT_FINDINGS_LONG = 30  # characters of a name from a log


def length_findings(quantiles: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``session-length-quantiles``: which class is longer, and on which devices."""
    shown = [row for row in quantiles if not discretion.small(row["sessions"])]
    of_all = {row["purchase"]: row for row in shown if row["device"] == ALL}
    if True not in of_all:
        return ["No session with a purchase can be compared with the others."] if quantiles else []
    if False not in of_all:
        return ["Every session has a purchase, so there is nothing to compare with."]
    buy, other = of_all[True], of_all[False]
    if discretion.few_beyond(0.9, buy["sessions"], other["sessions"]):
        return ["There are too few sessions of a class to compare lengths."]
    numbers = (
        f"P50 {buy['p50']:,} actions against {other['p50']:,}, P90 {buy['p90']:,} against {other['p90']:,}"
    )
    if buy["p50"] > other["p50"]:
        said = [f"Purchase sessions are longer: {numbers}."]
    elif buy["p50"] < other["p50"]:
        said = [f"Purchase sessions are shorter: {numbers}."]
    else:
        said = [f"Half of the sessions of both classes are equally long: {numbers}."]
    devices = [row for row in shown if row["device"] != ALL and not row["purchase"]]
    if len(devices) > 1:
        longest, shortest = (
            choose(devices, key=lambda row: (row["mean"], row["device"])) for choose in (max, min)
        )
        said.append(
            f"Without a purchase, sessions are longest on {_name(longest['device'])} (mean "
            f"{longest['mean']:.1f}) and shortest on {_name(shortest['device'])} ({shortest['mean']:.1f})."
        )
    return said


def week_day_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``week-days``: the busiest days of both classes, and the working week."""
    parts = []
    for purchase, name in ((True, "Purchase sessions"), (False, "others")):
        days = _shown(rows, purchase, discretion)
        if len(days) == 7:
            best = sorted(days, key=lambda row: (-row["share"], row["week_day"]))
            parts.append(
                f"{name} are most frequent on {WEEK_DAYS[best[0]['week_day']]} ({percent(best[0]['share'])} "
                f"%), least on {WEEK_DAYS[best[-1]['week_day']]} ({percent(best[-1]['share'])} %)"
            )
    if len(parts) < 2:
        return [f"{parts[0]}."] if parts and parts[0].startswith("Purchase") else []
    buy, other = (_sum(rows, "week_day", _WORKING_DAYS, purchase) for purchase in (True, False))
    return [
        f"{'; '.join(parts)}.",
        f"Monday to Friday hold {percent(buy)} % of purchase sessions and {percent(other)} % of others; five "
        f"days of seven would be {percent(5 / 7)} %.",
    ]


def hour_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``hours``: the busiest hour and the evening."""
    buy, other = (_shown(rows, purchase, discretion) for purchase in (True, False))
    if not buy or not other:
        return []
    best = max(buy, key=lambda row: (row["share"], -row["hour"]))
    shares = [_sum(rows, "hour", _EVENING, purchase) for purchase in (True, False)]
    return [
        f"Most purchase sessions start from {best['hour']} to {best['hour'] + 1} h ({percent(best['share'])} "
        f"%). From {_EVENING.start} to {_EVENING.stop} h start {percent(shares[0])} % of purchase sessions and "
        f"{percent(shares[1])} % of others."
    ]


def group_findings(rows: Sequence[Row], key: str, discretion: Discretion) -> list[str]:
    """Of ``channels`` or ``devices``: the two whose rates are furthest apart for sure, and who favours the better."""
    shown = [row for row in rows if _open(row, discretion)]
    if len(shown) < 2 or not any(row["purchase_sessions"] for row in shown):
        return []
    best = max(shown, key=lambda row: (row["low"], row[key]))
    worst = min(shown, key=lambda row: (row["high"], row[key]))
    if best["low"] <= worst["high"]:
        return [f"No {key} is to be told from another by its conversion rate: all intervals overlap."]
    more, less = (f"“{_name(row[key])}”" for row in (best, worst))
    said = [
        f"{more} clearly converts more often ({_rate(best, discretion)}) than {less} ({_rate(worst, discretion)})."
    ]
    if best["other_share"]:
        said.append(
            f"{more} is {best['purchase_share'] / best['other_share']:.1f} times as frequent among purchase sessions "
            f"({percent(best['purchase_share'])} %) as among others ({percent(best['other_share'])} %)."
        )
    return said


def device_count_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``devices-per-visitor``: who uses more than one."""
    several = {
        row["purchaser"]: row
        for row in rows
        if row["devices"] == "> 1" and not discretion.small(row["visitors"])
    }
    if set(several) != {True, False}:
        return []
    buy, other = several[True], several[False]
    said = (
        f"{percent(buy['share'])} % of purchasers use more than one device, of other visitors "
        f"{percent(other['share'])} %"
    )
    if buy["low"] <= other["high"] and other["low"] <= buy["high"]:
        said += "; the intervals overlap"
    return [f"{said}."]


def transition_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``device-transitions``: staying, the strongest switch, and kinds of links."""
    shown = [row for row in rows if row["transitions"] and not discretion.small(row["transitions"])]
    stays = [row for row in shown if row["from_device"] == row["to_device"]]
    switches = [row for row in shown if row["from_device"] != row["to_device"]]
    said = []
    if stays:
        best = max(stays, key=lambda row: (row["share"], row["from_device"]))
        said.append(
            f"Before a purchase, who was on {_name(best['from_device'])} stays there in "
            f"{percent(best['share'])} % of cases."
        )
    if not switches:
        return said
    strongest = max(switches, key=lambda row: (row["share"], row["from_device"], row["to_device"]))
    said.append(
        f"The most probable switch is from {_name(strongest['from_device'])} to "
        f"{_name(strongest['to_device'])} ({percent(strongest['share'])} %)."
    )
    kinds = []
    for link, between in (("strong", "–"), ("one-sided", " → ")):
        pairs: dict[frozenset[str], Row] = {}
        for row in sorted(switches, key=lambda row: -row["share"]):
            if row["link"] == link:
                pairs.setdefault(frozenset((row["from_device"], row["to_device"])), row)
        if pairs:
            names = [
                f"{_name(row['from_device'])}{between}{_name(row['to_device'])}" for row in pairs.values()
            ]
            more = [f"{len(names) - _MOST_LINKS} more"] if len(names) > _MOST_LINKS else []
            kinds.append(f"{link}: {listed([*names[:_MOST_LINKS], *more])}")
    return [*said, f"Links that are {'; '.join(kinds)}."] if kinds else said


def query_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``queries``: who searches more."""
    of_all = {
        row["purchase"]: row for row in rows if row["device"] == ALL and not discretion.small(row["sessions"])
    }
    if set(of_all) != {True, False}:
        return []
    buy, other = (of_all[purchase]["per_session"] for purchase in (True, False))
    if not buy and not other:
        return ["There are no queries in this log."]
    more = f", {buy / other:.1f} times as many" if other and buy > other else ""
    return [f"A purchase session has {number(buy, 2)} queries, another one {number(other, 2)}{more}."]


def unique_findings(rows: Sequence[Row], discretion: Discretion) -> list[str]:
    """Of ``unique-queries``: whose queries repeat themselves."""
    of_all = {
        row["purchase"]: row
        for row in rows
        if row["device"] == ALL and row["queries"] and not discretion.small(row["queries"], row["unique"])
    }
    if set(of_all) != {True, False}:
        return []
    buy, other = (of_all[purchase]["unique_share"] for purchase in (True, False))
    return [
        f"Different queries are {percent(buy)} % of all queries in purchase sessions and {percent(other)} % in "
        "others; this share falls by itself the more queries there are."
    ]


def _open(row: Row, discretion: Discretion) -> bool:
    """Whether a group's rate may be shown."""
    return not discretion.small(row["purchase_sessions"], row["sessions"] - row["purchase_sessions"])


def _rate(row: Row, discretion: Discretion) -> str:
    if discretion.hide_rates or row["rate"] is None:
        return f"standardised {signed(row['standardised'])}"
    return f"{percent(row['rate'], 2)} %"


def _shown(rows: Sequence[Row], purchase: bool, discretion: Discretion) -> list[Row]:
    """Rows of a class that may be shown; of a class without sessions there is no share."""
    return [
        row
        for row in rows
        if row["purchase"] == purchase and row["share"] is not None and not discretion.small(row["sessions"])
    ]


def _sum(rows: Sequence[Row], key: str, places: range, purchase: bool) -> float:
    return math.fsum(row["share"] for row in rows if row["purchase"] == purchase and row[key] in places)


def _name(name: str) -> str:
    return label(name, _INTENT_FINDINGS_LONG)
