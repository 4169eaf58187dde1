"""Clients that do more than a person can."""

from __future__ import annotations

from diptych.data.logs.cleaning import Cleaning
from diptych.data.logs.rules.declaration import RULES, BucketRule

__all__: list[str] = []


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
