"""Hendriksen et al., Analyzing and Predicting Purchase Intent (2020): thesis ch. 6, queries.

diptych study run intent.table-6.5 --quick
diptych study run intent.table-6.6 --data LOG                        the folder that diptych intent ingest wrote

How often purchase sessions and others search, on which devices, and how many queries are different: half a minute
on generated scenes, a few seconds per million events of a log. A log without queries has no such rows. On scenes
expect 1.5 queries per purchase session and 0.5 per other: that is how they are made.
"""

from __future__ import annotations

from diptych.studies.claims import Check, Claim, Finding, all_of, missing
from diptych.studies.intent_figures import channel_bars, hour_bars, week_day_bars
from diptych.studies.intent_rows import (
    BESIDES,
    CHANNELS,
    CLASSES,
    COUNTED_BY,
    COUNTING,
    DAYS,
    DEVICES,
    HOURS,
    SHARES,
    Counted,
    channel_rows,
    channel_shares,
    class_rows,
    device_rows,
    hours,
    log_row,
    queries,
    row_name,
    tables_of,
    unique_queries,
    week_days,
)
from diptych.studies.log_checks import (
    Place,
    above,
    column_of,
    highest,
    known,
    less_in_purchases,
    lowest,
    more_in_purchases,
    peak,
    steady,
)
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Column, Study
from diptych.studies.verdict import Evidence

_DEVICES = [row_name(name) for name in DEVICES]
_POPULAR = ("smartphone", "pc", "tablet")
_BUT_PC = [name for name in _DEVICES if name != "pc"]


def _most(kind: str, column: str, device: str) -> Claim:
    """One device has the highest number of a column."""
    places = [(name, f"{kind} {column}") for name in _DEVICES]
    title = f"{kind}: {device}"
    label = {"pc": "PCs", "tablet": "tablets", "smartphone": "smartphones"}[device]
    named = {"per session": "per session", "%": "share"}[column]
    highest_of = {"per session": "most queries per session", "%": "largest share of queries"}[column]
    return Claim(
        f"{title}, {named}",
        f"Of {CLASSES[kind].lower()} {label} have the {highest_of}",
        highest(places, [(row_name(device), f"{kind} {column}")], f"{label} first"),
        "Section 6.4.5",
    )


_QUERIES = (
    Claim(
        "more",
        "Queries are more common in purchase sessions",
        all_of(
            *(
                above((name, "purchase per session"), (name, "non-purchase per session"))
                for name in ("all", *_POPULAR)
            )
        ),
        "Section 6.4.5; overall, and on the three popular devices",
    ),
    _most("purchase", "per session", "tablet"),
    _most("non-purchase", "per session", "pc"),
    _most("purchase", "%", "smartphone"),
    _most("non-purchase", "%", "pc"),
)

_UNIQUE = (
    Claim(
        "fewer",
        "Purchase sessions have fewer different queries, on every device but the PC",
        all_of(
            above(("all", "non-purchase count"), ("all", "purchase count")),
            *(above((name, "non-purchase count"), (name, "purchase count")) for name in _BUT_PC),
            above(("pc", "purchase count"), ("pc", "non-purchase count")),
        ),
        "Section 6.4.5; by counts",
    ),
    Claim(
        "smaller shares",
        "A device has a smaller share of the different queries of purchase sessions, every one but the PC",
        all_of(
            *(above((name, "non-purchase %"), (name, "purchase %")) for name in _BUT_PC),
            above(("pc", "purchase %"), ("pc", "non-purchase %")),
        ),
        "Section 6.4.5; by shares, as the text must be read to be true of the printed table",
    ),
    Claim(
        "retyped",
        "Fewer of the queries of purchase sessions are different ones, for they retype earlier ones",
        above(("all", "non-purchase unique %"), ("all", "purchase unique %")),
        "Section 6.4.5, the explanation; different queries per query, which the thesis does not print. It falls "
        "with the number of queries by itself",
    ),
)

_PER_SESSION = tuple(f"{kind} {column}" for kind in CLASSES for column in ("per session", "%"))
_COUNTS = tuple(f"{kind} {column}" for kind in CLASSES for column in ("count", "%", "unique %"))

