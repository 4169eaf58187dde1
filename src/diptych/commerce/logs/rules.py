"""What an import is asked to drop, and the rules by which events are dropped and counted.

Rules have a fixed order, and a row is counted under the first that drops it: so the rows that were read are the
events that were kept and what all rules dropped together. Rows are judged one by one while a file is read; what is
left is judged beside other events of the same client, which are in one bucket.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pydantic import field_validator

from diptych.commerce.logs.canonical import COMPARED
from diptych.commerce.logs.schema import BOT_WORDS, NO_BOT
from diptych.commerce.logs.sql import EARLIEST, LATEST, literal, literals
from diptych.core.errors import UsageError
from diptych.core.options import Options, parameter


class Cleaning(Options):
    """Which events are kept; what else is always dropped, such as rows without a time, is among the rules."""

    since: str | None = parameter(None, "First day or moment that is kept, ISO 8601.")
    until: str | None = parameter(None, "First day or moment that is no longer kept.")
    countries: tuple[str, ...] = parameter((), "Keep only these, e.g. NL,BE,DE. Repeatable.", "--country")
    keep_missing_country: bool = parameter(False, "With --country: keep those without one.")
    devices: tuple[str, ...] = parameter(
        (), "Keep only these types, e.g. pc,smartphone,'game console'. Repeatable.", "--device"
    )
    bots: bool = parameter(False, "Keep events whose user agent is a bot's.", "--keep-bots")
    duplicates: bool = parameter(False, "Keep events equal in all columns.", "--keep-duplicates")
    most_events: int | None = parameter(
        100_000, "Drop clients with more events, whole; 0 for no limit.", ge=0
    )

    @field_validator("most_events")
    @classmethod
    def _limit(cls, most: int | None) -> int | None:
        return most or None

    @field_validator("countries")
    @classmethod
    def _countries(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for one in _words("--country", given):
            if not (len(one) == 2 and one.isascii() and one.isalpha()):
                raise UsageError(f"there is no country {one!r}", "two letters each (ISO 3166), e.g. NL,BE,DE")
        return _words("--country", (one.upper() for one in given))

    @field_validator("devices")
    @classmethod
    def _devices(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        return _words("--device", (one.lower() for one in given))


def _words(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return each word once, of texts with commas."""
    parts = [part.strip() for one in given for part in one.split(",")]
    if parts and not any(parts):
        raise UsageError(f"{option} names none", "leave it out to keep all")
    return tuple(sorted(set(filter(None, parts))))


class Rule(NamedTuple):
    """A reason to drop events."""

    name: str  # in reports
    description: str  # one line of what is dropped
    # SQL; of a row's rule a condition over the columns of diptych.commerce.logs.canonical, never NULL; of a
    # bucket's rule the event_id of what is dropped of the table events, each once
    drops: str
    # SQL of what was dropped, NULL or empty for nothing of the kind; of a row's rule a text, of a
    # bucket's rule texts and numbers of events
    names: str = ""


UNREADABLE_ROW = "unreadable row"
"""Under this rule lines are counted, too, that the database could not even hand on as rows."""

_IS_BOT = f"regexp_matches(replace(lower(agent), {literal(NO_BOT)}, ''), {literal('|'.join(BOT_WORDS))})"

_TWINS = """
    SELECT event_id FROM events WHERE is_twin AND address IS NOT NULL AND (client_id, t_us, address) IN
        (SELECT (client_id, t_us, address) FROM events WHERE NOT is_twin AND action = 'page' AND address IS NOT NULL)"""

# Few events share client and time with another one: only those are compared in all columns.
_DUPLICATES = f"""
    SELECT event_id FROM (
        SELECT event_id, row_number() OVER (PARTITION BY {", ".join(COMPARED)}, address ORDER BY event_id) AS place
        FROM events WHERE (client_id, t_us) IN
            (SELECT (client_id, t_us) FROM events GROUP BY client_id, t_us HAVING count(*) > 1))
    WHERE place > 1"""


def row_rules(cleaning: Cleaning, since_us: int | None, until_us: int | None) -> list[Rule]:
    """Return the rules that look at one row, in their order."""
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise UsageError("the period is empty: it ends before it begins", "check --since and --until")
    rules = [
        Rule(
            UNREADABLE_ROW,
            "no row of the file's columns: wrong number of values, bad quotation marks, a line break inside of them, "
            "NUL, or bytes that are not UTF-8",
            "NOT readable",
        ),
        Rule(
            "unreadable time",
            "the time is missing or none, is on the first day of 1970 or before, or in 2200 or after",
            f"t_us IS NULL OR t_us < {EARLIEST} OR t_us >= {LATEST}",
            "left(written, 80)",
        ),
        Rule("no client", "neither client nor visitor is known", "client_id IS NULL"),
        Rule(
            "unknown action",
            "what the log says was done is none of the known actions; map it with [values.action], also to other",
            "action IS NULL",
            "coalesce(left(said, 80), '(missing)')",
        ),
    ]
    outside = [f"t_us < {since_us}"] * (since_us is not None) + [f"t_us >= {until_us}"] * (
        until_us is not None
    )
    if outside:
        rules.append(Rule("outside", "before --since, or at --until or after", " OR ".join(outside)))
    if cleaning.countries:
        missing = "false" if cleaning.keep_missing_country else "true"
        rules.append(
            Rule(
                "country",
                "from another country than --country, or from none where --keep-missing-country does not say to keep "
                "it",
                f"coalesce(country NOT IN ({literals(cleaning.countries)}), {missing})",
                "coalesce(country, '(missing)')",
            )
        )
    if cleaning.devices:
        rules.append(
            Rule(
                "device",
                "of another device type than --device, or of an unknown one",
                f"device NOT IN ({literals(cleaning.devices)})",
                "left(device, 80)",
            )
        )
    if not cleaning.bots:
        rules.append(
            Rule(
                "agent",
                "the user agent is a bot's, by a list of patterns (diptych.commerce.logs.schema.BOT_WORDS)",
                f"coalesce({_IS_BOT}, false)",
                "left(agent, 80)",
            )
        )
    return rules


def bucket_rules(cleaning: Cleaning) -> list[Rule]:
    """Return the rules that look at all events of a client, in their order."""
    rules = [
        Rule(
            "twin",
            "a page view that another one of the same client, time and address tells in more detail",
            _TWINS,
        )
    ]
    if not cleaning.duplicates:
        rules.append(
            Rule(
                "duplicate",
                "equal to an earlier event in all columns of the table, and in the address where the log has one",
                _DUPLICATES,
            )
        )
    if cleaning.most_events is not None:
        crowded = (
            "SELECT client_id, count(*) AS n FROM events GROUP BY client_id "
            f"HAVING count(*) > {int(cleaning.most_events)}"
        )
        rules.append(
            Rule(
                "too many events",
                "of clients with more events than --most-events; they are dropped whole",
                f"SELECT event_id FROM events WHERE client_id IN (SELECT client_id FROM ({crowded}))",
                crowded,
            )
        )
    return rules
