"""Rules by which events are dropped, and counted: one file of ``kinds/`` each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diptych.core.registry import Registry
from diptych.data.logs.canonical import COMPARED
from diptych.data.logs.cleaning import Cleaning, Period
from diptych.data.logs.schema import BOT_WORDS, NO_BOT
from diptych.data.logs.sql import literal, literals
from diptych.data.logs.times import EARLIEST, LATEST

# What a rule declares, and the registry of them.
#
# Rules have a fixed order, and a row is counted under the first that drops it: so the rows that were read are the
# events that were kept and what all rules dropped together.
#
# 1. Rows are judged one by one, while a file is read (:class:`RowRule`).
# 2. What is left is judged beside other events of the same client (:class:`BucketRule`).


UNREADABLE_ROW = "unreadable row"
"""Under this rule lines are counted, too, that the database could not even hand on as rows."""


@dataclass(frozen=True)
class Rule:
    """A reason to drop events.

    Attributes:
        name: in reports.
        description: one line of what is dropped.
        place: in the order of rules.
        asked: whether it applies at all.
    """

    name: str
    description: str
    place: int
    asked: Callable[[Cleaning], bool]


@dataclass(frozen=True)
class RowRule(Rule):
    """A rule that looks at one row.

    Attributes:
        drops: SQL of a condition over the columns of :mod:`diptych.data.logs.canonical`, never NULL.
        names: SQL of a text to count what was dropped by, NULL for nothing of the kind.
    """

    drops: Callable[[Cleaning, Period], str]
    names: str = "NULL"


@dataclass(frozen=True)
class BucketRule(Rule):
    """A rule that looks at all events of a client, which are in one bucket.

    Attributes:
        drops: SQL of the ``event_id`` of what is dropped of the table ``events``, each once.
        names: SQL of texts and numbers of events of what is dropped, empty for nothing of the kind.
    """

    drops: Callable[[Cleaning], str]
    names: Callable[[Cleaning], str] = lambda cleaning: ""


RULES: Registry[Rule] = Registry("rule", "diptych.data.logs.rules")


def asked_rules(cleaning: Cleaning) -> list[Rule]:
    """The rules that apply, in their order."""
    return sorted((rule for rule in RULES if rule.asked(cleaning)), key=lambda rule: rule.place)


_IS_BOT = f"regexp_matches(replace(lower(agent), {literal(NO_BOT)}, ''), {literal('|'.join(BOT_WORDS))})"

RULES.add(
    RowRule(
        "agent",
        "the user agent is a bot's, by a list of patterns (diptych.data.logs.schema.BOT_WORDS)",
        80,
        lambda cleaning: not cleaning.bots,
        lambda cleaning, period: f"coalesce({_IS_BOT}, false)",
        "left(agent, 80)",
    )
)


def _drops(cleaning: Cleaning, period: Period) -> str:
    missing = "false" if cleaning.keep_missing_country else "true"
    return f"coalesce(country NOT IN ({literals(cleaning.countries)}), {missing})"


RULES.add(
    RowRule(
        "country",
        "from another country than --country, or from none where --keep-missing-country does not say to keep it",
        60,
        lambda cleaning: bool(cleaning.countries),
        _drops,
        "coalesce(country, '(missing)')",
    )
)


RULES.add(
    RowRule(
        "device",
        "of another device type than --device, or of an unknown one",
        70,
        lambda cleaning: bool(cleaning.devices),
        lambda cleaning, period: f"device NOT IN ({literals(cleaning.devices)})",
        "left(device, 80)",
    )
)


# Few events share client and time with another one: only those are compared in all columns.
_DROPS = f"""
    SELECT event_id FROM (
        SELECT event_id, row_number() OVER (PARTITION BY {", ".join(COMPARED)}, address ORDER BY event_id) AS place
        FROM events WHERE (client_id, t_us) IN
            (SELECT (client_id, t_us) FROM events GROUP BY client_id, t_us HAVING count(*) > 1))
    WHERE place > 1"""

RULES.add(
    BucketRule(
        "duplicate",
        "equal to an earlier event in all columns of the table, and in the address where the log has one",
        100,
        lambda cleaning: not cleaning.duplicates,
        lambda cleaning: _DROPS,
    )
)


RULES.add(
    RowRule(
        "no client",
        "neither client nor visitor is known",
        30,
        lambda cleaning: True,
        lambda cleaning, period: "client_id IS NULL",
    )
)


def _outside_drops(cleaning: Cleaning, period: Period) -> str:
    parts = [
        *([f"t_us < {period.since_us}"] if period.since_us is not None else []),
        *([f"t_us >= {period.until_us}"] if period.until_us is not None else []),
    ]
    return " OR ".join(parts)


RULES.add(
    RowRule(
        "outside",
        "before --since, or at --until or after",
        50,
        lambda cleaning: cleaning.since is not None or cleaning.until is not None,
        _outside_drops,
    )
)


def _crowded(cleaning: Cleaning) -> str:
    return (
        "SELECT client_id, count(*) AS n FROM events GROUP BY client_id "
        f"HAVING count(*) > {int(cleaning.most_events or 0)}"
    )


RULES.add(
    BucketRule(
        "too many events",
        "of clients with more events than --most-events; they are dropped whole",
        110,
        lambda cleaning: cleaning.most_events is not None,
        lambda cleaning: (
            f"""
            SELECT event_id FROM events WHERE client_id IN (SELECT client_id FROM ({_crowded(cleaning)}))"""
        ),
        _crowded,
    )
)


_TWIN_DROPS = """
    SELECT event_id FROM events WHERE is_twin AND address IS NOT NULL AND (client_id, t_us, address) IN
        (SELECT (client_id, t_us, address) FROM events WHERE NOT is_twin AND action = 'page' AND address IS NOT NULL)"""

RULES.add(
    BucketRule(
        "twin",
        "a page view that another one of the same client, time and address tells in more detail",
        90,
        lambda cleaning: True,
        lambda cleaning: _TWIN_DROPS,
    )
)


RULES.add(
    RowRule(
        "unknown action",
        "what the log says was done is none of the known actions; map it with [values.action], also to other",
        40,
        lambda cleaning: True,
        lambda cleaning, period: "action IS NULL",
        "coalesce(left(said, 80), '(missing)')",
    )
)


RULES.add(
    RowRule(
        UNREADABLE_ROW,
        "no row of the file's columns: wrong number of values, bad quotation marks, a line break inside of them, "
        "NUL, or bytes that are not UTF-8",
        10,
        lambda cleaning: True,
        lambda cleaning, period: "NOT readable",
    )
)


RULES.add(
    RowRule(
        "unreadable time",
        "the time is missing or none, is on the first day of 1970 or before, or in 2200 or after",
        20,
        lambda cleaning: True,
        lambda cleaning, period: f"t_us IS NULL OR t_us < {EARLIEST} OR t_us >= {LATEST}",
        "left(written, 80)",
    )
)
