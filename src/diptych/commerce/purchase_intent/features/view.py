"""What is known of sessions, as arrays: the one form from which all features are computed.

A million sessions of a log and the one session that runs just now are both a view, so that training and serving
cannot differ. A view of step k is cut first: what lies behind page k is not in it, so no feature can look there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

NO_PAGE = -1
"""The code of a page that was not opened, or lies behind the step."""


@dataclass(frozen=True)
class SessionsView:
    """n sessions.

    Attributes:
        columns: name → (n,) array of what is known at a session's start: static and history columns, see
            :mod:`diptych.commerce.purchase_intent.features.view`. Texts are arrays of ``str`` objects,
            numbers float64 with NaN where there is none.
        page_types: (n, steps) int32 codes in ``vocabulary``, its length for a type that it does not have,
            :data:`NO_PAGE` where there is no page. Pages begin at the left.
        page_times: (n, steps) int64 microseconds; 0 where there is no page.
        vocabulary: page types in the order of their codes.
        labels: (n,) bool, whether the session ends in a purchase; None where nobody knows yet.
        pages_before_purchase: (n,) float64, how many pages were opened before the first purchase, infinity
            where there was none; None where nobody knows. Only fitting looks at it: no page behind a purchase
            teaches what leads to one.
    """

    columns: Mapping[str, np.ndarray]
    page_types: np.ndarray
    page_times: np.ndarray
    vocabulary: tuple[str, ...] = ()
    labels: np.ndarray | None = field(default=None, compare=False)
    pages_before_purchase: np.ndarray | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.page_types)

    def take(self, rows: np.ndarray) -> SessionsView:
        """Some of the sessions, by number or by mask."""
        before = self.pages_before_purchase
        return replace(
            self,
            columns={name: values[rows] for name, values in self.columns.items()},
            page_types=self.page_types[rows],
            page_times=self.page_times[rows],
            labels=None if self.labels is None else self.labels[rows],
            pages_before_purchase=None if before is None else before[rows],
        )

    def until(self, step: int) -> SessionsView:
        """What is known once ``step`` pages are open: later pages are gone."""
        return replace(self, page_types=self.page_types[:, :step], page_times=self.page_times[:, :step])


def encode_pages(sessions: Sequence[Sequence[str]], vocabulary: Sequence[str], steps: int) -> np.ndarray:
    """Page types by name to codes.

    Returns:
        (sessions, steps) int32, as :attr:`SessionsView.page_types`.
    """
    code_of = {name: code for code, name in enumerate(vocabulary)}
    codes = np.full((len(sessions), steps), NO_PAGE, dtype=np.int32)
    for row, types in enumerate(sessions):
        for place, name in enumerate(types[:steps]):
            codes[row, place] = code_of.get(name, len(vocabulary))
    return codes


# The columns of a view: what is known of a session when it begins.
#
# Who makes a view, of a log or of the session that runs just now, fills these columns and no other; features name
# those that they need.


LAST_DEVICES = 5
"""How many sessions the device sequence is made of, the present one among them; ours."""

NOTHING = ""
"""A text that is not there: of an earlier session that there was not, or of a visitor who is not known."""


@dataclass(frozen=True)
class ViewColumn:
    """One column."""

    name: str  # of the column
    kind: Literal["text", "number"]  # text, or number: float64 with NaN
    group: Literal["session", "history"]  # of the session itself, or of the visitor's history
    meaning: str  # one line


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
