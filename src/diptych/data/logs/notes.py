"""Where a person should look in an imported log: one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta

from diptych.data.logs.bucket import BucketCounts
from diptych.data.logs.canonical import MARKS
from diptych.data.logs.counts import LogCounts
from diptych.data.logs.schema import UNKNOWN

__all__ = ["log_notes"]

_RARE_DAY = 1e-4  # share of events at which the first or last days look like clocks that are wrong
_FAR = 7  # days without events, after which few events are far from the others
_FEW = 0.05
_BUSY = 0.01  # share of events of one client
_BUSY_EVENTS = 1000
_OLD = 1990
_SHOWN = 5


def log_notes(counts: LogCounts, people: BucketCounts, marks: Mapping[str, int]) -> list[str]:
    """What is odd, in a fixed order."""
    return [
        *_days(counts.days),
        *_clocks(counts),
        *_rows(marks),
        *_people(counts, people),
        *_words(counts, people.events),
    ]


def _days(days: Mapping[date, int]) -> Iterator[str]:
    empty = [day for day, events in days.items() if not events]
    if empty:
        shown = ", ".join(map(str, empty[:_SHOWN])) + (", …" if len(empty) > _SHOWN else "")
        yield f"{len(empty):,} of {len(days):,} days have no event: {shown}"
    ordered = list(days.items())
    total = sum(days.values())
    for which, edge in (("first", ordered), ("last", ordered[::-1])):
        odd = _edge(edge, total)
        if odd:
            events = sum(n for _, n in odd)
            until, from_day = max(day for day, _ in odd) + timedelta(days=1), min(day for day, _ in odd)
            way_out = f"--since {until}" if which == "first" else f"--until {from_day}"
            span = f"{from_day}" if len(odd) == 1 else f"{from_day} to {until - timedelta(days=1)}"
            yield f"the {which} days ({span}) hold only {events:,} of {total:,} events: wrong clocks? {way_out}"
    if min(days).year < _OLD:
        yield f"events lie in {min(days).year}: check the format of times (--time-format)"


def _clocks(counts: LogCounts) -> Iterator[str]:
    if counts.repeated:
        yield (
            f"{counts.repeated:,} events lie in an hour that the clocks of --times-in repeat: where the log names no "
            "zone, the later one was taken"
        )


def _edge(days: list[tuple[date, int]], total: int) -> list[tuple[date, int]]:
    """The days at one end that hold next to nothing, or little and far from the others."""
    odd, seen, gap = 0, 0, 0
    for place, (_, events) in enumerate(days):
        if events:
            if place and gap >= _FAR and seen <= _FEW * total:
                odd = place
            gap = 0
        else:
            gap += 1
        seen += events
        if seen < _RARE_DAY * total:
            odd = place + 1
        elif seen > _FEW * total:
            break
    return [one for one in days[:odd] if one[1]]


def _rows(marks: Mapping[str, int]) -> Iterator[str]:
    for name, (_, says) in MARKS.items():
        if marks.get(name):
            yield f"{marks[name]:,} {says}"


def _people(counts: LogCounts, people: BucketCounts) -> Iterator[str]:
    if people.shared:
        yield f"{people.shared:,} of {people.clients:,} clients have several visitors: shared browsers?"
    share = people.busiest / people.events
    if people.busiest >= _BUSY_EVENTS and share >= _BUSY and people.clients > 1:
        yield f"one client has {people.busiest:,} events, {share:.1%} of all: a bot? --most-events drops such clients"
    if not counts.visitors:
        yield "no visitor is known: every session will be anonymous"


def _words(counts: LogCounts, events: int) -> Iterator[str]:
    unknown = counts.devices.get(UNKNOWN, 0)
    if unknown == events:
        yield "no device is known: statistics of devices will have one group, and features of devices say nothing"
    elif unknown:
        yield f"the device of {unknown:,} events ({unknown / events:.1%}) is unknown"
    if counts.channels.get(UNKNOWN, 0) == events:
        yield "no channel is known"
    if not counts.purchases:
        yield "a log without a purchase: statistics of classes will be empty; nothing can be trained"
