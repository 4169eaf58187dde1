"""What every threshold finds: the one pass over sorted scores that measures of order are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def divided(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """``above`` / ``below``, which is broadcast; NaN where ``below`` is 0."""
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    found: np.ndarray = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return found


@dataclass(frozen=True, eq=False)
class Curve:
    """k distinct scores, highest first; counts are weighted and cumulated.

    Attributes:
        thresholds: (k,) the scores.
        predicted: (…, k) sessions with at least that score.
        hits: (…, k) purchases among them.
    """

    thresholds: np.ndarray
    predicted: np.ndarray
    hits: np.ndarray

    @property
    def precision(self) -> np.ndarray:
        """(…, k) NaN before the first session."""
        return divided(self.hits, self.predicted)

    @property
    def recall(self) -> np.ndarray:
        """(…, k) NaN where nothing was bought."""
        return divided(self.hits, self.hits[..., -1:])

    @property
    def average_precision(self) -> np.ndarray:
        """(…,) Σ (R_i − R_i−1) P_i over the distinct scores."""
        gained = np.diff(self.recall, axis=-1, prepend=0.0)
        found: np.ndarray = np.sum(gained * np.where(gained > 0, self.precision, 0.0), axis=-1)
        return found


@dataclass(frozen=True, eq=False)
class Ranking:
    """Sessions in the order of their scores: sorted once, for many weights.

    Attributes:
        order: (n,) their numbers, highest score first.
        starts: (k,) the place of the first of every distinct score.
        thresholds: (k,) the distinct scores.
    """

    order: np.ndarray
    starts: np.ndarray
    thresholds: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray) -> Ranking:
        """Of (n,) finite scores, n > 0."""
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return cls(order, starts, ordered[starts])

    def curve(self, labels: np.ndarray, weights: np.ndarray | None = None) -> Curve:
        """The curve of (n,) labels."""
        each = (np.ones(len(self.order)) if weights is None else weights)[..., self.order]
        predicted = np.add.reduceat(each, self.starts, axis=-1)
        hits = np.add.reduceat(each * labels[self.order], self.starts, axis=-1)
        return Curve(self.thresholds, np.cumsum(predicted, axis=-1), np.cumsum(hits, axis=-1))


def curve_of(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> Curve:
    """The curve of (n,) scores and labels, with (…, n) weights."""
    return Ranking.of(scores).curve(labels, weights)
