"""The rows of a description as tables of its page, with what may not be shown left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.report.intent_discretion import WEEK_DAYS, Discretion, interval, number, percent, signed
from diptych.report.intent_page import Cell, Table
from diptych.report.intent_series import label
from diptych.report.intent_transition_figure import LINKS, transition_order
from diptych.report.words import shorten

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
