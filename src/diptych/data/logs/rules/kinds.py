"""One file per reason; each adds its declaration to ``RULES``."""

from __future__ import annotations

from diptych.data.logs.canonical import COMPARED
from diptych.data.logs.cleaning import Cleaning, Period
from diptych.data.logs.rules.declaration import RULES, UNREADABLE_ROW, BucketRule, RowRule
from diptych.data.logs.sql import literal, literals
from diptych.data.logs.times import EARLIEST, LATEST
from diptych.data.logs.words import BOT_WORDS, NO_BOT

_IS_BOT = f"regexp_matches(replace(lower(agent), {literal(NO_BOT)}, ''), {literal('|'.join(BOT_WORDS))})"

RULES.add(
    RowRule(
        "agent",
        "the user agent is a bot's, by a list of patterns (diptych.data.logs.words.BOT_WORDS)",
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
