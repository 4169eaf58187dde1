"""Cleaning: the rules that drop events, and notes of what is odd in those that are left.

Rules have a fixed order, and a row is counted under the first that drops it: so the rows that were read are the
events that were kept and what all rules dropped together.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationInfo, field_validator

from diptych.commerce.logs.database import Database
from diptych.commerce.logs.schema import BOT_WORDS, COLUMNS, UNKNOWN
from diptych.core.errors import UsageError
from diptych.core.options import Options, parameter


class Cleaning(Options):
    """Choose the events that are kept; rows without a time, for example, are always dropped."""

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

    @field_validator("countries", "devices")
    @classmethod
    def _words(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """Return each word once, of texts with commas."""
        words = {part.strip() for one in given for part in one.split(",")} - {""}
        option = "--country" if info.field_name == "countries" else "--device"
        if given and not words:
            raise UsageError(f"{option} names none", "leave it out to keep all")
        if option == "--device":
            return tuple(sorted(word.lower() for word in words))
        for one in sorted(words):
            if not (len(one) == 2 and one.isascii() and one.isalpha()):
                raise UsageError(f"there is no country {one!r}", "two letters each (ISO 3166), e.g. NL,BE,DE")
        return tuple(sorted({word.upper() for word in words}))


class Rule(NamedTuple):
    """A reason to drop events, as ``rules.toml`` declares it."""

    name: str
    description: str
    drops: str
    names: str = "NULL"
    needs: tuple[str, ...] = ()
    of_client: bool = False  # whether it looks at all events of a client


_DECLARED = tomllib.loads(Path(__file__).with_name("rules.toml").read_text())
STAGED = tuple(name for name in COLUMNS if not name.startswith("local_"))
MARKS: Mapping[str, str] = _DECLARED["marks"]
"""What is counted of all rows besides: among which of them."""


def rules_of(
    cleaning: Cleaning, since_us: int | None, until_us: int | None, database: Database
) -> list[Rule]:
    """Return the rules that are on, in their order, and set the variables of their SQL."""
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise UsageError("the period is empty: it ends before it begins", "check --since and --until")
    given = {
        "since": since_us,
        "until": until_us,
        "countries": list(cleaning.countries) or None,
        "keep_missing": cleaning.keep_missing_country,
        "devices": list(cleaning.devices) or None,
        "no_bots": not cleaning.bots or None,
        "bots": "|".join(BOT_WORDS),
        "no_duplicates": not cleaning.duplicates or None,
        "most_events": cleaning.most_events,
    }
    for name, value in given.items():
        database.rows(f"SET VARIABLE {name} = ?", [value])
    rules = (Rule(**one) for one in _DECLARED["rule"])
    on = (one for one in rules if not one.needs or any(given[name] is not None for name in one.needs))
    return [one._replace(drops=one.drops.replace("{same}", ", ".join(STAGED[1:]))) for one in on]


_RARE_DAY = 1e-4  # share of events at which the first or last days look like clocks that are wrong
_FAR, _FEW = 7, 0.05  # days without events, after which a small share of events is far from the others


def notes_of(
    about: Mapping[str, Any], counts: Mapping[str, int], hours: bool, database: Database
) -> list[str]:
    """Return what is odd in a log, in a fixed order."""
    events = about["events"]
    days = [(date.fromisoformat(day), n) for day, n in about["events_by_day"].items()]
    empty = [f"{day}" for day, n in days if not n]
    no_device = about["devices"].get(UNKNOWN, 0)
    facts = {
        **counts,
        **{name: about[name] for name in ("events", "clients", "visitors", "purchases")},
        "n_days": len(days),
        "n_empty": len(empty),
        "empty": ", ".join(empty[:5]) + (", …" if len(empty) > 5 else ""),
        "first_odd": _edge(days, events),
        "last_odd": _edge(days[::-1], events),
        "year": days[0][0].year,
        "hours": hours,
        "busy": counts["busiest"] / events,
        "no_device": no_device,
        "without": no_device / events,
        "no_channel": about["channels"].get(UNKNOWN, 0),
    }
    notes, given = _DECLARED["note"], ", ".join(f"? AS {name}" for name in facts)
    whens = ", ".join(f"({note['when']})" for note in notes)
    (holds,) = database.rows(f"SELECT {whens} FROM (SELECT {given})", list(facts.values()))
    return [note["text"].format(**facts) for note, is_so in zip(notes, holds, strict=True) if is_so]


def _edge(days: list[tuple[date, int]], total: int) -> str:
    """Describe the days at one end that hold next to nothing, or little and far from the others; nothing of none."""
    busy = [one for one in days if one[1]]
    seen = list(accumulate(n for _, n in busy))
    odd = [
        place
        for place, (n, (one, _), (after, _)) in enumerate(zip(seen, busy, busy[1:], strict=False), 1)
        if n < _RARE_DAY * total or (n <= _FEW * total and abs(after - one).days > _FAR)
    ]
    if not odd:
        return ""
    begin, *_, close = sorted(2 * [day for day, _ in busy[: odd[-1]]])
    fix = f"--since {close + timedelta(days=1)}" if days[0] < days[-1] else f"--until {begin}"
    span = f"{begin}" if begin == close else f"{begin} to {close}"
    return f"({span}) hold only {seen[odd[-1] - 1]:,} of {total:,} events: wrong clocks? {fix}"