TABLE_6_5 = STUDIES.add(
    Study(
        name="intent.table-6.5",
        asks="How many queries do purchase sessions and others have, and on which devices?",
        topic="queries per session and device",
        rows=(*device_rows(), log_row("all", "All devices")),
        columns=tuple(Column(name, decimals=2) for name in _PER_SESSION),
        published=(published_table("intent", "table-6.5"),),
        claims=_QUERIES,
        settings=COUNTING,
        measure=Counted("queries", queries, ("queries",)),
        tables=tables_of("queries"),
        measured_by=COUNTED_BY,
    )
)

TABLE_6_6 = STUDIES.add(
    Study(
        name="intent.table-6.6",
        asks="How many different queries do purchase sessions and others have, and on which devices?",
        topic="unique queries per device",
        rows=(*device_rows(), log_row("all", "All devices")),
        columns=tuple(Column(name, decimals=0 if name.endswith("count") else 2) for name in _COUNTS),
        published=(published_table("intent", "table-6.6"),),
        claims=_UNIQUE,
        settings=COUNTING,
        measure=Counted("unique-queries", unique_queries, ("unique-queries",)),
        notes=(
            "A query that is typed on two devices, or in sessions of both kinds, is counted in each cell; the "
            "thesis's totals are sums of its cells, and what is held against them is such a sum. The right total "
            "counts each query once.",
        ),
        tables=tables_of("unique-queries"),
        measured_by=COUNTED_BY,
    )
)

_CHANNELS = (
    Claim(
        "direct first",
        "The direct channel is the most used one of both kinds of sessions",
        all_of(
            *(
                highest(column_of(kind, list(CHANNELS)), [("direct", kind)], f"{kind}: direct first")
                for kind in ("purchase", "non-purchase")
            )
        ),
        "Section 6.4.3",
    ),
    Claim(
        "order",
        "Paid comes second and organic third",
        all_of(
            *(
                check
                for kind in ("purchase", "non-purchase")
                for check in (
                    highest(
                        column_of(kind, ["paid", "organic", "other"]),
                        [("paid", kind)],
                        f"{kind}: paid second",
                    ),
                    above(("organic", kind), ("other", kind)),
                )
            )
        ),
        "Section 6.4.3",
    ),
    Claim(
        "paid and organic",
        "Purchase sessions enter more by paid and organic channels",
        all_of(more_in_purchases("paid"), more_in_purchases("organic")),
        "Section 6.4.3",
    ),
    Claim(
        "direct",
        "The direct channel is more common for non-purchase sessions",
        less_in_purchases("direct"),
        "Section 6.4.3",
    ),
)

TABLE_6_2 = STUDIES.add(
    Study(
        name="intent.table-6.2",
        asks="By which channels do purchase sessions and others come?",
        topic="channels of sessions",
        rows=channel_rows(),
        columns=SHARES,
        published=(published_table("intent", "table-6.2"), published_table("intent", "text-table-6.2")),
        claims=_CHANNELS,
        settings=COUNTING,
        measure=Counted("channels", channel_shares, ("channels",)),
        notes=(
            BESIDES,
            "Standardised rates of this table divide by n − 1 in the thesis, and so does what is held against them; "
            "the right one divides as --set measure.ddof says, by n when nobody does.",
        ),
        figure=channel_bars(),
        tables=tables_of("channels"),
        measured_by=COUNTED_BY,
    )
)

_STEADY = 1.25
_OF_DAYS = (*DAYS, "three most", "four least", "difference")


