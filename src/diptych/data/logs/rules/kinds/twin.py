"""Events that the log tells once more, and says less of them: a page view beside that of the product."""

from __future__ import annotations

from diptych.data.logs.rules.declaration import RULES, BucketRule

__all__: list[str] = []

_DROPS = """
    SELECT event_id FROM events WHERE is_twin AND address IS NOT NULL AND (client_id, t_us, address) IN
        (SELECT (client_id, t_us, address) FROM events WHERE NOT is_twin AND action = 'page' AND address IS NOT NULL)"""

RULES.add(
    BucketRule(
        "twin",
        "a page view that another one of the same client, time and address tells in more detail",
        90,
        lambda cleaning: True,
        lambda cleaning: _DROPS,
    )
)
