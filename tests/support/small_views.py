"""Views of a few sessions, said in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.features.fitting import (
    COLUMNS,
    NOTHING,
    SessionsView,
    text_array,
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
    for column in COLUMNS:
        given = (columns or {}).get(column.name)
        if column.kind == "text":
            filled[column.name] = text_array([NOTHING] * n if given is None else given)
        else:
            filled[column.name] = np.full(n, np.nan) if given is None else np.array(given, dtype=np.float64)
    return SessionsView(
        filled,
        types,
        times,
        None if labels is None else np.array(labels, dtype=bool),
        None if before_purchase is None else np.array(before_purchase, dtype=np.float64),
    )
