"""A description of a log as a page: what sets sessions with a purchase apart (thesis section 6.4)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.statistics import JOURNEYS, ORDER, STATISTICS, DescribeOptions
from diptych.core.errors import MismatchError
from diptych.core.table import Cell, Table
from diptych.report import intent_description_tables as found
from diptych.report import intent_description_tables as tables_of
from diptych.report.drawing import BLUE, draw
from diptych.report.intent_content import (
    WEEK_DAYS,
    Block,
    Discretion,
    Legend,
    Page,
    Panels,
    Section,
    listed,
    number,
    percent,
    sentence,
    write_page,
)
from diptych.report.intent_description_tables import (
    device_count_table,
    group_table,
    length_table,
    query_table,
    unique_table,
)
from diptych.report.intent_figures import (
    ALL,
    CLASS_LEGEND,
    LINKS,
    MOST_ARROWS,
    MOST_GROUPS,
    MOST_NODES,
    class_bars,
    hour_figure,
    length_figures,
    rate_figure,
    shown_devices,
    standardised_figure,
    transition_figure,
    transition_order,
    week_day_figure,
)
from diptych.report.page import Headline, shorten

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.statistics import Description
    from diptych.data.logs.log import Log


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
    with draw("days", size=(4.8, 2.2)) as drawing:
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


Rows = Sequence[Mapping[str, Any]]
Tables = Mapping[str, Rows]
"""Statistic → its finished rows; those that were not made are missing."""


def _groups(
    key: str, rows: Rows, discretion: Discretion, options: DescribeOptions
) -> tuple[list[Block], list[str]]:
    """Figures and table of channels or devices."""
    order = sorted(rows, key=lambda row: (-row["sessions"], row[key]))[:MOST_GROUPS]
    shares = {row[key]: _shares(row, discretion) for row in order}
    texts = {row[key]: (percent(row["purchase_share"]), percent(row["other_share"])) for row in order}
    open_rows = [
        row
        for row in order
        if not discretion.small(row["purchase_sessions"], row["sessions"] - row["purchase_sessions"])
    ]
    figures = [
        class_bars(
            f"{key}-shares",
            f"{key.capitalize()}s of both classes",
            shares,
            texts,
            "% of the class's sessions",
        )
    ]
    if discretion.hide_rates:
        values = {row[key]: row["standardised"] for row in open_rows if row["standardised"] is not None}
        if values:
            figures.append(standardised_figure(f"{key}-rates", "Standardised conversion rate", values))
    elif open_rows:
        sessions = sum(row["sessions"] for row in rows)
        overall = sum(row["purchase_sessions"] for row in rows) / sessions if sessions else None
        rates = {row[key]: (row["rate"], row["low"], row["high"]) for row in open_rows}
        figures.append(rate_figure(f"{key}-rates", "Conversion rate", rates, overall))
    return [
        CLASS_LEGEND,
        Panels(figures, 24.0),
        group_table(rows, key, options.ddof, discretion),
    ], found.group_findings(rows, key, discretion)


def _shares(row: Mapping[str, Any], discretion: Discretion) -> tuple[float | None, float | None]:
    """Per cent of purchase sessions and of others; None for what there is not, or is not shown.

    Of few in one class the other's share is not shown either: beside the number of sessions it would tell.
    """
    if discretion.small(row["purchase_sessions"], row["sessions"] - row["purchase_sessions"]):
        return None, None
    buy, other = (
        None if row[name] is None else 100 * row[name] for name in ("purchase_share", "other_share")
    )
    return buy, other


def _standard(ddof: int, table: str) -> str:
    return (
        "A conversion rate is the share of a group's sessions that have a purchase; standardised: less the "
        f"mean of the groups' rates, each group counting once, in their standard deviations (ddof {ddof}). "
        f"Thesis Table {table}."
    )


def channel_section(tables: Tables, discretion: Discretion, options: DescribeOptions) -> Section | None:
    """Channels, of both classes and by rate; None where nobody counted them."""
    rows = tables.get("channels")
    if not rows:
        return None
    blocks, findings = _groups("channel", rows, discretion, options)
    return Section(
        "channels",
        "Channels",
        findings,
        _standard(options.ddof, "6.2"),
        blocks,
        [
            "The rates of thesis Table 6.2 fit ddof 1, those of Table 6.4 and its worked example ddof 0. Its "
            "−0.56 of direct cannot be: such rates add up to 0, those four to −0.41; −0.56 is the smartphone's "
            "of Table 6.4."
        ],
    )


def device_section(tables: Tables, discretion: Discretion, options: DescribeOptions) -> Section | None:
    """Devices of sessions and per visitor; None where nobody counted them."""
    rows, visitors = tables.get("devices"), tables.get("devices-per-visitor")
    blocks: list[Block] = []
    findings: list[str] = []
    if rows:
        blocks, findings = _groups("device", rows, discretion, options)
    if visitors:
        blocks.append(device_count_table(visitors, discretion))
        findings += found.device_count_findings(visitors, discretion)
    if not blocks:
        return None
    return Section(
        "devices",
        "Devices",
        findings,
        (_standard(options.ddof, "6.4") + " " if rows else "")
        + (
            "Devices per visitor are those that a known visitor was seen on in this log; purchasers have "
            "bought at least once in it. Thesis Table 6.3, which says per session and counts per user."
            if visitors
            else ""
        ),
        blocks,
    )


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
