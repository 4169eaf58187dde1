"""From the scores of all folds to the numbers of a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import (
    Persons,
    Ranking,
    always_buy_f1,
    average_precision,
    brier,
    f1,
    lift_at,
    log_loss,
    precision_at_recall,
    reliability,
    roc_auc,
)
from diptych.commerce.purchase_intent.evaluation.plan import (
    FoldImportance,
    FoldResult,
    FoldScores,
    Place,
    Unit,
)
from diptych.commerce.purchase_intent.models import MODELS
from diptych.core.context import RESUME
from diptych.core.errors import StorageError
from diptych.core.job import Job

RESAMPLED = ("f1", "best_f1", "average_precision")
"""Measures that have intervals."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """What a model said of every test session of a place, by models that had not seen it.

    Attributes:
        thresholds: (n,) float64 of calibrated probabilities, of the session's fold; NaN where there is none.
    """

    model: str  # its name
    rows: np.ndarray  # (n,) int64 numbers of the sessions in the table, rising
    labels: np.ndarray  # (n,) bool
    scores: np.ndarray  # (n,) float64
    calibrated: np.ndarray  # (n,) float64, NaN where there is none
    thresholds: np.ndarray
    fold: np.ndarray  # (n,) int64
    parts: Sequence[FoldScores]  # what every fold said of itself

    @property
    def predicted(self) -> np.ndarray:
        """(n,) bool: a purchase, where nothing is tuned: from 0.5 on, or 0 of a decision."""
        found: np.ndarray = self.scores >= (0.5 if self.is_probability else 0.0)
        return found

    @property
    def is_probability(self) -> bool:
        """Whether scores are probabilities, and no decisions."""
        return self.parts[0].output == "probability"

    @property
    def is_tuned(self) -> bool:
        """Whether any fold has a threshold from inside its training part."""
        return not bool(np.isnan(self.thresholds).all())

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking.of(self.scores)

    def values(self, measure: str, weights: np.ndarray | None = None) -> np.ndarray:
        """One of :data:`RESAMPLED`, with (…, n) weights."""
        if measure == "average_precision":
            return self._ranking.curve(self.labels, weights).average_precision
        if measure == "f1":
            return f1(self.predicted, self.labels, weights)
        known = ~np.isnan(self.thresholds)
        some = None if weights is None else weights[..., known]
        return f1((self.calibrated >= self.thresholds)[known], self.labels[known], some)

    def resampled(self, persons: Persons, measures: Sequence[str] = RESAMPLED) -> dict[str, np.ndarray]:
        """Per measure, (samples,) values on resamples of persons; none of a tuned F1 where nothing is tuned."""
        names = [name for name in measures if name != "best_f1" or self.is_tuned]
        return persons.resamples(self.rows, {name: partial(self.values, name) for name in names})


def folds_of(job: Job[FoldResult], place: Place, folds: int) -> list[FoldResult]:
    """Return the finished folds of a place."""
    found = [job.get(Unit(*place, fold).key) for fold in range(folds)]
    kept = [one for one in found if one is not None]
    if len(kept) < folds:
        raise StorageError(f"{job.folder} has {len(kept)} of {folds} folds of {place}", RESUME)
    return kept


def pool(results: Sequence[FoldResult], model: str, labels: np.ndarray) -> Pooled:
    """Join all folds of a place, in the order of sessions."""
    parts = [one.scores[model] for one in results]
    folds = len(parts)
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    fold = np.repeat(np.arange(folds), [len(part.rows) for part in parts])[order]
    return Pooled(
        model=model,
        rows=rows[order],
        labels=labels[rows[order]],
        scores=np.concatenate([part.scores for part in parts])[order],
        calibrated=np.concatenate([part.calibrated for part in parts])[order],
        thresholds=np.array([part.threshold for part in parts])[fold],
        fold=fold,
        parts=parts,
    )


def summarise(
    place: Place, pooled: Pooled, samples: Mapping[str, np.ndarray], persons: Persons
) -> dict[str, Any]:
    """One row of ``results.json``.

    F1 and average precision are of all folds' test sessions together, which is less biased than their mean over
    folds (Forman and Scholz, Apples-to-apples in cross-validation studies, SIGKDD Explorations 2010); the folds'
    own values are beside them.
    """
    model, labels, known = MODELS.get(pooled.model), pooled.labels, ~np.isnan(pooled.calibrated)
    base_rate = float(labels.mean())
    folds = [np.flatnonzero(pooled.fold == fold) for fold in range(len(pooled.parts))]
    found: dict[str, Any] = {
        "setting": place.setting,
        "set": place.feature_set,
        "step": place.step,
        "model": model.name,
        "label": model.label,
        "sessions": len(labels),
        "purchases": int(labels.sum()),
        "base_rate": base_rate,
        "always_buy_f1": always_buy_f1(base_rate),
        "f1": pooled.values("f1"),
        "fold_f1": [f1(pooled.predicted[rows], labels[rows]) for rows in folds],
        "best_f1": pooled.values("best_f1") if pooled.is_tuned else None,
        "threshold": _mean([part.threshold for part in pooled.parts]),
        "average_precision": pooled.values("average_precision"),
        "fold_average_precision": [
            average_precision(pooled.scores[rows], labels[rows]) if len(rows) else None for rows in folds
        ],
        "roc_auc": roc_auc(pooled.scores, labels),
        "brier": brier(pooled.scores, labels) if pooled.is_probability else None,
        "brier_prior": base_rate * (1 - base_rate),
        "lift_10": lift_at(pooled.scores, labels, 0.1),
        "precision_at_recall_50": precision_at_recall(pooled.scores, labels, 0.5),
        "weighting": _weighting(pooled),
        "output": pooled.parts[0].output,
        "reliability": reliability(pooled.scores, labels) if pooled.is_probability else None,
        **_calibrated(pooled.calibrated[known], labels[known]),
        "constant_folds": sum(bool(part.constant) for part in pooled.parts),
        "uncalibrated_folds": sum(bool(part.uncalibrated) for part in pooled.parts),
        "remarks": _remarks(pooled),
    }
    for name in RESAMPLED:
        low, high = persons.interval(samples[name]) if name in samples else (None, None)
        found |= {f"{name}_low": low, f"{name}_high": high}
    return {name: _plain(value) for name, value in found.items()}


def _calibrated(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    there = len(labels) > 0
    return {
        "brier_calibrated": brier(probabilities, labels) if there else None,
        "log_loss_calibrated": log_loss(probabilities, labels) if there else None,
        "log_loss_prior": log_loss(np.full(len(labels), labels.mean()), labels) if there else None,
        "reliability_calibrated": reliability(probabilities, labels) if there else None,
    }


def _weighting(pooled: Pooled) -> str:
    """As the fitted models say; a constant weighs nothing."""
    ways = {part.weighting for part in pooled.parts if not part.constant}
    return ", ".join(sorted(ways)) or "none"


def _remarks(pooled: Pooled) -> dict[str, int]:
    """What folds said of themselves, and how many did."""
    said = Counter(
        one for part in pooled.parts for one in (part.constant, part.uncalibrated, *part.warnings) if one
    )
    return dict(sorted(said.items()))


def importance_rows(place: Place, parts: Sequence[FoldImportance], model: str) -> list[dict[str, Any]]:
    """Rows of ``results.json``, one per feature, the most important by permutation first.

    Means over folds; the standard deviation is of all permutations of all folds.
    """
    rows = [
        {
            "setting": place.setting,
            "set": place.feature_set,
            "step": place.step,
            "feature": name,
            "impurity": _mean([part.impurity[number] for part in parts]),
            "permutation": _mean(np.concatenate([part.drops[number] for part in parts])),
            "permutation_sd": _deviation(np.concatenate([part.drops[number] for part in parts])),
            "dynamic": bool(parts[0].dynamic[number]),
            "model": model,
        }
        for number, name in enumerate(parts[0].features)
    ]
    return sorted(rows, key=lambda row: (-(row["permutation"] or 0.0), row["feature"]))


def _mean(values: Sequence[float] | np.ndarray) -> float | None:
    usable = np.asarray(values, dtype=np.float64)
    usable = usable[~np.isnan(usable)]
    return float(usable.mean()) if len(usable) else None


def _deviation(values: np.ndarray) -> float | None:
    usable = values[~np.isnan(values)]
    return float(usable.std(ddof=1)) if len(usable) > 1 else None


def _plain(value: Any) -> Any:
    """JSON-able: numbers of NumPy as Python's, None for what is not defined."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray | np.floating):
        value = float(value)
    return None if isinstance(value, float) and np.isnan(value) else value
