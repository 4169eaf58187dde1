"""Where a described log comes from: what its import kept and dropped, rule by rule, and its events by day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from diptych.report.drawing import BLUE
from diptych.report.intent_discretion import WEEK_DAYS, listed, number, percent, sentence
from diptych.report.intent_page import Block, Cell, Panels, Section, Table
from diptych.report.intent_series import panel
from diptych.report.words import shorten

_LONG = 300  # characters of a note


def import_section(about: Mapping[str, Any]) -> Section:
    """The section of an import."""
    read, kept = about["rows_read"], about["events"]
    rows = [
        (
            Cell(one["rule"]),
            Cell(number(one["dropped"])),
            Cell(percent(one["dropped"] / read, 2) if read else "–"),
            Cell(shorten(str(one["description"]), _LONG), words=True),
        )
        for one in about["rules"]
    ]
    blocks: list[Block] = []
    days = about.get("events_by_day") or {}
    if len(days) > 1:
        blocks.append(Panels([day_figure(days)], 24.0))
    if rows:
        blocks.append(
            Table("Rules and what they dropped", ("Rule", "Events", "% of rows", "What it drops"), rows)
        )
    dropped = read - kept
    said = f"{number(kept)} of {number(read)} rows are events of the log"
    return Section(
        "import",
        "What was left out",
        [
            f"{said}; {number(dropped)} were dropped ({percent(dropped / read, 2)} %)."
            if dropped
            else f"{said}."
        ],
        f"Read as {shorten(str(about['importer']), 80)}. Every row that was read is an event or counted by the "
        "rule that dropped it.",
        blocks,
        [sentence(str(note)) for note in [*about["notes"], *uneven_days(days)]],
    )


def day_figure(days: Mapping[str, int]) -> str:
    """Events per local day, days without any among them, as ``<svg>``."""
    counts = list(days.values())
    with panel("days", size=(4.8, 2.2)) as drawing:
        axes = drawing.axes
        axes.bar(range(len(counts)), counts, 0.8 if len(counts) <= 60 else 1.0, color=BLUE, alpha=0.9)
        places = sorted({0, len(counts) // 2, len(counts) - 1})
        names = list(days)
        labels = axes.set_xticks(places, [names[place] for place in places])
        labels[0].label1.set_horizontalalignment("left")
        labels[-1].label1.set_horizontalalignment("right")
        axes.tick_params(axis="x", length=0)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set(title="Events by day", ylabel="events")
        least, most = (
            min(days, key=lambda day: (days[day], day)),
            min(days, key=lambda day: (-days[day], day)),
        )
        drawing.summary = (
            f"Events by day, {names[0]} to {names[-1]}: least on {least} ({days[least]:,}), most on {most} "
            f"({days[most]:,})."
        )
    return drawing.svg


def uneven_days(days: Mapping[str, int]) -> list[str]:
    """A note where the log does not hold every week day equally often, or nothing."""
    counts = dict.fromkeys(range(7), 0)
    for day in days:
        counts[date.fromisoformat(day).weekday()] += 1
    most = max(counts.values())
    more = [WEEK_DAYS[place] for place, count in counts.items() if count == most]
    if not days or len(more) == 7:
        return []
    others = [count for count in counts.values() if count != most]
    rest = " to ".join(map(str, dict.fromkeys((min(others), max(others)))))
    times = f"{most} {'time' if most == 1 else 'times'}"
    return [f"{listed(more)} {'is' if len(more) == 1 else 'are'} in the log {times}, other week days {rest}"]
