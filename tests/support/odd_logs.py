"""Logs with everything that goes wrong in logs: to hold engines against a plain oracle."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

ODD_QUERIES = (
    *("Red  Shoes", " red\tshoes ", "red\u00a0shoes", "RED\u3000SHOES\n", "İstanbul", "istanbul"),
    *("STRASSE", "Straße", "STRAẞE", "ΟΔΟΣ", "οδος", "οδός"),
    *("tv f", "very fluffy", "\x0b\x1cx\x85", "'; DROP TABLE sessions; --", "a\\b", "%s {} $1"),
    *("😀 Emoji", "   ", "", None),
)
"""Texts that engines treat differently if they are let."""

_HALF_HOUR = 1800
_ACTIONS = ("page", "page", "page", "query", "add", "remove", "purchase", "other")


def _event(action: str, query: str | None, bought: bool, **more: Any) -> dict[str, Any]:
    """An event in keeping with its action."""
    return more | {
        "action": action,
        "query": query if action == "query" else None,
        "page_type": more["page_type"] if action == "page" else None,
        "is_purchase": action == "purchase" or (action == "page" and bought),
    }


@st.composite
def events_of_shops(draw: st.DrawFn, most: int = 40) -> list[dict[str, Any]]:
    """Events of a few clients and visitors: ties, gaps of exactly half an hour and of a microsecond more."""
    t, events = {client: 0.0 for client in "abc"}, []
    for _ in range(draw(st.integers(0, most))):
        client = draw(st.sampled_from("abc"))
        gap = draw(st.sampled_from([0, 0, 1, 60, _HALF_HOUR, _HALF_HOUR + 1e-6, _HALF_HOUR - 1e-6, 7200, -5]))
        t[client] += gap
        events.append(
            _event(
                draw(st.sampled_from(_ACTIONS)),
                draw(st.sampled_from(ODD_QUERIES)),
                draw(st.sampled_from([False, False, True])),
                t=1_570_000_000 + t[client],
                client_id=client,
                visitor_id=draw(st.sampled_from([None, None, None, "u", "v", "a"])),
                given_session=draw(st.sampled_from([None, "1", "2"])),
                device=draw(st.sampled_from(["pc", "tv", "tablet"])),
                channel=draw(st.sampled_from(["direct", "paid"])),
                page_type=draw(st.sampled_from([None, "home", "product"])),
            )
        )
    return [event | {"event_id": number} for number, event in enumerate(draw(st.permutations(events)))]


def random_events(
    seed: int, clients: int, devices: Sequence[str] = ("pc", "smartphone", "tv")
) -> list[dict[str, Any]]:
    """Events of many clients, of whom two each may be one visitor; long sessions among them."""
    dice = random.Random(seed)
    events = []
    for client in range(clients):
        t, device = 1_570_000_000 + dice.randrange(86_400 * 7), dice.choice(devices)
        for _ in range(dice.randrange(1, 4)):
            known_from = dice.choice([0, 3, 1000, 1000])
            for place in range(dice.choice([1, 2, 5, 20])):
                action = dice.choices(_ACTIONS, (9, 9, 9, 4, 2, 1, 1, 1))[0]
                events.append(
                    _event(
                        action,
                        dice.choice(ODD_QUERIES),
                        dice.random() < 0.02,
                        t=t,
                        client_id=f"c{client}",
                        visitor_id=f"v{client // 2}" if place >= known_from else None,
                        given_session=None,
                        device=dice.choice(devices) if dice.random() < 0.2 else device,
                        channel=dice.choice(["direct", "paid", "organic"]),
                        page_type=dice.choice([None, "home", "product", "basket"]),
                    )
                )
                t += dice.choice([0, 1, 30, 600, _HALF_HOUR])
            t += dice.choice([_HALF_HOUR + 1e-6, 4000, 90_000])
    dice.shuffle(events)
    return [event | {"event_id": number} for number, event in enumerate(events)]
