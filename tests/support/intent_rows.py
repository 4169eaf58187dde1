"""Rows of a description and of an evaluation, as their files have them, from a few counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pyarrow as pa

from diptych.commerce.purchase_intent.evaluation import Evaluation, IntentProtocol
from diptych.commerce.purchase_intent.options import DescribeOptions, EvaluateOptions
from diptych.commerce.purchase_intent.statistics import STATISTICS

Row = dict[str, Any]

LENGTHS: Mapping[tuple[str, bool], Mapping[int, int]] = {
    ("pc", True): {6: 10, 12: 40, 30: 50},
    ("pc", False): {1: 300, 3: 300, 8: 300, 40: 100},
    ("smartphone", True): {5: 20, 10: 40, 20: 40},
    ("smartphone", False): {1: 900, 2: 600, 6: 400, 20: 100},
}
"""Sessions by device, class and length: 100 of 1,100 on a pc buy, 100 of 2,100 on a smartphone."""
TOTALS = {
    **{"events": 21000, "sessions": 3200, "anonymous sessions": 2000, "identified sessions": 1200},
    **{"purchase sessions": 200, "clients": 2500, "identified visitors": 700, "purchasers": 150},
    **{"queries": 1900, "distinct queries": 321, "device types": 2, "sessions with several visitors": 3},
}


def finished(name: str, columns: str, *counted: Sequence[Any], **options: Any) -> list[Row]:
    """Rows of a statistic from counted ones."""
    rows = [dict(zip(columns.split(), one, strict=True)) for one in counted]
    return STATISTICS.get(name).finish(pa.Table.from_pylist(rows), DescribeOptions(**options))


def lengths(counts: Mapping[tuple[str, bool], Mapping[int, int]] = LENGTHS) -> tuple[list[Row], list[Row]]:
    """Rows of ``session-length`` and ``session-length-quantiles``, of all devices together too."""
    counted = [(*key, length, n) for key, of in counts.items() for length, n in of.items()]
    columns = "device purchase length sessions"
    return finished("session-length", columns, *counted), finished(
        "session-length-quantiles", columns, *counted
    )


def groups(key: str, counts: Mapping[str, tuple[int, int]], **options: Any) -> list[Row]:
    """Rows of ``channels`` or ``devices`` from name → (sessions, purchase sessions)."""
    counted = [
        (name, is_so, n)
        for name, (of, buy) in counts.items()
        for is_so, n in ((True, buy), (False, of - buy))
    ]
    return finished(f"{key}s", "name purchase sessions", *counted, **options)


def times(key: str, buy: Sequence[int], other: Sequence[int]) -> list[Row]:
    """Rows of ``week-days`` or ``hours`` from counts per place."""
    counted = [(is_so, place, n) for is_so, of in ((True, buy), (False, other)) for place, n in enumerate(of)]
    return finished({"week_day": "week-days", "hour": "hours"}[key], "purchase place sessions", *counted)


def transitions(counts: Mapping[tuple[str, str], tuple[int, str]]) -> list[Row]:
    """Rows of ``device-transitions`` from (from, to) → (transitions, link)."""
    counted = [(*pair, n) for pair, (n, _) in counts.items()]
    rows = finished("device-transitions", "from_device to_device transitions", *counted)
    return [{**row, "link": counts[row["from_device"], row["to_device"]][1]} for row in rows]


def described(counts: Mapping[tuple[str, bool], Mapping[int, int]] = LENGTHS) -> dict[str, list[Row]]:
    """All statistics of a small log: 3,200 sessions, 200 of them with a purchase."""
    rows, quantiles = lengths(counts)
    sums = {key: sum(of.values()) for key, of in counts.items()}
    devices = {one: (sums[one, True] + sums[one, False], sums[one, True]) for one, _ in counts}
    week = (28, 32, 30, 36, 26, 24, 24), (450, 420, 480, 440, 400, 380, 430)
    weekend = [
        (is_so, end, sum(of[5:] if end else of[:5]))
        for is_so, of in zip((True, False), week, strict=True)
        for end in (False, True)
    ]
    of_devices = [
        *((True, "pc", 100, 200), (True, "smartphone", 100, 200)),
        *((False, "pc", 1000, 500), (False, "smartphone", 2000, 1000)),
    ]
    unique = [
        (one, device, n // 4, n)
        for one, device, _, n in [*of_devices, (True, "all", 0, 400), (False, "all", 0, 1500)]
    ]
    switches = {("pc", "pc"): (60, "self"), ("pc", "smartphone"): (20, "strong")}
    switches |= {("smartphone", "smartphone"): (70, "self"), ("smartphone", "pc"): (30, "strong")}
    visitors = ((True, 1, 105), (True, 2, 45), (False, 1, 484), (False, 2, 66))
    return {
        "overview": [{"what": what, "total": total} for what, total in TOTALS.items()],
        "session-length": rows,
        "session-length-quantiles": quantiles,
        "week-days": times("week_day", *week),
        "weekend": finished("weekend", "purchase place sessions", *weekend),
        "hours": times("hour", [4] * 6 + [8] * 12 + [16] * 5 + [0], [60] * 6 + [150] * 12 + [160] * 5 + [40]),
        "channels": groups("channel", {"direct": (2000, 90), "paid": (900, 80), "organic": (300, 30)}),
        "devices": groups("device", devices),
        "devices-per-visitor": finished("devices-per-visitor", "purchaser devices visitors", *visitors),
        "device-transitions": transitions(switches),
        "queries": finished(
            "queries",
            "purchase device sessions queries squares",
            *((*one, 4 * one[-1]) for one in of_devices),
        ),
        "unique-queries": finished("unique-queries", "purchase device unique queries", *unique),
    }


def cells_of(
    settings: Sequence[str] = ("anonymous", "identified"),
    sets: Sequence[str] = ("baseline", "extended"),
    steps: Sequence[int] = (0, 5),
    models: Mapping[str, str] | None = None,
) -> list[Row]:
    """Cells of ``results.json``; every number is another, so that it can be found on a page."""
    names, found = models or {"random-forest": "RF", "k-nearest": "KNN"}, []
    ends = ("low", "high", "mean_score")
    bins = [{**dict.fromkeys(ends, p), "n": 50, "share": share} for p, share in ((0.2, 0.1), (0.6, 0.4))]
    for of in product(*(list(enumerate(one)) for one in (settings, sets, steps, names.items()))):
        (one, setting), (other, feature_set), (place, step), (number, (model, label)) = of
        f1 = 0.411 + 0.3 * one + 0.05 * other + 0.02 * place - 0.031 * number
        base = 0.2 + 0.1 * one - 0.01 * place
        cell: Row = {"setting": setting, "set": feature_set, "step": step, "model": model, "label": label}
        for name, value, low, high in (
            ("f1", f1, f1 - 0.02, f1 + 0.02),
            ("best_f1", f1 + 0.013, f1, f1 + 0.03),
            ("average_precision", f1 - 0.017, f1 - 0.037, f1 + 0.003),
        ):
            cell |= {name: value, f"{name}_low": low, f"{name}_high": high}
        cell |= {"sessions": 2000 - 100 * place - 500 * one, "purchases": 400, "base_rate": base}
        cell |= {"always_buy_f1": 2 * base / (1 + base), "threshold": 0.3, "roc_auc": 0.8}
        cell |= {"brier": 0.17 if model != "svm" else None, "brier_prior": base * (1 - base)}
        cell |= {"brier_calibrated": 0.1234, "log_loss_calibrated": 0.4, "log_loss_prior": 0.5}
        cell |= {"lift_10": 2.5, "precision_at_recall_50": 0.55, "remarks": {}}
        cell |= {"reliability": bins, "reliability_calibrated": bins}
        if other and feature_set == "extended":
            for name in ("f1", "average_precision"):
                cell |= {
                    f"{name}_gain": 0.05 - 0.001 * step,
                    f"{name}_gain_low": 0.02,
                    f"{name}_gain_high": 0.08,
                }
        found.append(cell)
    return found


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


def evaluation(cells: list[Row], name: str = "a shop", compat: str = "none", **more: Any) -> Evaluation:
    """Return an evaluation as its folder would hold it."""
    steps = sorted({cell["step"] for cell in cells})
    kind = "whole" if steps == [-1] else "steps"
    about = {
        "features": {"name": name, "line": "2,000 sessions", "compat": compat, "kind": kind},
        "diptych": "0.0",
        "notes": ["split random: sessions at random", "KNN: has no weights for classes <b>"],
    }
    names = {"models": "model", "settings": "setting", "sets": "set", "steps": "step"}
    given = {one: list(dict.fromkeys(cell[key] for cell in cells)) for one, key in names.items()}
    options = EvaluateOptions(folds=2, importance=False, seed=3, **given)
    protocol = IntentProtocol("f00", options.model_dump(mode="json"), "1.9", about)
    values: Row = dict.fromkeys(("importance", "left_out"), ()) | more
    return Evaluation(protocol, 200, cells, **values)