def busier(row: str) -> Check:
    """A day of the working week has more sessions than one of the weekend, on average."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{row}: working days are busier than weekends"
        days = list(known(evidence, [(row, day) for day in DAYS]).values())
        if len(days) < len(DAYS):
            return [missing(what, f"days of {row}")]
        working, weekend = sum(days[:5]) / 5, sum(days[5:]) / 2
        detail = f"{working:.2f} % a day against {weekend:.2f}"
        return [Finding(what, working > weekend, detail, (working - weekend) / max(working, weekend))]

    return check


def _places(row: str, columns: tuple[str, ...]) -> list[Place]:
    return [(row, column) for column in columns]


_WEEK = (
    Claim(
        "week days",
        "Most activity occurs on week days",
        all_of(*(busier(row) for row in CLASSES)),
        "Section 6.4.2 and Figure 6.3's caption; by the mean of Monday to Friday and of Saturday and Sunday",
    ),
    Claim(
        "purchases",
        "The three most popular days of purchase sessions are Tuesday, Wednesday and Thursday",
        highest(_places("purchase", DAYS), _places("purchase", DAYS[1:4]), "Tuesday to Thursday are busiest"),
        "Section 6.4.2",
    ),
    Claim(
        "others",
        "The three most active days of non-purchase sessions are Monday, Wednesday and Thursday",
        highest(
            _places("non-purchase", DAYS),
            _places("non-purchase", ("Monday", "Wednesday", "Thursday")),
            "Monday, Wednesday and Thursday are busiest",
        ),
        "Section 6.4.2",
    ),
    Claim(
        "uneven",
        "The three most and the four least active days are further apart for non-purchase sessions",
        above(("non-purchase", "difference"), ("purchase", "difference")),
        "Section 6.4.2",
    ),
    Claim(
        "tuesday",
        "Tuesday, a popular day for purchases, is the least popular one for other sessions",
        all_of(
            above(("purchase", "Tuesday"), ("non-purchase", "Tuesday")),
            lowest(_places("non-purchase", DAYS), [("non-purchase", "Tuesday")], "Tuesday has the fewest"),
        ),
        "Section 6.4.2",
    ),
    Claim(
        "wednesday",
        "The most active day of the week is Wednesday, the least active one is Sunday",
        all_of(
            highest(_places("either", DAYS), [("either", "Wednesday")], "Wednesday is busiest"),
            lowest(_places("either", DAYS), [("either", "Sunday")], "Sunday is quietest"),
        ),
        "Section 6.4.2",
    ),
)

_DAY = (
    Claim(
        "evening",
        "The most active hours are in the evening, from 18 to 20",
        all_of(
            *(
                peak(_places(row, HOURS), _places(row, HOURS[18:21]), f"{row}: busiest at 18 to 20")
                for row in CLASSES
            )
        ),
        "Section 6.4.2; the busiest hour begins at 18, 19 or 20",
    ),
    Claim(
        "night",
        "The least active hours are from 1 to 3 in the morning",
        all_of(
            *(
                peak(_places(row, HOURS), _places(row, HOURS[1:4]), f"{row}: quietest at 1 to 3", sign=-1)
                for row in CLASSES
            )
        ),
        "Section 6.4.2; the quietest hour begins at 1, 2 or 3",
    ),
    Claim(
        "day",
        "Activity is stable from 10 to 17",
        all_of(
            *(steady(_places(row, HOURS[10:17]), _STEADY, f"{row}: steady from 10 to 17") for row in CLASSES)
        ),
        f"Section 6.4.2; “stable”: the busiest of these hours has at most {_STEADY:g} times the quietest",
    ),
)

FIGURE_6_3 = STUDIES.add(
    Study(
        name="intent.figure-6.3",
        asks="On which days of the week do purchase sessions and others begin?",
        topic="sessions per day of the week",
        rows=class_rows(),
        columns=tuple(Column(name, decimals=2, short=name[:3] if name in DAYS else "") for name in _OF_DAYS),
        published=(published_table("intent", "figure-6.3"), published_table("intent", "text-figure-6.3")),
        claims=_WEEK,
        settings=COUNTING,
        measure=Counted("week-days", week_days, ("week-days",)),
        notes=("A log of no whole number of weeks has more of some days than of others.",),
        figure=week_day_bars(),
        tables=tables_of("week-days"),
        measured_by=COUNTED_BY,
    )
)

FIGURE_6_4 = STUDIES.add(
    Study(
        name="intent.figure-6.4",
        asks="At which hours do purchase sessions and others begin?",
        topic="sessions per hour of the day",
        rows=class_rows(),
        columns=tuple(Column(name, decimals=2) for name in HOURS),
        published=(published_table("intent", "figure-6.4"),),
        claims=_DAY,
        settings=COUNTING,
        measure=Counted("hours", hours, ("hours",)),
        notes=("Hours are those of the zone that the log was imported with.",),
        figure=hour_bars(),
        measured_by=COUNTED_BY,
    )
)
