"""Views of a few sessions, said in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.commerce.logs.log import SECOND
from diptych.commerce.purchase_intent.features.fitting import (
    COLUMNS,
    NOTHING,
    SessionsView,
    column,
)


def small_view(
    pages: Sequence[Sequence[tuple[float, str]]],
    columns: Mapping[str, Sequence[Any]] | None = None,
    labels: Sequence[bool] | None = None,
    before_purchase: Sequence[float] | None = None,
) -> SessionsView:
    """Sessions of (seconds, page type); columns that are not given are empty."""
    n = len(pages)
    steps = max((len(one) for one in pages), default=0)
    types = np.full((n, steps), NOTHING, dtype=object)
    times = np.zeros((n, steps), dtype=np.int64)
    for row, one in enumerate(pages):
        times[row, : len(one)] = [round(seconds * SECOND) for seconds, _ in one]
        types[row, : len(one)] = [name for _, name in one]
    filled: dict[str, np.ndarray] = {}
    for name, kind in COLUMNS.items():
        filled[name] = column(kind, n, (columns or {}).get(name))
    return SessionsView(
        filled,
        types,
        times,
        None if labels is None else np.array(labels, dtype=bool),
        None if before_purchase is None else np.array(before_purchase, dtype=np.float64),
    )
