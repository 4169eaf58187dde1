"""Features once more, in plain Python and one session at a time, from canonical events: what tests compare with."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from session_oracle import cut

_DAY_US = 86_400 * 1_000_000


@dataclass
class Session:
    """A session as its events say."""

    events: list[dict[str, Any]]

    @property
    def session_id(self) -> int:
        return int(self.events[0]["event_id"])

    @property
    def start(self) -> int:
        return int(self.events[0]["t_us"])

    @property
    def end(self) -> int:
        return int(self.events[-1]["t_us"])

    @property
    def pages(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["action"] == "page"]

    @property
    def visitor(self) -> str | None:
        return next((event["visitor_id"] for event in self.events if event["visitor_id"]), None)

    @property
    def device(self) -> str:
        return str(self.events[0]["device"])

    @property
    def bought(self) -> dict[str, Any] | None:
        return next((event for event in self.events if event["is_purchase"]), None)

    def _pages_before(self, event: Mapping[str, Any]) -> int:
        moment = (event["t_us"], event["event_id"])
        return sum((page["t_us"], page["event_id"]) < moment for page in self.pages)

    @property
    def pages_before_purchase(self) -> int | None:
        return None if self.bought is None else self._pages_before(self.bought)

    @property
    def pages_before_visitor(self) -> int | None:
        first = next((event for event in self.events if event["visitor_id"]), None)
        return None if first is None else self._pages_before(first)

    @property
    def visitor_known_us(self) -> int:
        """From when on the session counts as its visitor's."""
        return self.start if self.pages_before_visitor == 0 else self.end

    @property
    def purchase_known_us(self) -> int:
        assert self.bought is not None
        before, bought = self.pages_before_visitor, self.pages_before_purchase
        assert before is not None
        assert bought is not None
        return int(self.bought["t_us"]) if before == 0 or before < bought else self.end


def sessions_of(events: Iterable[dict[str, Any]]) -> list[Session]:
    """Sessions of clients, split at more than 30 minutes, by rising id."""
    return [Session(part) for part in cut(events)]


def known_at(session: Session, step: int, all_sessions: Sequence[Session]) -> dict[str, Any]:
    """Every feature that needs no fitting, and what the fitted ones are made of, as of ``step`` pages."""
    pages = session.pages[:step]
    dwells = [(after["t_us"] - before["t_us"]) / 1e6 for before, after in pairwise(pages)]
    mean = sum(dwells) / len(dwells) if dwells else math.nan
    known: dict[str, Any] = {
        "dwell-mean": mean,
        "dwell-deviation": math.sqrt(sum((one - mean) ** 2 for one in dwells) / len(dwells))
        if dwells
        else math.nan,
        "pages": float(len(pages)),
        "page_types": [page["page_type"] or "unknown" for page in pages],
        "channel": session.events[0]["channel"],
        "device": session.device,
        "start-hour": float(session.events[0]["local_hour"]),
        "week_day": session.events[0]["local_dow"],
    }
    before = session.pages_before_visitor
    if before is None or not (before == 0 or before < step):
        return known
    history = history_of(session, all_sessions)
    last = history["last_purchase_us"]
    names = [f"device_before_{number}" for number in (4, 3, 2, 1)]
    return known | {
        "orders": float(history["orders"]),
        "days-since-purchase": math.nan if last is None else (session.start - last) / _DAY_US,
        "days-since-purchase:never": float(last is None),
        "sessions": float(history["sessions"]),
        "devices": float(history["devices"]),
        "device_sequence": [history[name] for name in names if history[name] is not None] + [session.device],
        "switch-probability": (history["switches"] + 0.5) / (history["pairs"] + 2),
        "previous_device": history["device_before_1"] or "",
        "history-days": (session.start - min(other.start for other in all_sessions)) / _DAY_US,
    }


def history_of(session: Session, all_sessions: Sequence[Session]) -> dict[str, Any]:
    """What was known of the session's visitor when it began."""
    own = [other for other in all_sessions if other.visitor == session.visitor]
    earlier = [other for other in own if other.visitor_known_us < session.start]
    earlier.sort(key=lambda other: (other.visitor_known_us, other.session_id))
    purchases = [
        other.bought["t_us"] for other in own if other.bought and other.purchase_known_us < session.start
    ]
    devices = [other.device for other in earlier]
    pairs = list(pairwise(devices))
    last_four = [*reversed(devices[-4:]), None, None, None, None]
    return {
        "sessions": len(earlier),
        "earlier": devices,
        "orders": len(purchases),
        "last_purchase_us": max(purchases, default=None),
        "devices": len({*devices, session.device}),
        "switches": sum(one != other for one, other in pairs),
        "pairs": len(pairs),
        **{f"device_before_{number}": last_four[number - 1] for number in (1, 2, 3, 4)},
    }


def log_ratio(
    sequence: Sequence[str], training: Sequence[tuple[Sequence[str], bool]], smoothing: float = 1.0
) -> float:
    """ln P(sequence) of buyers' chain less that of others', of training sequences and their labels."""
    states = {state for one, _ in training for state in one}
    counts: dict[bool, Counter[tuple[str | None, str]]] = {False: Counter(), True: Counter()}
    for one, label in training:
        counts[label].update(zip([None, *one], one, strict=False))

    def probability(label: bool, before: str | None, after: str) -> float:
        whole = sum(counts[label][before, other] for other in states)
        return (counts[label][before, after] + smoothing) / (whole + smoothing * len(states))

    total = 0.0
    for before, after in zip([None, *sequence], sequence, strict=False):
        if after in states and (before is None or before in states):
            total += math.log(probability(True, before, after)) - math.log(probability(False, before, after))
    return total
