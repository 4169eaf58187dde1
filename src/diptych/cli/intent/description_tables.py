"""A description on a terminal: compact tables, and sentences for what needs a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diptych.cli.console import print_table, say

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.statistics import Description

__all__ = ["show_description"]

_Rows = Sequence[Mapping[str, Any]]


def show_description(description: Description) -> None:
    """Print the compact tables whole, of the others the most telling lines; then notes and protocol."""
    from diptych.report.intent_discretion import Discretion

    for name in description.tables:
        if name in _TABLES and description.rows(name):
            _TABLES[name](name, description.rows(name))
        elif name in _FINDINGS:
            for finding in _findings(name)(description.rows(name), Discretion(least=1)):
                say(finding)
    for note in description.about["notes"]:
        say(note)
    say(description.line())


def _overview(name: str, rows: _Rows) -> None:
    print_table(
        "", ("what", "total"), [(row["what"], f"{row['total']:,}") for row in rows], numbers=("total",)
    )


def _groups(name: str, rows: _Rows) -> None:
    from diptych.report.intent_discretion import interval, percent, signed

    key = name.removesuffix("s")
    print_table(
        "",
        (key, "sessions", "of purchase %", "of others %", "rate %", "interval", "standardised"),
        [
            (
                row[key],
                f"{row['sessions']:,}",
                percent(row["purchase_share"]),
                percent(row["other_share"]),
                percent(row["rate"], 2),
                interval(row["low"], row["high"], 2),
                signed(row["standardised"]),
            )
            for row in rows
        ],
        numbers=("sessions", "of purchase %", "of others %", "rate %", "interval", "standardised"),
    )


def _device_counts(name: str, rows: _Rows) -> None:
    from diptych.report.intent_discretion import interval, percent

    print_table(
        "",
        ("visitors", "devices", "number", "%", "interval"),
        [
            (
                "purchasers" if row["purchaser"] else "others",
                row["devices"],
                f"{row['visitors']:,}",
                percent(row["share"]),
                interval(row["low"], row["high"]),
            )
            for row in rows
        ],
        numbers=("devices", "number", "%", "interval"),
    )


def _queries(name: str, rows: _Rows) -> None:
    from diptych.report.intent_discretion import interval, number, percent

    print_table(
        "",
        ("sessions", "device", "number", "queries", "per session", "interval", "% of queries"),
        [
            (
                "purchase" if row["purchase"] else "others",
                row["device"],
                f"{row['sessions']:,}",
                f"{row['queries']:,}",
                number(row["per_session"], 3),
                interval(row["low"], row["high"], 3, 1.0),
                percent(row["share"]),
            )
            for row in rows
        ],
        numbers=("number", "queries", "per session", "interval", "% of queries"),
    )


_TABLES: Mapping[str, Callable[[str, _Rows], None]] = {
    "overview": _overview,
    "channels": _groups,
    "devices": _groups,
    "devices-per-visitor": _device_counts,
    "queries": _queries,
}

_FINDINGS = ("session-length-quantiles", "week-days", "hours", "device-transitions", "unique-queries")


def _findings(name: str) -> Callable[..., list[str]]:
    from diptych.report import intent_findings as found

    of: dict[str, Callable[..., list[str]]] = {
        "session-length-quantiles": found.length_findings,
        "week-days": found.week_day_findings,
        "hours": found.hour_findings,
        "device-transitions": found.transition_findings,
        "unique-queries": found.unique_findings,
    }
    return of[name]
