"""What is known of sessions, as arrays: the one form from which all features are computed.

A million sessions of a log and the one session that runs just now are both a view, so that training and serving
cannot differ. A view of step k is cut first: what lies behind page k is not in it, so no feature can look there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

NO_PAGE = -1
"""The code of a page that was not opened, or lies behind the step."""


@dataclass(frozen=True)
class SessionsView:
    """n sessions.

    Attributes:
        columns: name → (n,) array of what is known at a session's start: static and history columns, see
            :mod:`diptych.commerce.purchase_intent.features.columns`. Texts are arrays of ``str`` objects,
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
