"""A description of a log as a page: what sets sessions with a purchase apart (thesis section 6.4)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.statistics import JOURNEYS, ORDER, STATISTICS, DescribeOptions
from diptych.core.errors import MismatchError
from diptych.report import intent_description_tables as tables_of
from diptych.report import intent_findings as found
from diptych.report.intent_class_tables import length_table, query_table, unique_table
from diptych.report.intent_discretion import Discretion, number, percent, sentence
from diptych.report.intent_group_figures import CLASS_LEGEND, MOST_GROUPS, class_bars
from diptych.report.intent_group_sections import Tables, channel_section, device_section
from diptych.report.intent_import import import_section
from diptych.report.intent_length_figures import ALL, length_figures, shown_devices
from diptych.report.intent_page import Block, Headline, Legend, Page, Panels, Section, write_page
from diptych.report.intent_time_figures import hour_figure, week_day_figure
from diptych.report.intent_transition_figure import (
    LINKS,
    MOST_ARROWS,
    MOST_NODES,
    transition_figure,
    transition_order,
)
from diptych.report.words import shorten

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.statistics import Description
    from diptych.data.logs.log import Log


DEFAULTS = DescribeOptions()


def described_sections(
    tables: Tables,
    discretion: Discretion,
    options: DescribeOptions = DEFAULTS,
    meanings: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Section]:
    """A section per subject that has rows, in the order of the thesis; what no section knows comes last."""
    sections = [section for make in SECTIONS if (section := make(tables, discretion, options)) is not None]
    strange = [name for name, rows in tables.items() if name not in ORDER and rows]
    if strange and not discretion.hide_rates:
        plain = [
            tables_of.plain_table(name, tables[name], (meanings or {}).get(name, {}), discretion)
            for name in sorted(strange)
        ]
        sections.append(Section("further", "Further statistics", blocks=plain))
    return sections


def _overview(tables: Tables, discretion: Discretion, _: DescribeOptions) -> Section | None:
    rows = tables.get("overview")
    if not rows:
        return None
    return Section(
        "overview",
        "Overview",
        protocol="A session with somebody known in it, even if only at its end, is identified; others are anonymous.",
        blocks=[tables_of.overview_table(rows, discretion)],
        notes=[
            "The thesis's own log: 94,402,590 sessions, 55,305,709 of them anonymous, and 6,125,781 customers "
            "in Table 6.1; 95,757,177, 54,144,152 and 9,663,509 in the text beside it."
        ],
    )


def _length(tables: Tables, discretion: Discretion, _: DescribeOptions) -> Section | None:
    rows, quantiles = tables.get("session-length"), tables.get("session-length-quantiles")
    if not rows and not quantiles:
        return None
    blocks: list[Block] = []
    if rows:
        figures = length_figures(rows, quantiles or (), discretion)
        left = len({row["device"] for row in rows} - {ALL}) - (len(shown_devices(rows)) - 1)
        after = f"{left} devices with fewer sessions are not drawn." if left > 1 else ""
        if figures:
            blocks += [CLASS_LEGEND, Panels(figures, after=after)]
    if quantiles:
        blocks.append(length_table(quantiles, discretion))
    none = sum(row["sessions"] for row in rows or () if row["device"] == ALL and row["length"] < 1)
    notes = (
        [f"{number(none)} sessions without any action are in all shares and are not drawn."] if none else []
    )
    ends = (
        f"they end at {percent(discretion.floor, 0)} %"
        if discretion.floor
        else f"they end at {discretion.least} sessions"
    )
    return Section(
        "length",
        "Session length",
        found.length_findings(quantiles or (), discretion),
        "Length is the number of actions: pages, queries, and items put into and taken out of the basket. "
        "Lines are the share of sessions that are at least so long (at least, not longer), by device and "
        f"class; pale ones are all devices together; {ends}. P50 and P90 are the smallest length that half and "
        "90 % of sessions do not exceed. Thesis Figure 6.2.",
        blocks,
        notes,
    )


def _time(tables: Tables, discretion: Discretion, _: DescribeOptions) -> Section | None:
    days, hours = (
        [row for row in tables.get(name, ()) if row["share"] is not None] for name in ("week-days", "hours")
    )
    if not days and not hours:
        return None
    figures, folded, findings = [], [], []
    if days:
        figures.append(week_day_figure(days, discretion))
        folded.append(tables_of.time_table(days, "week_day", discretion))
        findings += found.week_day_findings(days, discretion)
    if hours:
        figures.append(hour_figure(hours, discretion))
        folded.append(tables_of.time_table(hours, "hour", discretion))
        findings += found.hour_findings(hours, discretion)
    return Section(
        "time",
        "Week days and hours",
        findings,
        "Shares of all sessions of a class by their first event, in the log's time zone; dotted: all days or "
        "hours alike. A log that does not hold every week day equally often leans to those it has. Thesis "
        "Figures 6.3 and 6.4.",
        [CLASS_LEGEND, Panels(figures, 24.0), *folded],
    )


def _transitions(tables: Tables, discretion: Discretion, options: DescribeOptions) -> Section | None:
    rows = [row for row in tables.get("device-transitions", ()) if row["transitions"]]
    if not rows:
        return None
    shown = [row for row in rows if not discretion.small(row["transitions"])]
    blocks: list[Block] = []
    if shown:
        kinds = {row["link"] for row in shown}
        entries = tuple(entry for link, entry in LINKS.items() if link in kinds)
        devices, switches = len(transition_order(rows)), sum(row["link"] in LINKS for row in shown)
        after = []
        if devices > MOST_NODES or switches > MOST_ARROWS:
            after.append(
                f"The {MOST_NODES} devices with the most transitions, of {devices}; the {MOST_ARROWS} most probable "
                "switches at most."
            )
        if len(shown) < len(rows):
            after.append(f"What was seen fewer than {discretion.least} times is not drawn.")
        figure = Panels([transition_figure(rows, discretion)], 24.0, " ".join(after))
        blocks += [*([Legend(entries)] if entries else []), figure]
    blocks.append(tables_of.transition_table(rows, discretion))
    return Section(
        "transitions",
        "From device to device",
        found.transition_findings(rows, discretion),
        f"Devices of consecutive sessions of one known visitor, {JOURNEYS[options.journey]}; of all "
        "transitions from a device, staying among them. Circles: the probability to stay; arrows are as thick "
        f"as a switch is probable. Likely is {100 * options.likely:g} % or more, hardly ever less than "
        f"{100 * options.near_zero:g} % (ours). Thesis Figure 6.5.",
        blocks,
    )


def _queries(tables: Tables, discretion: Discretion, _: DescribeOptions) -> Section | None:
    rows, unique = tables.get("queries"), tables.get("unique-queries")
    blocks: list[Block] = []
    findings: list[str] = []
    if rows:
        findings += found.query_findings(rows, discretion)
        per: dict[str, list[float | None]] = {}
        order = sorted(
            (row for row in rows if row["device"] != ALL), key=lambda row: (-row["sessions"], row["device"])
        )
        for row in order:
            pair = per.setdefault(row["device"], [None, None])
            pair[0 if row["purchase"] else 1] = (
                None if discretion.small(row["sessions"]) else row["per_session"]
            )
        values = {device: (pair[0], pair[1]) for device, pair in list(per.items())[:MOST_GROUPS]}
        texts = {device: (number(buy, 2), number(other, 2)) for device, (buy, other) in values.items()}
        if values:
            blocks += [
                CLASS_LEGEND,
                Panels(
                    [class_bars("queries", "Queries per session", values, texts, "queries per session")], 24.0
                ),
            ]
        blocks.append(query_table(rows, discretion))
    if unique:
        findings += found.unique_findings(unique, discretion)
        blocks.append(unique_table(unique, discretion))
    if not blocks:
        return None
    return Section(
        "queries",
        "Queries",
        findings,
        "Queries in lower case, with blanks made one. Different ones are counted anew for each device and "
        "class, so that one that occurs in two is in both; in % of the sum over devices, and in % of the "
        "queries. Thesis Tables 6.5 and 6.6.",
        blocks,
        [
            "The counts of thesis Table 6.6 add up exactly to all different queries of its log, 1,302,195: "
            "there, each query was counted in one cell alone."
        ]
        if unique
        else [],
    )


SECTIONS: tuple[Callable[[Tables, Discretion, DescribeOptions], Section | None], ...] = (
    _overview,
    _length,
    _time,
    channel_section,
    device_section,
    _transitions,
    _queries,
)
"""Makers of sections, in their order; each gives none where its statistics are missing."""


_KEYS = {
    "client": "of one client",
    "visitor": "of one visitor where known, else of one client",
    "given": "as the log gives them, whatever the gaps",
}


def description_page(
    description: Description, discretion: Discretion | None = None, log: Log | None = None
) -> Page:
    """The page of a description."""
    about, discretion = description.about, discretion or Discretion()
    if log is not None and log.fingerprint != about["log_fingerprint"]:
        raise MismatchError(
            f"the description is of the log {about['log_fingerprint']}, {log.folder} is {log.fingerprint}",
            "give the log that was described, or describe this one",
        )
    options = DescribeOptions(**about["options"])
    meanings = {
        name: STATISTICS.get(name).columns for name in description.tables if name in STATISTICS.names()
    }
    sections = described_sections(description.tables, discretion, options, meanings)
    if log is not None:
        sections.append(import_section(log.about))
    name = shorten(description.name, 80)
    return Page(
        f"Purchase intent in {name}",
        _subtitle(description, log),
        described_headlines(description.tables, discretion),
        sections,
        _facts(description, options),
        [*_notes(description, discretion), *discretion.lines()],
        [_command(description, options)],
    )


def write_description_page(
    path: Path | str,
    description: Description,
    discretion: Discretion | None = None,
    log: Log | None = None,
) -> Path:
    """Write the page as one HTML file, whole or not at all; arguments as of :func:`description_page`."""
    return write_page(path, description_page(description, discretion, log))


def described_headlines(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], discretion: Discretion
) -> list[Headline]:
    """The log in a few numbers."""
    totals = {row["what"]: row["total"] for row in tables.get("overview", ())}
    sessions = totals.get("sessions", 0)
    if not sessions:
        return []
    shown = [Headline("sessions", number(sessions), f"of {number(totals.get('events'))} events")]
    buy, anonymous = totals.get("purchase sessions"), totals.get("anonymous sessions")
    if buy is not None and not discretion.hide_rates and not discretion.small(buy, sessions - buy):
        shown.append(
            Headline("have a purchase", f"{percent(buy / sessions, 2)} %", f"{number(buy)} sessions")
        )
    if anonymous is not None and not discretion.small(anonymous, sessions - anonymous):
        shown.append(
            Headline("are anonymous", f"{percent(anonymous / sessions)} %", f"{number(anonymous)} sessions")
        )
    if totals.get("identified visitors") is not None:
        shown.append(Headline("visitors are known", discretion.count(totals["identified visitors"])))
    return shown


def _subtitle(description: Description, log: Log | None) -> str:
    sessions = (
        f"What sets sessions with a purchase apart, in {description.about['counts']['sessions']:,} sessions"
    )
    if log is None or not log.about["first"]:
        return sessions
    return f"{sessions} from {str(log.about['first'])[:10]} to {str(log.about['last'])[:10]}"


def _facts(description: Description, options: DescribeOptions) -> dict[str, str]:
    about = description.about
    of = about["session_options"]
    ended = (
        "" if of["by"] == "given" else f", ended by more than {of['gap_minutes']:g} minutes without an event"
    )
    return {
        "log": f"{shorten(description.name, 80)}, fingerprint {about['log_fingerprint']}",
        "sessions": f"{_KEYS.get(of['by'], of['by'])}{ended}; fingerprint {about['sessions_fingerprint']}",
        "hours and days": f"of {about['zone']}, by a session's first event",
        "class": "a session with a purchase anywhere in it, or another",
        "device, channel": "of a session's first event",
        "intervals": f"{100 * options.confidence:g} %; Wilson's for shares and rates, normal for means; sessions are "
        "taken as independent, which those of one visitor are not quite",
        "standardised": f"ddof {options.ddof}, over groups, each counting once",
        "engine": str(about["engine"]),
        "numbers": "all of them, unhidden, are in the description's tables/*.csv",
    }


def _notes(description: Description, discretion: Discretion) -> list[str]:
    """What a reader has to know; without notes that count few people."""
    return [
        sentence(note)
        for note in map(str, description.about["notes"])
        if not discretion.small(*(int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", note)))
    ]


def _command(description: Description, options: DescribeOptions) -> str:
    """The description again; what is as by default is not said."""
    of: dict[str, Any] = description.about["session_options"]
    words = ["diptych", "intent", "describe", "LOG", "--out", "DESCRIPTION"]
    default = DescribeOptions()
    if set(description.tables) != set(ORDER):
        words += [word for name in description.tables for word in ("--statistic", name)]
    for option, value, usual in (
        ("--by", of["by"], "client"),
        ("--gap", f"{of['gap_minutes']:g}", "30"),
        ("--ddof", options.ddof, default.ddof),
        ("--journey", options.journey, default.journey),
        ("--confidence", options.confidence, default.confidence),
    ):
        if value != usual:
            words += [option, str(value)]
    return shlex.join(words)
