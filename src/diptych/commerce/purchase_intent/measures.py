"""Measures of (n,) scores and labels, NaN where not defined: for evaluations, scorers and drift."""

from typing import Any

import numpy as np

from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval

RESAMPLED = ("f1", "average_precision", "roc_auc")
"""Measures that have intervals; so has an F1 at another threshold."""


def _divided(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    above, below = np.broadcast_arrays(np.asarray(above, dtype=np.float64), below)
    found: np.ndarray = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return found


class Ranking:
    """Sessions by their scores, sorted once and measured under many weights, which scikit-learn would sort anew."""

    def __init__(self, scores: np.ndarray, labels: np.ndarray) -> None:
        self._order = np.argsort(-scores, kind="stable")
        ordered = scores[self._order]
        self._starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        self._labels = labels[self._order]
        self.thresholds = ordered[self._starts]  # (k,) the distinct scores, highest first

    def counts(self, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return (…, k) sessions with at least each score and purchases among them, with (…, n) weights."""
        each = (np.ones(len(self._order)) if weights is None else weights)[..., self._order]
        parts = (np.add.reduceat(one, self._starts, axis=-1) for one in (each, each * self._labels))
        predicted, hits = (np.cumsum(one, axis=-1) for one in parts)
        return predicted, hits

    def values(self, weights: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return (…,) average precision and ROC AUC, in which equal scores count half."""
        predicted, hits = self.counts(weights)
        others = predicted - hits
        gained, lost = (np.diff(one, axis=-1, prepend=0.0) for one in (hits, others))
        precision = np.nan_to_num(_divided(hits, predicted))
        wins = np.sum(lost * (hits - gained / 2), axis=-1)
        return {
            "average_precision": _divided(np.sum(gained * precision, axis=-1), hits[..., -1]),
            "roc_auc": _divided(wins, hits[..., -1] * others[..., -1]),
        }


def f1(predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return 2 TP / (2 TP + FP + FN), with (…, n) weights; NaN where nothing is bought or predicted."""
    weights = np.ones(len(labels)) if weights is None else weights
    hits, chosen, bought = (weights @ one.astype(float) for one in (predicted & labels, predicted, labels))
    return _divided(2 * hits, chosen + bought)


def best_threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the highest score from which on predicting a purchase gives the best F1; NaN where nothing was bought."""
    ranking = Ranking(scores, labels)
    predicted, hits = ranking.counts()
    best = ranking.thresholds[np.argmax(2 * hits / (predicted + hits[-1]))]
    return float(best) if labels.any() else float("nan")


def costs(acted: np.ndarray, labels: np.ndarray, false_alarm: float, missed: float) -> float:
    return float((false_alarm * (acted & ~labels) + missed * (~acted & labels)).mean())


def least_cost_threshold(p: np.ndarray, labels: np.ndarray, false_alarm: float, missed: float) -> float:
    """Return the probability from which on acting costs least in all; 1 where never acting does."""
    ranking = Ranking(p, labels)
    predicted, hits = ranking.counts()
    each = false_alarm * (predicted - hits) + missed * (hits[-1] - hits)
    best = int(np.argmin(each))
    return float(ranking.thresholds[best]) if each[best] < missed * hits[-1] else 1.0


def measure(scores: np.ndarray, labels: np.ndarray, threshold: float | np.ndarray) -> dict[str, Any]:
    """Return what every table shows of (n,) scores of sessions, a purchase from ``threshold`` on.

    ``lift_10``: purchases among the tenth with the highest scores, as a multiple of the base rate; of equal scores at
    its border as many count as a random order would give on average. ``precision_at_recall_50``: the best precision of
    a threshold that finds half of the purchases.
    """
    rate, ranking = float(labels.mean()), Ranking(scores, labels)
    predicted, hits = ranking.counts()
    top = np.ceil(0.1 * len(labels))
    found = np.interp(top, np.append(0.0, predicted), np.append(0.0, hits))
    enough = hits / predicted * (hits >= hits[-1] / 2 - 1e-12)
    return {
        "sessions": len(labels),
        "purchases": int(labels.sum()),
        "base_rate": rate,
        "always_buy_f1": 2 * rate / (1 + rate),
        "f1": float(f1(scores >= threshold, labels)),
        **{name: float(value) for name, value in ranking.values().items()},
        "lift_10": float(_divided(found / top, labels.mean())),
        "precision_at_recall_50": float(enough.max()) if rate else float("nan"),
    }


def of_probabilities(p: np.ndarray, labels: np.ndarray, bins: int = 10) -> dict[str, Any]:
    """Return Brier score, the base rate's, and reliability: rows of bins of equally many, equal ones together."""
    rate, rows = float(labels.mean()), []
    place = np.searchsorted(np.percentile(p, np.linspace(0, 1, bins + 1) * 100)[1:-1], p)
    for mine in (place == number for number in np.unique(place)):
        values = (p[mine].min(), p[mine].max(), mine.sum(), p[mine].mean(), labels[mine].mean())
        names = ("low", "high", "n", "mean_score", "share")
        rows.append({name: value.item() for name, value in zip(names, values, strict=True)})
    brier = float(np.mean((p - labels) ** 2))
    return {"brier": brier, "brier_prior": rate * (1 - rate), "reliability": rows}


class Persons:
    """The percentile bootstrap over persons, with the same draws for all cells: differences are resampled, too."""

    def __init__(self, persons: np.ndarray, how: Bootstrap) -> None:
        self.persons, self.how = persons, how  # (n,) of all sessions of the table
        self._numbers = np.unique(persons, return_inverse=True)[1]

    def of_scores(
        self,
        rows: np.ndarray,
        scores: np.ndarray,
        labels: np.ndarray,
        predicted: dict[str, tuple[np.ndarray, np.ndarray]],
    ) -> dict[str, np.ndarray]:
        """Return (samples,) average precision, ROC AUC, and by name the F1 of each (predictions, labels)."""
        ranking, numbers, parts = Ranking(scores, labels), self._numbers, []
        for drawn in drawn_clusters(self.how, 0, int(numbers.max(initial=-1)) + 1, len(numbers)):
            weights = drawn[:, numbers[rows]]
            parts.append({name: f1(*one, weights) for name, one in predicted.items()})
            parts[-1] |= ranking.values(weights)
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}

    def ends(self, samples: dict[str, np.ndarray], *names: str) -> dict[str, float | None]:
        """Return ``NAME_low`` and ``NAME_high`` of each measure; None without resamples."""
        found: dict[str, float | None] = {}
        for name in names:
            low, high = interval(samples.get(name, ()), self.how.confidence) or (None, None)
            found |= {f"{name}_low": low, f"{name}_high": high}
        return found
