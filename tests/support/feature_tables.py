"""Small tables of features with a planted effect, stored as those of a log."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diptych.commerce.logs.log import SECOND
from diptych.commerce.purchase_intent.features import FeatureTable, open_features
from diptych.commerce.purchase_intent.features.fitting import (
    COLUMNS,
    EARLIER_DEVICES,
    HISTORY_COLUMNS,
    NOTHING,
    SessionsView,
    text_array,
)
from diptych.core.fingerprint import fingerprint

_VOCABULARY = ("product", "search", "home", "basket")
_STEPS = 10
_DAY = 86_400


def small_features(folder: Path, n: int = 400, seed: int = 0) -> FeatureTable:
    """Sessions of four weeks, about a quarter of them buyers, about half of them identified from the start or later.

    Buyers look at pages longer (mean 40 s against 25 s), open basket pages more often, come by ``paid`` more
    often and, where they are identified, have bought before more often. Some visitors have several sessions.
    """
    random = np.random.default_rng(seed)
    labels = random.random(n) < 0.25
    persons = random.integers(0, max(1, n * 2 // 3), n)
    start = np.sort(random.integers(0, 28 * _DAY, n))
    shares = np.where(labels[:, None], [0.35, 0.2, 0.15, 0.3], [0.45, 0.25, 0.2, 0.1])
    types = (random.random((n, _STEPS, 1)) > np.cumsum(shares, axis=1)[:, None, :-1]).sum(axis=2)
    dwell = random.exponential(np.where(labels, 40.0, 25.0)[:, None], (n, _STEPS))
    times = start[:, None] * SECOND + np.cumsum(dwell * SECOND, axis=1).astype(np.int64)
    identified = random.choice([np.nan, 0.0, 3.0], n, p=[0.5, 0.4, 0.1])
    bought = np.where(labels, random.integers(4, 30, n).astype(float), np.nan)
    known = ~np.isnan(identified)
    devices = np.array(["smartphone", "pc", "tablet"])
    orders = random.poisson(np.where(labels, 1.5, 0.4)).astype(float)
    sessions = orders + random.integers(0, 6, n)
    device = random.choice(devices, n, p=[0.5, 0.4, 0.1])
    columns = {
        "channel": np.where(random.random(n) < np.where(labels, 0.5, 0.3), "paid", "direct"),
        "device": device,
        "start_hour": (start % _DAY // 3600).astype(float),
        "start_dow": ((start // _DAY + 3) % 7).astype(float),
        "orders": orders,
        "days_since_purchase": np.where(orders > 0, random.exponential(5.0, n), np.nan),
        "sessions": sessions,
        "devices": np.minimum(sessions + 1, random.integers(1, 4, n)),
        "switches": np.floor(random.random(n) * sessions),
        "pairs": np.maximum(sessions - 1, 0),
        "history_days": start / _DAY,
    }
    for number, name in enumerate(EARLIER_DEVICES, start=1):
        columns[name] = np.where(sessions >= number, random.choice(devices, n), NOTHING)
    for name, kind in COLUMNS.items():
        if name in HISTORY_COLUMNS:
            columns[name] = np.where(known, columns[name], NOTHING if kind == "text" else np.nan)
        if kind == "text":
            columns[name] = text_array(columns[name].tolist())
    kinds = dict(COLUMNS)
    before = np.where(np.isnan(bought), np.inf, bought)
    view = SessionsView(columns, np.array(_VOCABULARY, dtype=object)[types], times, labels, before)
    table = FeatureTable(
        {
            "kind": "steps",
            "name": folder.name,
            "zone": "UTC",
            "has_times": True,
            "since_us": 0,
            "sessions_fingerprint": fingerprint("sessions", n, seed),
            "steps": list(range(_STEPS + 1)),
            "options": {"compat": "none", "also": [], "types": 200},
            "session_options": {"gap_minutes": 30.0, "by": "client", "pages": _STEPS},
            "columns": kinds,
            "vocabulary": list(_VOCABULARY),
            "counts": {"sessions": n, "too_short": 0, "population": n},
            "fingerprint": fingerprint(n, seed),
        },
        view,
        np.arange(n) * 20,
        persons,
        times[:, 0],
        times[:, -1] + 300 * SECOND,
        identified,
    )
    table.save(folder)
    return open_features(folder)
