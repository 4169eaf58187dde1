"""What is known of sessions, as arrays: the one form from which all features are computed.

A million sessions of a log and the one session that runs just now are both a view, so that training and serving
cannot differ. A view of step k is cut first: what lies behind page k is not in it, so no feature can look there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.commerce.logs.schema import read_columns

NOTHING = (
    ""  # the type of a page that was not opened, an earlier session that does not exist, an unknown visitor
)
OTHER_PAGE = "(other)"  # page types that are not among the most frequent
PURPOSE = "a table of features"


class ViewColumn(NamedTuple):
    """A column of a view, as ``columns.toml`` declares it."""

    name: str
    kind: str  # text or number
    group: str  # session, or the visitor's history


_DECLARED = read_columns(Path(__file__).with_name("columns.toml"))
COLUMNS = tuple(ViewColumn(name, kind, group) for group, of in _DECLARED.items() for name, kind in of.items())
HISTORY_COLUMNS = tuple(_DECLARED["history"])
EARLIER_DEVICES = tuple(name for name in HISTORY_COLUMNS if name.startswith("device_before_"))


@dataclass(frozen=True)
class SessionsView:
    """n sessions.

    Attributes:
        columns: name → (n,) array of what is known at a session's start, see :data:`COLUMNS`. Texts are arrays of
            ``str`` objects, numbers float64 with NaN where there is none.
        page_types: (n, steps) ``str`` objects, :data:`NOTHING` where there is no page. Pages begin at the left.
        page_times: (n, steps) int64 microseconds; 0 where there is no page.
        labels: (n,) bool, true where the session ends in a purchase; None where that is not known yet.
        pages_before_purchase: (n,) float64 pages opened before the first purchase, infinity where there was none;
            None where that is not known. Only fitting looks at it.
    """

    columns: Mapping[str, np.ndarray]
    page_types: np.ndarray
    page_times: np.ndarray
    labels: np.ndarray | None = field(default=None, compare=False)
    pages_before_purchase: np.ndarray | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.page_types)

    def take(self, rows: np.ndarray) -> SessionsView:
        """Return some of the sessions, by number or by mask."""
        names = ("page_types", "page_times", "labels", "pages_before_purchase")
        taken = {name: one[rows] for name in names if (one := getattr(self, name)) is not None}
        return replace(self, columns={name: one[rows] for name, one in self.columns.items()}, **taken)

    def until(self, step: int) -> SessionsView:
        """Return what is known once ``step`` pages are open."""
        return replace(self, page_types=self.page_types[:, :step], page_times=self.page_times[:, :step])

    def until_purchase(self) -> SessionsView:
        """Return the view without the types of pages behind a purchase: none of them teaches what leads to one."""
        if self.pages_before_purchase is None:
            return self
        behind = np.arange(self.page_types.shape[1]) >= self.pages_before_purchase[:, None]
        return replace(self, page_types=np.where(behind, NOTHING, self.page_types))


def column(kind: str, n: int, values: Iterable[Any] | None = None) -> np.ndarray:
    """Return (n,) values of a column of that kind; without values NaN, or :data:`NOTHING`."""
    if kind == "number":
        return np.full(n, np.nan) if values is None else np.fromiter(values, np.float64)
    return text_array([NOTHING] * n if values is None else values)


def text_array(values: Iterable[str]) -> np.ndarray:
    """Return (n,) ``str`` objects."""
    return np.fromiter(values, dtype=object)
