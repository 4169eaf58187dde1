"""The columns of a view: what is known of a session when it begins.

Who makes a view, of a log or of the session that runs just now, fills these columns and no other; features name
those that they need.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

LAST_DEVICES = 5
"""How many sessions the device sequence is made of, the present one among them; ours."""

NOTHING = ""
"""A text that is not there: of an earlier session that there was not, or of a visitor who is not known."""


@dataclass(frozen=True)
class ViewColumn:
    """One column.

    Attributes:
        name: of the column.
        kind: text, or number: float64 with NaN.
        group: of the ``session`` itself, or of the visitor's ``history``.
        meaning: one line.
    """

    name: str
    kind: Literal["text", "number"]
    group: Literal["session", "history"]
    meaning: str


EARLIER_DEVICES = tuple(f"device_before_{number}" for number in range(1, LAST_DEVICES))
"""Devices of the visitor's last sessions before this one, latest first."""

COLUMNS = (
    ViewColumn("channel", "text", "session", "how the visitor came"),
    ViewColumn("device", "text", "session", "device type"),
    ViewColumn("start_hour", "number", "session", "local hour of the start, 0 to 23"),
    ViewColumn("start_dow", "number", "session", "local week day of the start, 0 is Monday"),
    ViewColumn(
        "orders",
        "number",
        "history",
        "the visitor's sessions with a purchase, where it came before this start",
    ),
    ViewColumn(
        "days_since_purchase", "number", "history", "from the latest of these purchases to this start; or NaN"
    ),
    ViewColumn("sessions", "number", "history", "the visitor's sessions before this one"),
    ViewColumn("devices", "number", "history", "different device types of these sessions and of this one"),
    *(
        ViewColumn(name, "text", "history", f"device type of the visitor's session {number} before this one")
        for number, name in enumerate(EARLIER_DEVICES, start=1)
    ),
    ViewColumn("switches", "number", "history", "pairs of consecutive earlier sessions on two device types"),
    ViewColumn("pairs", "number", "history", "pairs of consecutive earlier sessions"),
    ViewColumn("history_days", "number", "history", "from the log's first session to this start"),
)

STATIC_COLUMNS = tuple(column.name for column in COLUMNS if column.group == "session")
HISTORY_COLUMNS = tuple(column.name for column in COLUMNS if column.group == "history")


def empty_column(kind: str, n: int) -> np.ndarray:
    """(n,) values of a column of that kind that say nothing: NaN, or :data:`NOTHING`."""
    if kind == "number":
        return np.full(n, np.nan)
    return text_array([NOTHING] * n)


def text_array(values: Iterable[str]) -> np.ndarray:
    """(n,) array of ``str`` objects."""
    texts = list(values)
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array
