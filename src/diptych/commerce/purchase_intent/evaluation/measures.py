"""Measures of a prediction, as pure functions of scores and labels, with weights for resampled persons; calibration.

Shapes: ``scores`` and ``labels`` are (n,); ``weights`` are (…, n) or None for ones, and a result has their leading
shape: scikit-learn's functions take one resample at a time. A measure that is not defined, e.g. a recall where
nothing was bought, is NaN. A higher score means that a purchase is likelier; equal scores are never told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.models import IntentModel
from diptych.core.errors import DataError
from diptych.core.extras import require
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval


def _divided(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return ``above`` / ``below``, which is broadcast; NaN where ``below`` is 0."""
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    found: np.ndarray = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return found


@dataclass(frozen=True, eq=False)
class Curve:
    """k distinct scores, highest first; counts are weighted and cumulated."""

    thresholds: np.ndarray  # (k,) the scores
    predicted: np.ndarray  # (…, k) sessions with at least that score
    hits: np.ndarray  # (…, k) purchases among them

    @property
    def precision(self) -> np.ndarray:
        """(…, k) NaN before the first session."""
        return _divided(self.hits, self.predicted)

    @property
    def recall(self) -> np.ndarray:
        """(…, k) NaN where nothing was bought."""
        return _divided(self.hits, self.hits[..., -1:])

    @property
    def average_precision(self) -> np.ndarray:
        """(…,) Σ (R_i − R_i−1) P_i over the distinct scores."""
        gained = np.diff(self.recall, axis=-1, prepend=0.0)
        found: np.ndarray = np.sum(gained * np.where(gained > 0, self.precision, 0.0), axis=-1)
        return found


@dataclass(frozen=True, eq=False)
class Ranking:
    """Sessions in the order of their scores: sorted once, for many weights."""

    order: np.ndarray  # (n,) their numbers, highest score first
    starts: np.ndarray  # (k,) the place of the first of every distinct score
    thresholds: np.ndarray  # (k,) the distinct scores

    @classmethod
    def of(cls, scores: np.ndarray) -> Ranking:
        """Sort (n,) finite scores, n > 0."""
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return cls(order, starts, ordered[starts])

    def curve(self, labels: np.ndarray, weights: np.ndarray | None = None) -> Curve:
        """Return the curve of (n,) labels."""
        each = (np.ones(len(self.order)) if weights is None else weights)[..., self.order]
        predicted = np.add.reduceat(each, self.starts, axis=-1)
        hits = np.add.reduceat(each * labels[self.order], self.starts, axis=-1)
        return Curve(self.thresholds, np.cumsum(predicted, axis=-1), np.cumsum(hits, axis=-1))


