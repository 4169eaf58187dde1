"""Measures of a prediction, as pure functions of scores and labels, with weights for resampled persons.

Shapes: ``scores`` and ``labels`` are (n,); ``weights`` are (…, n) or None for ones, and a result has their leading
shape. A measure that is not defined, e.g. a recall where nothing was bought, is NaN. A higher score means that a
purchase is likelier; sessions of equal score are never told apart.
"""

from __future__ import annotations

import numpy as np

from diptych.commerce.purchase_intent.evaluation.curve import curve_of, divided


def f1(predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """2 TP / (2 TP + FP + FN): harmonic mean of precision and recall; NaN where nothing is bought or predicted."""
    weights = np.ones(len(labels)) if weights is None else weights
    hits = _sum(weights, predicted & labels)
    return divided(2 * hits, _sum(weights, predicted) + _sum(weights, labels))


def always_buy_f1(share: float) -> float:
    """F1 of predicting a purchase always: 2 p / (1 + p), of the share of purchase sessions."""
    return 2 * share / (1 + share)


def average_precision(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Σ (R_i − R_i−1) P_i over distinct scores, highest first: the area under the steps of precision over recall.

    Sessions of equal score enter together, so that their order does not matter; nothing is interpolated.
    """
    return curve_of(scores, labels, weights).average_precision


def roc_auc(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Share of pairs of a purchase and another session in which the purchase scores higher; equal ones count half."""
    curve = curve_of(scores, labels, weights)
    others = curve.predicted - curve.hits
    width = np.diff(others, axis=-1, prepend=0.0)
    height = curve.hits - np.diff(curve.hits, axis=-1, prepend=0.0) / 2
    return divided(np.sum(width * height, axis=-1), curve.hits[..., -1] * others[..., -1])


def brier(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean squared difference of probability and outcome; that of the base rate p is p (1 − p)."""
    return float(np.mean((probabilities - labels) ** 2))


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean −ln of the probability that was given to what happened; probabilities within 1e-15 of 0 and 1 are moved."""
    given = np.clip(np.where(labels, probabilities, 1 - probabilities), 1e-15, 1.0)
    return float(-np.mean(np.log(given)))


def lift_at(scores: np.ndarray, labels: np.ndarray, share: float = 0.1) -> float:
    """Purchases among the ``share`` of sessions with the highest scores, as a multiple of the base rate.

    The share is rounded up to whole sessions. Where its border lies within sessions of equal score, as many of
    their purchases count as a random order among them would give on average.
    """
    curve = curve_of(scores, labels)
    wanted = float(np.ceil(share * len(labels)))
    hits = np.interp(wanted, np.append(0.0, curve.predicted), np.append(0.0, curve.hits))
    return float(divided(np.asarray(hits / wanted), np.asarray(labels.mean())))


def precision_at_recall(scores: np.ndarray, labels: np.ndarray, recall: float = 0.5) -> float:
    """The best precision of any threshold that finds at least that share of purchases."""
    curve = curve_of(scores, labels)
    reached = curve.recall >= recall - 1e-12
    return float(curve.precision[reached].max()) if reached.any() else float("nan")


def best_threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """The score from which on predicting a purchase gives the best F1; of equally good ones the highest.

    NaN where nothing was bought.
    """
    if not labels.any():
        return float("nan")
    curve = curve_of(scores, labels)
    found = 2 * curve.hits / (curve.predicted + curve.hits[-1])
    return float(curve.thresholds[int(np.argmax(found))])


def _sum(weights: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    found: np.ndarray = weights @ chosen.astype(np.float64)
    return found
