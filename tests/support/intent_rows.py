"""Rows of a description and of an evaluation, as their files have them, from a few counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from diptych.commerce.purchase_intent.statistics import mean_between

Row = dict[str, Any]

LENGTHS: Mapping[tuple[str, bool], Mapping[int, int]] = {
    ("pc", True): {6: 10, 12: 40, 30: 50},
    ("pc", False): {1: 300, 3: 300, 8: 300, 40: 100},
    ("smartphone", True): {5: 20, 10: 40, 20: 40},
    ("smartphone", False): {1: 900, 2: 600, 6: 400, 20: 100},
}
"""Sessions by device, class and length: 100 of 1,100 on a pc buy, 100 of 2,100 on a smartphone."""


def _wilson(count: int, total: int, z: float = 1.959964) -> tuple[float, float]:
    share = count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return max(0.0, middle - half), min(1.0, middle + half)


def _ends(count: int, total: int) -> Row:
    low, high = _wilson(count, total)
    return {"share": count / total, "low": low, "high": high}


def lengths(counts: Mapping[tuple[str, bool], Mapping[int, int]] = LENGTHS) -> tuple[list[Row], list[Row]]:
    """Rows of ``session-length`` and ``session-length-quantiles``, of all devices together too."""
    together: dict[tuple[str, bool], dict[int, int]] = {key: dict(value) for key, value in counts.items()}
    for (_, purchase), of_length in counts.items():
        every = together.setdefault(("all", purchase), {})
        for length, count in of_length.items():
            every[length] = every.get(length, 0) + count
    rows, quantiles = [], []
    for (device, purchase), of_length in sorted(together.items(), key=lambda one: (one[0][0], not one[0][1])):
        total = left = sum(of_length.values())
        key = {"device": device, "purchase": purchase}
        found: dict[str, int] = {}
        for length, count in sorted(of_length.items()):
            rows.append({**key, "length": length, "sessions": count, "at_least": left, **_ends(left, total)})
            left -= count
            for name, level in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
                if total - left >= level * total:
                    found.setdefault(name, length)
        mean = sum(length * count for length, count in of_length.items()) / total
        middle = mean_between(of_length, 0.5, 0.9)
        quantiles.append(
            {**key, "sessions": total, "mean": mean, **found, "middle": middle, "max": max(of_length)}
        )
    return rows, quantiles


def groups(key: str, counts: Mapping[str, tuple[int, int]]) -> list[Row]:
    """Rows of ``channels`` or ``devices`` from name → (sessions, purchase sessions)."""
    buys = sum(buy for _, buy in counts.values())
    others = sum(sessions - buy for sessions, buy in counts.values())
    rates = [buy / sessions for sessions, buy in counts.values()]
    mean = sum(rates) / len(rates)
    deviation = sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))
    found = []
    for name, (sessions, buy) in sorted(counts.items()):
        low, high = _wilson(buy, sessions)
        found.append(
            {
                key: name,
                "sessions": sessions,
                "purchase_sessions": buy,
                "purchase_share": buy / buys if buys else 0.0,
                "other_share": (sessions - buy) / others if others else 0.0,
                "rate": buy / sessions,
                "low": low,
                "high": high,
                "standardised": (buy / sessions - mean) / deviation if deviation else None,
            }
        )
    return found


def times(key: str, buy: Sequence[int], other: Sequence[int]) -> list[Row]:
    """Rows of ``week-days`` or ``hours`` from counts per place."""
    return [
        {"purchase": purchase, key: place, "sessions": count, **_ends(count, sum(counts))}
        for purchase, counts in ((True, buy), (False, other))
        if sum(counts)
        for place, count in enumerate(counts)
    ]


def weekend(days: Sequence[Row]) -> list[Row]:
    """Rows of ``weekend`` from those of ``week-days``."""
    found = []
    for purchase in (True, False):
        mine = [row for row in days if row["purchase"] is purchase]
        total = sum(row["sessions"] for row in mine)
        for is_so, n in ((False, 5), (True, 2)):
            count = sum(row["sessions"] for row in mine if (row["week_day"] > 4) is is_so)
            ends = _ends(count, total)
            key = {"purchase": purchase, "weekend": is_so, "sessions": count}
            found.append({**key, **ends, "per_day": ends["share"] / n})
    return found


def transitions(counts: Mapping[tuple[str, str], tuple[int, str]]) -> list[Row]:
    """Rows of ``device-transitions`` from (from, to) → (transitions, link)."""
    return [
        {
            "from_device": one,
            "to_device": other,
            "transitions": count,
            **_ends(count, sum(count for (start, _), (count, _) in counts.items() if start == one)),
            "link": link,
        }
        for (one, other), (count, link) in sorted(counts.items())
    ]


def described(counts: Mapping[tuple[str, bool], Mapping[int, int]] = LENGTHS) -> dict[str, list[Row]]:
    """All statistics of a small log: 3,200 sessions, 200 of them with a purchase."""
    rows, quantiles = lengths(counts)
    devices = groups(
        "device",
        {
            device: (
                sum(counts[device, True].values()) + sum(other.values()),
                sum(counts[device, True].values()),
            )
            for (device, purchase), other in counts.items()
            if not purchase
        },
    )
    queries: list[Row] = []
    for purchase, per in ((True, 2.0), (False, 0.5)):
        for device, sessions in (("all", 200 if purchase else 3000), ("pc", 100 if purchase else 1000),
                                 ("smartphone", 100 if purchase else 2000)):  # fmt: skip
            count = int(sessions * per)
            queries.append(
                {
                    "purchase": purchase,
                    "device": device,
                    "sessions": sessions,
                    "queries": count,
                    "per_session": per,
                    "low": 0.9 * per,
                    "high": 1.1 * per,
                    "share": count / (400 if purchase else 1500),
                }
            )
    week = times("week_day", (28, 32, 30, 36, 26, 24, 24), (450, 420, 480, 440, 400, 380, 430))
    return {
        "overview": [
            {"what": what, "total": total}
            for what, total in (
                ("events", 21000),
                ("sessions", 3200),
                ("anonymous sessions", 2000),
                ("identified sessions", 1200),
                ("purchase sessions", 200),
                ("clients", 2500),
                ("identified visitors", 700),
                ("purchasers", 150),
                ("queries", 1900),
                ("distinct queries", 321),
                ("device types", 2),
                ("sessions with several visitors", 3),
            )
        ],
        "session-length": rows,
        "session-length-quantiles": quantiles,
        "week-days": week,
        "weekend": weekend(week),
        "hours": times("hour", [4] * 6 + [8] * 12 + [16] * 5 + [0], [60] * 6 + [150] * 12 + [160] * 5 + [40]),
        "channels": groups("channel", {"direct": (2000, 90), "paid": (900, 80), "organic": (300, 30)}),
        "devices": devices,
        "devices-per-visitor": [
            {"purchaser": purchaser, "devices": devices, "visitors": count, **_ends(count, total)}
            for purchaser, total, counted in ((True, 150, (45, 105, 45)), (False, 550, (66, 484, 66)))
            for devices, count in zip(("> 1", "1", "2"), counted, strict=True)
        ],
        "device-transitions": transitions(
            {
                ("pc", "pc"): (60, "self"),
                ("pc", "smartphone"): (20, "strong"),
                ("smartphone", "smartphone"): (70, "self"),
                ("smartphone", "pc"): (30, "strong"),
            }
        ),
        "queries": queries,
        "unique-queries": [
            {
                "purchase": row["purchase"],
                "device": row["device"],
                "unique": row["queries"] // 4,
                "queries": row["queries"],
                "share": row["share"],
                "unique_share": 0.25,
            }
            for row in queries
        ],
    }


def _bins(*points: tuple[float, float]) -> list[Row]:
    return [
        {"low": mean, "high": mean, "n": 50, "mean_score": mean, "share": share} for mean, share in points
    ]


def cells_of(
    settings: Sequence[str] = ("anonymous", "identified"),
    sets: Sequence[str] = ("baseline", "extended"),
    steps: Sequence[int] = (0, 5),
    models: Mapping[str, str] | None = None,
) -> list[Row]:
    """Cells of ``results.json``; every number is another, so that it can be found on a page."""
    found = []
    names = models or {"random-forest": "RF", "k-nearest": "KNN"}
    for one, setting in enumerate(settings):
        for other, feature_set in enumerate(sets):
            for place, step in enumerate(steps):
                for number, (model, label) in enumerate(names.items()):
                    f1 = 0.411 + 0.3 * one + 0.05 * other + 0.02 * place - 0.031 * number
                    average = f1 - 0.017
                    base = 0.2 + 0.1 * one - 0.01 * place
                    found.append(
                        {
                            "setting": setting,
                            "set": feature_set,
                            "step": step,
                            "model": model,
                            "label": label,
                            "sessions": 2000 - 100 * place - 500 * one,
                            "purchases": 400,
                            "base_rate": base,
                            "always_buy_f1": 2 * base / (1 + base),
                            "f1": f1,
                            "f1_low": f1 - 0.02,
                            "f1_high": f1 + 0.02,
                            "best_f1": f1 + 0.013,
                            "best_f1_low": f1,
                            "best_f1_high": f1 + 0.03,
                            "threshold": 0.3,
                            "average_precision": average,
                            "average_precision_low": average - 0.02,
                            "average_precision_high": average + 0.02,
                            "roc_auc": 0.8,
                            "brier": 0.17 if model != "svm" else None,
                            "brier_prior": base * (1 - base),
                            "brier_calibrated": 0.1234,
                            "log_loss_calibrated": 0.4,
                            "log_loss_prior": 0.5,
                            "lift_10": 2.5,
                            "precision_at_recall_50": 0.55,
                            "weighting": "none" if model == "k-nearest" else "class_weight",
                            "output": "probability",
                            "reliability": _bins((0.2, 0.1), (0.6, 0.4)),
                            "reliability_calibrated": _bins((0.1, 0.1), (0.4, 0.4)),
                            "constant_folds": 0,
                            "uncalibrated_folds": 0,
                            "remarks": {},
                        }
                    )
    return found


def gains_of(cells: Sequence[Row]) -> list[Row]:
    """Gains of ``results.json`` of :func:`cells_of`."""
    of_baseline = {
        (cell["setting"], cell["step"], cell["model"]): cell for cell in cells if cell["set"] == "baseline"
    }
    return [
        {
            **{name: cell[name] for name in ("setting", "step", "model")},
            "measure": measure,
            "baseline": of_baseline[cell["setting"], cell["step"], cell["model"]][measure],
            "extended": cell[measure],
            "difference": 0.05 - 0.001 * cell["step"],
            "low": 0.02,
            "high": 0.08,
        }
        for cell in cells
        if cell["set"] == "extended"
        for measure in ("f1", "best_f1", "average_precision")
    ]


def importance_of(settings: Sequence[str] = ("anonymous",), steps: Sequence[int] = (0, 5)) -> list[Row]:
    """Importance of ``results.json``: two static features, and one dynamic from the first page on."""
    shares = {0: {"week-day": 0.75, "channel": 0.25}, 5: {"week-day": 0.3, "channel": 0.2, "dwell-mean": 0.5}}
    return [
        {
            "setting": setting,
            "set": "extended",
            "step": step,
            "feature": feature,
            "impurity": share,
            "permutation": share / 10 - 0.01,
            "permutation_sd": 0.004,
            "dynamic": feature == "dwell-mean",
            "model": "random-forest",
        }
        for setting in settings
        for step in steps
        for feature, share in shares[min(5, max(0, step))].items()
    ]
