"""Cleaning: the rules that drop events, and notes of what is odd in those that are left.

Rules have a fixed order, and a row is counted under the first that drops it: so the rows that were read are the
events that were kept and what all rules dropped together.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationInfo, field_validator

from diptych.commerce.logs.database import literal, literals
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
    names: str = ""
    needs: str = ""
    of_client: bool = False  # whether it looks at all events of a client


_DECLARED = tomllib.loads(Path(__file__).with_name("rules.toml").read_text())
STAGED = tuple(name for name in COLUMNS if not name.startswith("local_"))


def rules_of(cleaning: Cleaning, since_us: int | None, until_us: int | None) -> list[Rule]:
    """Return the rules that are on, in their order: those of rows first."""
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise UsageError("the period is empty: it ends before it begins", "check --since and --until")
    given = {
        "period": (since_us, until_us) != (None, None),
        "since": "NULL" if since_us is None else since_us,
        "until": "NULL" if until_us is None else until_us,
        "countries": literals(cleaning.countries),
        "drop_missing": not cleaning.keep_missing_country,
        "devices": literals(cleaning.devices),
        "no_bots": not cleaning.bots,
        "bots": literal("|".join(BOT_WORDS)),
        "no_duplicates": not cleaning.duplicates,
        "columns": ", ".join(STAGED[1:]),
        "most_events": cleaning.most_events,
    }
    rules = (Rule(**one) for one in _DECLARED["rule"] if given.get(one.get("needs"), True))
    return [
        one._replace(drops=one.drops.format_map(given), names=one.names.format_map(given)) for one in rules
    ]


MARKS: Mapping[str, Mapping[str, str]] = _DECLARED["mark"]
"""What is counted besides: among which rows, and what a note says."""

_RARE_DAY = 1e-4  # share of events at which the first or last days look like clocks that are wrong
_FAR, _FEW = 7, 0.05  # days without events, after which a small share of events is far from the others
_BUSY, _BUSY_EVENTS = 0.01, 1000  # share of all events, and events, of one client


def notes_of(
    about: Mapping[str, Any], marks: Mapping[str, int], shared: int, busiest: int, hours: bool
) -> Iterator[str]:
    """Yield what is odd in a log, in a fixed order."""
    events, days = (
        about["events"],
        [(date.fromisoformat(day), n) for day, n in about["events_by_day"].items()],
    )
    empty = [str(day) for day, n in days if not n]
    unknown, share, year = about["devices"].get(UNKNOWN, 0), busiest / events, days[0][0].year
    if empty:
        shown = ", ".join(empty[:5]) + (", …" if len(empty) > 5 else "")
        yield f"{len(empty):,} of {len(days):,} days have no event: {shown}"
    for end, odd in (("first", _edge(days, events)), ("last", _edge(days[::-1], events)[::-1])):
        if odd:
            begin, close, few = odd[0][0], odd[-1][0], sum(n for _, n in odd)
            fix = f"--since {close + timedelta(days=1)}" if end == "first" else f"--until {begin}"
            span = f"{begin}" if len(odd) == 1 else f"{begin} to {close}"
            yield f"the {end} days ({span}) hold only {few:,} of {events:,} events: wrong clocks? {fix}"
    if year < 1990:
        yield f"events lie in {year}: check the format of times (--time-format)"
    yield from (f"{n:,} {MARKS[name]['note']}" for name, n in marks.items() if n)
    is_busy = busiest >= _BUSY_EVENTS and share >= _BUSY and about["clients"] > 1
    notes = {
        "the shop's zone is not known: days and hours are those of UTC (--zone)": not hours,
        f"{shared:,} of {about['clients']:,} clients have several visitors: shared browsers?": shared,
        f"one client has {busiest:,} events, {share:.1%} of all: a bot? --most-events drops such clients": is_busy,
        "no visitor is known: every session will be anonymous": not about["visitors"],
        "no device is known: statistics of devices will have one group, and features of devices say nothing": (
            unknown == events
        ),
        f"the device of {unknown:,} events ({unknown / events:.1%}) is unknown": 0 < unknown < events,
        "no channel is known": about["channels"].get(UNKNOWN, 0) == events,
        "a log without a purchase: statistics of classes will be empty; nothing can be trained": (
            not about["purchases"]
        ),
    }
    yield from (note for note, holds in notes.items() if holds)


def _edge(days: list[tuple[date, int]], total: int) -> list[tuple[date, int]]:
    """Return the days at one end that hold next to nothing, or little and far from the others."""
    odd, seen, gap = 0, 0, 0
    for place, (_, events) in enumerate(days):
        if events and place and gap >= _FAR and seen <= _FEW * total:
            odd = place
        gap = 0 if events else gap + 1
        seen += events
        if seen < _RARE_DAY * total:
            odd = place + 1
        elif seen > _FEW * total:
            break
    return [one for one in days[:odd] if one[1]]
