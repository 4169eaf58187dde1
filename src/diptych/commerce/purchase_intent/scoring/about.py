"""What a scorer remembers of the table that it was trained on: enough to serve, and to say what it is."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from diptych.commerce.purchase_intent.scoring.slices import Slices
from diptych.data.logs.schema import SECOND

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable

__all__ = ["about_features", "about_slices"]

_MOST_WORDS = 1000
"""Of a column with more words than these a scorer does not say which it has seen."""


def about_features(features: FeatureTable) -> dict[str, Any]:
    """What serving has to know of a table, and what a model card says of it; JSON-able."""
    columns, about = features.view.columns, features.about
    return {
        "name": about["name"],
        "kind": about["kind"],
        "fingerprint": features.fingerprint,
        "zone": about.get("zone"),
        "since_us": about.get("since_us"),
        "session_options": about.get("session_options"),
        "columns": about["columns"],
        "vocabulary": list(features.view.vocabulary),
        "known": {name: _words(columns[name]) for name in ("device", "channel") if not features.is_whole},
        "counts": about["counts"],
        "left_out": about.get("left_out", []),
        "kept_leaking": about.get("kept_leaking", []),
        "days": _days(features),
        "line": features.describe(),
    }


def about_slices(features: FeatureTable, slices: Slices) -> dict[str, Any]:
    """The parts of a table that a scorer was made of; JSON-able."""
    parts = {"fit": slices.fit, "calibration": slices.calibration, "holdout": slices.holdout}
    return {
        "split": slices.split,
        "note": slices.note,
        "sizes": {name: int(part.sum()) for name, part in parts.items()},
        "left_out": slices.n_left_out,
        "rates": {
            name: float(features.labels[part].mean()) if part.any() else None for name, part in parts.items()
        },
    }


def _words(texts: np.ndarray) -> list[str] | None:
    """The words of a column, the most frequent first; None of very many."""
    counts = Counter(texts.tolist())
    if len(counts) > _MOST_WORDS:
        return None
    return sorted(counts, key=lambda word: (-counts[word], word))


def _days(features: FeatureTable) -> str:
    """First and last day, in the table's zone."""
    if not features.has_times or not len(features):
        return "times unknown"
    zone = ZoneInfo(features.about["zone"])
    first, last = (
        datetime.fromtimestamp(int(moment) // SECOND, zone).date().isoformat()
        for moment in (features.start_us.min(), features.start_us.max())
    )
    return f"{first} to {last}"
