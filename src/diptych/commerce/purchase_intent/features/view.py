"""What is known of sessions, as arrays: the one form from which all features are computed.

A million sessions of a log and the one session that runs just now are both a view, so that training and serving
cannot differ. A view of step k is cut first: what lies behind page k is not in it, so no feature can look there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from diptych.commerce.logs.schema import SECOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

NO_PAGE = -1  # the code of a page that was not opened, or lies behind the step
NOTHING = ""  # the text of an earlier session that does not exist, or of a visitor who is not known
DAY_US = 86_400 * SECOND


@dataclass(frozen=True)
class SessionsView:
    """n sessions.

    Attributes:
        columns: name → (n,) array of what is known at a session's start, see :data:`COLUMNS`. Texts are arrays of
            ``str`` objects, numbers float64 with NaN where there is none.
        page_types: (n, steps) int32 codes in ``vocabulary``, its length for a type that it does not have,
            :data:`NO_PAGE` where there is no page. Pages begin at the left.
        page_times: (n, steps) int64 microseconds; 0 where there is no page.
        vocabulary: page types in the order of their codes.
        labels: (n,) bool, true where the session ends in a purchase; None where that is not known yet.
        pages_before_purchase: (n,) float64 pages opened before the first purchase, infinity where there was none;
            None where that is not known. Only fitting looks at it.
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
        """Return some of the sessions, by number or by mask."""
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
        """Return what is known once ``step`` pages are open."""
        return replace(self, page_types=self.page_types[:, :step], page_times=self.page_times[:, :step])

    def until_purchase(self) -> SessionsView:
        """Return the view without the types of pages behind a purchase: none of them teaches what leads to one."""
        if self.pages_before_purchase is None:
            return self
        behind = np.arange(self.page_types.shape[1]) >= self.pages_before_purchase[:, None]
        return replace(self, page_types=np.where(behind, NO_PAGE, self.page_types))


def encode_pages(sessions: Sequence[Sequence[str]], vocabulary: Sequence[str], steps: int) -> np.ndarray:
    """Return (sessions, steps) int32 codes of page types by name, as :attr:`SessionsView.page_types`."""
    code_of = {name: code for code, name in enumerate(vocabulary)}
    codes = np.full((len(sessions), steps), NO_PAGE, dtype=np.int32)
    for row, types in enumerate(sessions):
        for place, name in enumerate(types[:steps]):
            codes[row, place] = code_of.get(name, len(vocabulary))
    return codes


EARLIER_DEVICES = tuple(f"device_before_{number}" for number in range(1, 5))
"""Devices of the visitor's last sessions before this one, latest first; how many is ours."""


class ViewColumn(NamedTuple):
    """A column of a view: whatever makes a view, of a log or of a running session, fills these and no other."""

    name: str
    kind: Literal["text", "number"]  # number: float64 with NaN
    group: Literal["session", "history"]  # of the session itself, or of the visitor's history
    expression: Callable[[ir.Table], ir.Value] | None = None  # of a session and its history; None: the column

    def value(self, row: ir.Table) -> ir.Value:
        """Return its Ibis expression of sessions with their history."""
        found = row[self.name] if self.expression is None else self.expression(row)
        return found.cast("float64") if self.kind == "number" else found.fill_null(NOTHING)


COLUMNS = (
    ViewColumn("channel", "text", "session"),  # how the visitor came
    ViewColumn("device", "text", "session"),
    ViewColumn("start_hour", "number", "session"),  # local, 0 to 23
    ViewColumn("start_dow", "number", "session"),  # local week day, 0 is Monday
    ViewColumn("orders", "number", "history"),  # sessions with a purchase that came before this start
    ViewColumn(  # from the latest of them to this start; NaN for none
        "days_since_purchase", "number", "history", lambda row: (row.start_us - row.last_purchase_us) / DAY_US
    ),
    ViewColumn("sessions", "number", "history"),  # before this one
    ViewColumn("devices", "number", "history"),  # different device types of these sessions and of this one
    *(ViewColumn(name, "text", "history") for name in EARLIER_DEVICES),
    ViewColumn("switches", "number", "history"),  # pairs of consecutive earlier sessions on two device types
    ViewColumn("pairs", "number", "history"),  # pairs of consecutive earlier sessions
    ViewColumn(  # from the log's first session to this start
        "history_days", "number", "history", lambda row: (row.start_us - row.since_us) / DAY_US
    ),
)

PURPOSE = "a table of features"

SESSION = (
    "session_id",
    "person",
    "start_us",
    "end_us",
    "label",
    "pages_before_purchase",
    "pages_before_identified",
)
"""Columns that every table of features has before those of its view."""

HISTORY_COLUMNS = tuple(column.name for column in COLUMNS if column.group == "history")


def empty_column(kind: str, n: int) -> np.ndarray:
    """Return (n,) values of a column of that kind without a value: NaN, or :data:`NOTHING`."""
    return np.full(n, np.nan) if kind == "number" else text_array([NOTHING] * n)


def text_array(values: Iterable[str]) -> np.ndarray:
    """Return (n,) ``str`` objects."""
    return np.fromiter(values, dtype=object)
