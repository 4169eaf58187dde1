"""Random small logs with everything that features have to cope with: late log-ins, overlaps, ties, purchases."""

from __future__ import annotations

import random
from typing import Any


def random_events(seed: int, visitors: int = 5, sessions: int = 40) -> list[dict[str, Any]]:
    """Events as :func:`events.write_log` takes them, in no order.

    Several clients per visitor whose sessions overlap and often begin at the same second; log-ins on arrival, at
    any event, or never; purchases anywhere; page types that are missing; events at the same time.
    """
    draw = random.Random(seed)
    events: list[dict[str, Any]] = []
    for _ in range(sessions):
        visitor = draw.randrange(visitors)
        t = draw.randrange(0, 4 * 86_400, 600)
        length = draw.choice([3, 12, 13, 20, 25])
        login = draw.choice([0, 0, None, draw.randrange(length)])
        bought = draw.choice([None, None, draw.randrange(length)])
        always = {
            "client_id": f"c{visitor}-{draw.randrange(3)}",
            "device": draw.choice(["pc", "tablet", "smartphone"]),
            "channel": draw.choice(["paid", "direct"]),
        }
        for number in range(length):
            known = f"v{visitor}" if login is not None and number >= login else None
            action = draw.choice(["page"] * 6 + ["query", "other"]) if length > 15 else "page"
            page_type = draw.choice(["home", "product", "basket", None]) if action == "page" else None
            events.append({**always, "t": t, "visitor_id": known, "action": action, "page_type": page_type})
            if bought == number:
                events.append(
                    {**always, "t": t, "visitor_id": known, "action": "purchase", "is_purchase": True}
                )
            t += draw.choice([0, 5, 60, 200])
    draw.shuffle(events)
    return events
