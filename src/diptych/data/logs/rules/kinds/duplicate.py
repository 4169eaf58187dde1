"""Events that were logged twice."""

from __future__ import annotations

from diptych.data.logs.canonical import COMPARED
from diptych.data.logs.rules.declaration import RULES, BucketRule

__all__: list[str] = []

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
