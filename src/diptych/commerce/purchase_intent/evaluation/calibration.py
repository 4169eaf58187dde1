"""Probabilities that mean what they say: Platt's sigmoid of a model's scores.

A model whose classes weigh the same gives probabilities of a world where half of all sessions end in a purchase,
and a support vector machine gives none at all. A sigmoid with two parameters, fitted on sessions that the model
has not seen, maps either to shares of purchases and keeps the order.

Sources: Platt, Probabilistic outputs for support vector machines, 1999; Lin, Lin and Weng, A note on Platt's
probabilistic outputs for support vector machines, Machine Learning 2007 (Newton's method).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.models import IntentModel
from diptych.core.errors import DataError

_NEAREST = 1e-3
"""Probabilities nearer to 0 or 1 count as that near: a forest says 0 where it means fewer than one tree in 100."""

_STEPS = 100
_SMALL = 1e-10


def log_odds(scores: np.ndarray, model: IntentModel) -> np.ndarray:
    """What the sigmoid is fitted to: decisions as they are, probabilities as ln p / (1 − p).

    With log odds, weighing classes differently is a change of the intercept alone.
    """
    if model.output == "decision":
        return scores
    near = np.clip(scores, _NEAREST, 1 - _NEAREST)
    odds: np.ndarray = np.log(near / (1 - near))
    return odds


@dataclass(frozen=True)
class Platt:
    """p = 1 / (1 + exp(−(slope · x + intercept)))."""

    slope: float
    intercept: float

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """(n,) of (n,) log odds or decisions."""
        return _sigmoid(self.slope * x + self.intercept)


def fit_platt(x: np.ndarray, labels: np.ndarray) -> Platt:
    """Fit slope and intercept by the likelihood of Platt's targets, (N₊+1)/(N₊+2) and 1/(N₋+2).

    The targets are what keeps the slope finite where a score tells the classes apart without error.

    Args:
        x: (n,) log odds or decisions of sessions that the model was not fitted on.
        labels: (n,) bool.
    """
    bought = int(labels.sum())
    others = len(labels) - bought
    if not bought or not others:
        raise DataError(
            f"{bought:,} purchases among {len(labels):,} sessions: probabilities cannot be calibrated",
            "calibrate on more sessions",
        )
    targets = np.where(labels, (bought + 1) / (bought + 2), 1 / (others + 2))
    middle, spread = float(x.mean()), float(x.std()) or 1.0
    z = (x - middle) / spread
    found = np.array([0.0, np.log((bought + 1) / (others + 1))])
    loss = _loss(found, z, targets)
    for _ in range(_STEPS):
        p = _sigmoid(found[0] * z + found[1])
        gradient = np.array([np.sum((p - targets) * z), np.sum(p - targets)])
        if np.abs(gradient).max() < _SMALL * len(x):
            break
        curved = p * (1 - p)
        hessian = np.array(
            [[np.sum(curved * z * z), np.sum(curved * z)], [np.sum(curved * z), np.sum(curved)]]
        )
        direction = np.linalg.solve(hessian + _SMALL * np.eye(2), gradient)
        step = 1.0
        while (now := _loss(found - step * direction, z, targets)) > loss and step > _SMALL:
            step /= 2
        found, loss = found - step * direction, min(now, loss)
    slope = float(found[0]) / spread
    return Platt(slope, float(found[1]) - slope * middle)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = 0.5 * (1 + np.tanh(x / 2))  # never overflows
    return found


def _loss(parameters: np.ndarray, z: np.ndarray, targets: np.ndarray) -> float:
    x = parameters[0] * z + parameters[1]
    return float(np.sum(np.logaddexp(0.0, x) - targets * x))


# Reliability: do as many sessions end in a purchase as the probabilities say?
#
# Bins hold equally many sessions, so that rare high probabilities and the many low ones are seen with the same
# precision; sessions of equal probability stay together, so that a bin may be larger and bins may be fewer.


BINS = 10


def reliability(probabilities: np.ndarray, labels: np.ndarray, bins: int = BINS) -> list[dict[str, Any]]:
    """Rows {low, high, n, mean_score, share}, lowest first.

    Args:
        probabilities: (n,) in [0, 1].
        labels: (n,) bool.
    """
    order = np.argsort(probabilities, kind="stable")
    ordered, bought = probabilities[order], labels[order]
    n = len(ordered)
    wanted = [n * one // bins for one in range(1, bins)]
    # A cut within equal probabilities moves behind the last of them.
    cuts = np.unique(np.searchsorted(ordered, ordered[[cut - 1 for cut in wanted if cut]], side="right"))
    edges = [0, *(int(cut) for cut in cuts if cut < n), n]
    return [
        {
            "low": float(ordered[begin]),
            "high": float(ordered[end - 1]),
            "n": end - begin,
            "mean_score": float(ordered[begin:end].mean()),
            "share": float(bought[begin:end].mean()),
        }
        for begin, end in pairwise(edges)
        if end > begin
    ]
