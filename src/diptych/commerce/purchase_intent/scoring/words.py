"""Values and effects of features in plain words."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from diptych.commerce.purchase_intent.features.columns import NOTHING
from diptych.commerce.purchase_intent.features.declaration import Feature
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.commerce.purchase_intent.scoring.score import Reason

_WEEK_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_AROUND = ("start_hour", "start_dow")
"""Numbers that go around: their middle means nothing, their most frequent value does."""

_MOST = 1000.0

_LONGEST = 60
"""Characters of a text that are shown."""


def value_in_words(feature: Feature, view: SessionsView, columns: np.ndarray) -> str:
    """A feature's value in a view of one session.

    Args:
        columns: (columns,) the feature's own in the matrix.
    """
    raw = _raw(feature, view, columns[None])
    if raw is None:
        return ", ".join(f"{value:.4g}" for value in columns)
    return _in_words(feature, raw.tolist()[0])


def typical_value(feature: Feature, view: SessionsView, columns: np.ndarray) -> str:
    """The middle of a number, the most frequent of anything else, among the sessions of a view.

    Args:
        columns: (n, columns) the feature's own in the matrix.
    """
    raw = _raw(feature, view, columns)
    if raw is None:
        return "–"
    if raw.dtype == object or (len(feature.columns) == 1 and feature.columns[0] in _AROUND):
        counts = Counter(raw.tolist())
        return _in_words(feature, min(counts, key=lambda value: (-counts[value], value)))
    there = raw[~np.isnan(raw)]
    # None is typical where most have none.
    return _in_words(feature, float(np.median(there)) if 2 * len(there) > len(raw) else math.nan)


def reason_of(feature: Feature, value: str, typical: str, effect: float) -> Reason:
    """The reason, with its sentence: ``number of orders: 3, typically 0; raises the odds 2.4×``."""
    factor = math.exp(min(abs(effect), 2 * math.log(_MOST)))
    times = f"more than {_MOST:.0f}×" if factor > _MOST else f"{factor:.3g}×"
    usual = "as is typical" if value == typical else f"typically {typical}"
    does = "raises the odds" if effect > 0 else "lowers the odds"
    return Reason(
        feature=feature.name,
        label=feature.label,
        value=value,
        typical=typical,
        effect=effect,
        text=f"{feature.label}: {value}, {usual}; {does} {times}",
    )


def _raw(feature: Feature, view: SessionsView, columns: np.ndarray) -> np.ndarray | None:
    """(n,) what people would call the value: its one column of the matrix, or that of the view it is made of."""
    if columns.shape[1] == 1:
        return columns[:, 0]
    return view.columns[feature.columns[0]] if feature.columns else None


def _in_words(feature: Feature, value: float | str) -> str:
    if isinstance(value, str):
        return "none" if value == NOTHING else value[:_LONGEST] + "…" * (len(value) > _LONGEST)
    if math.isnan(value):
        return "none"
    if feature.columns == ("start_dow",):
        return _WEEK_DAYS[int(value)]
    if feature.columns == ("start_hour",):
        return f"{int(value)} h"
    return f"{value:.4g}"
