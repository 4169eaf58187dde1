"""Hendriksen et al., Analyzing and Predicting Purchase Intent (2020): thesis ch. 6, days of the week and hours.

diptych study run intent.figure-6.3 --quick
diptych study run intent.figure-6.4 --data LOG                       the folder that diptych intent ingest wrote

On which days and at which hours purchase sessions and others begin: half a minute on generated scenes, a few seconds
per million events of a log. On scenes expect Tuesday to Thursday to be the busiest days of purchases, and 18 to 20
the busiest hours of all sessions: that is how they are made.
"""

from __future__ import annotations

from diptych.studies.claims import Check, Claim, Finding, all_of, missing
from diptych.studies.evidence import Evidence
from diptych.studies.intent_counting import DAYS, HOURS, hours, week_days
from diptych.studies.intent_figures import hour_bars, week_day_bars
from diptych.studies.intent_rows import CLASSES, class_rows
from diptych.studies.intent_settings import COUNTED_BY, COUNTING
from diptych.studies.intent_statistics import Counted, tables_of
from diptych.studies.log_checks import Place, above, highest, known, lowest, peak, steady
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Column, Study

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