def f1(predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return 2 TP / (2 TP + FP + FN); NaN where nothing is bought or predicted."""
    weights = np.ones(len(labels)) if weights is None else weights
    hits, chosen, bought = (
        weights @ one.astype(np.float64) for one in (predicted & labels, predicted, labels)
    )
    return _divided(2 * hits, chosen + bought)


def always_buy_f1(share: float) -> float:
    """Return the F1 of predicting a purchase always, of the share of purchase sessions."""
    return 2 * share / (1 + share)


def average_precision(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the area under the steps of precision over recall, uninterpolated; equal scores enter together."""
    return Ranking.of(scores).curve(labels, weights).average_precision


def roc_auc(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the share of pairs in which the purchase scores higher than the other; equal ones count half."""
    curve = Ranking.of(scores).curve(labels, weights)
    others = curve.predicted - curve.hits
    width = np.diff(others, axis=-1, prepend=0.0)
    height = curve.hits - np.diff(curve.hits, axis=-1, prepend=0.0) / 2
    return _divided(np.sum(width * height, axis=-1), curve.hits[..., -1] * others[..., -1])


def brier(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean squared difference of probability and outcome; that of the base rate p is p (1 − p)."""
    return float(np.mean((probabilities - labels) ** 2))


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean −ln of the probability of what happened; those within 1e-15 of 0 and 1 are moved."""
    given = np.clip(np.where(labels, probabilities, 1 - probabilities), 1e-15, 1.0)
    return float(-np.mean(np.log(given)))


def lift_at(scores: np.ndarray, labels: np.ndarray, share: float = 0.1) -> float:
    """Return the purchases among the ``share`` of sessions with the highest scores, as a multiple of the base rate.

    The share is rounded up to whole sessions. Where its border lies within sessions of equal score, as many of
    their purchases count as a random order among them would give on average.
    """
    curve = Ranking.of(scores).curve(labels)
    wanted = float(np.ceil(share * len(labels)))
    hits = np.interp(wanted, np.append(0.0, curve.predicted), np.append(0.0, curve.hits))
    return float(_divided(np.asarray(hits / wanted), np.asarray(labels.mean())))


def precision_at_recall(scores: np.ndarray, labels: np.ndarray, recall: float = 0.5) -> float:
    """Return the best precision of any threshold that finds at least that share of purchases."""
    curve = Ranking.of(scores).curve(labels)
    reached = curve.recall >= recall - 1e-12
    return float(curve.precision[reached].max()) if reached.any() else float("nan")


def best_threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the score from which on predicting a purchase gives the best F1, the highest of equally good ones.

    NaN where nothing was bought.
    """
    if not labels.any():
        return float("nan")
    curve = Ranking.of(scores).curve(labels)
    found = 2 * curve.hits / (curve.predicted + curve.hits[-1])
    return float(curve.thresholds[int(np.argmax(found))])


Measured = Callable[[np.ndarray], np.ndarray]
"""From (samples, sessions) weights to (samples,) values."""


@dataclass(frozen=True, eq=False)
class Persons:
    """The percentile bootstrap over persons: whose sessions are drawn together, the same draws for all cells.

    Persons are drawn among all of the table, whichever cell is measured: the differences of two cells' resamples, be
    it of two feature sets, two models or two steps, are then resamples of the difference.
    """

    numbers: np.ndarray  # (n,) of all sessions of the table: 0, 1, … of its persons
    count: int  # how many there are
    how: Bootstrap  # samples, confidence and seed

    @classmethod
    def of(cls, persons: np.ndarray, how: Bootstrap) -> Persons:
        """Number persons of (n,) whatever numbers."""
        known, numbers = np.unique(persons, return_inverse=True)
        return cls(numbers, len(known), how)

    def resamples(self, rows: np.ndarray, measures: Mapping[str, Measured]) -> dict[str, np.ndarray]:
        """Return per measure (samples,) values on every resample; NaN where it is not defined."""
        found: dict[str, list[np.ndarray]] = {name: [] for name in measures}
        mine = self.numbers[rows]
        for drawn in drawn_clusters(self.how, 0, self.count, len(self.numbers)):
            weights = drawn[:, mine]
            for name, measured in measures.items():
                found[name].append(measured(weights))
        return {name: np.concatenate(parts) if parts else np.zeros(0) for name, parts in found.items()}

    def interval(self, samples: np.ndarray) -> tuple[float | None, float | None]:
        """Return the ends of the percentile interval; None without resamples."""
        return interval(samples, self.how.confidence) or (None, None)


_NEAREST = 1e-3
"""Probabilities nearer to 0 or 1 count as that near: a forest says 0 where it means fewer than one tree in 100."""


def log_odds(scores: np.ndarray, model: IntentModel) -> np.ndarray:
    """Return what the sigmoid is fitted to: decisions as they are, probabilities as ln p / (1 − p).

    With log odds, weighing classes differently is a change of the intercept alone.
    """
    if model.output == "decision":
        return scores
    near = np.clip(scores, _NEAREST, 1 - _NEAREST)
    odds: np.ndarray = np.log(near / (1 - near))
    return odds


@dataclass(frozen=True)
class Platt:
    """Map scores to probabilities that mean what they say: p = 1 / (1 + exp(−(slope · x + intercept))).

    A model whose classes weigh the same gives probabilities of a world where half of all sessions end in a purchase,
    and a support vector machine gives none at all. A sigmoid, fitted on sessions that the model has not seen, keeps
    the order. Source: Platt, Probabilistic outputs for support vector machines, 1999.
    """

    slope: float
    intercept: float

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """Return (n,) of (n,) log odds or decisions."""
        found: np.ndarray = 0.5 * (1 + np.tanh((self.slope * x + self.intercept) / 2))  # never overflows
        return found


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
    middle, spread = float(x.mean()), float(x.std())
    if spread < 1e-12 * max(1.0, abs(middle)):  # one value, but for rounding: nothing to tell apart by
        return Platt(0.0, float(np.log(targets.sum() / (1 - targets).sum())))
    linear = require("sklearn.linear_model", "commerce", "calibration")
    logistic = linear.LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    z = np.tile((x - middle) / spread, 2)[
        :, None
    ]  # every session is a purchase with a weight, and none with the rest
    logistic.fit(z, np.repeat([1, 0], len(x)), np.concatenate([targets, 1 - targets]))
    slope = float(logistic.coef_[0, 0]) / spread
    return Platt(slope, float(logistic.intercept_[0]) - slope * middle)


def reliability(probabilities: np.ndarray, labels: np.ndarray, bins: int = 10) -> list[dict[str, Any]]:
    """Return rows {low, high, n, mean_score, share}, lowest first: do as many buy as the probabilities say?

    Bins hold equally many sessions, so that rare high probabilities and the many low ones are seen with the same
    precision; sessions of equal probability stay together, so that a bin may be larger and bins may be fewer.
    """
    order = np.argsort(probabilities, kind="stable")
    ordered, bought, n = probabilities[order], labels[order], len(order)
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
    ]
