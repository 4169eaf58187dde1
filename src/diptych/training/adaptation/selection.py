"""How strong the pull should be: as held-out pairs among the given ones say.

The pairs are dealt into folds in turn; maps are learned without a fold and judged on it by InfoNCE among
the fold's own pairs, at the temperature that suits them best, so that only the order and the proportions
of scores count. The encoder as it is takes part. No other data is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from diptych.core.progress import track
from diptych.encoders.linear_maps import LinearMaps

__all__ = ["LEAST_PAIRS", "Learner", "held_out_losses", "infonce_at_best"]

_FOLDS = 5
_ENOUGH = 128
"""When so many pairs have been held out, further folds would say little more."""

_TEMPERATURES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)

LEAST_PAIRS = 4
"""Of fewer, two folds of two pairs cannot be made."""


class Learner(Protocol):
    """What has looked at some pairs and can give maps for any strength of the pull."""

    def maps(self, strength: float) -> LinearMaps:
        """The maps."""


def held_out_losses(
    images: np.ndarray,
    texts: np.ndarray,
    positives: np.ndarray,
    learner: Callable[[np.ndarray, np.ndarray, np.ndarray], Learner],
    strengths: Sequence[float],
) -> dict[float, float]:
    """The held-out loss of each of ``strengths``, and under ``inf`` that of the encoder as it is.

    Args:
        images: (n, d) float64 unit rows.
        texts: (m, d) float64 unit rows.
        positives: (n, m) boolean; every row and column has one.
        learner: makes one of the pairs it may see.
        strengths: to choose from.

    Returns:
        Losses in nats per query, the strongest pull first.
    """
    count = len(images)
    folds = max(2, min(_FOLDS, count // 2))
    losses: dict[float, list[np.ndarray]] = {strength: [] for strength in (np.inf, *strengths)}
    enough = min(folds, math.ceil(_ENOUGH * folds / count))
    for fold in track(range(enough), "choosing the pull", unit="folds"):
        out = np.arange(count) % folds == fold
        seen, kept = positives[~out].any(axis=0), positives[out].any(axis=0)
        able = learner(images[~out], texts[seen], positives[~out][:, seen])
        fold_images, fold_texts, fold_positives = images[out], texts[kept], positives[out][:, kept]
        for strength, found in losses.items():
            maps = LinearMaps.identity(images.shape[1]) if strength == np.inf else able.maps(strength)
            x = maps.image(fold_images, "image", range(len(fold_images)))
            y = maps.text(fold_texts, "text", range(len(fold_texts)))
            found.append(_losses(x.astype(np.float64) @ y.T.astype(np.float64), fold_positives))
    return {strength: _best_temperature(found) for strength, found in losses.items()}


def infonce_at_best(scores: np.ndarray, positives: np.ndarray) -> float:
    """InfoNCE of one fold at the best temperature: nats per query, the mean of both directions.

    Args:
        scores: (n, m) cosines.
        positives: (n, m) boolean.
    """
    return _best_temperature([_losses(scores, positives)])


def _best_temperature(losses: list[np.ndarray]) -> float:
    return float(np.concatenate(losses, axis=1).mean(axis=1).min())


def _losses(scores: np.ndarray, positives: np.ndarray) -> np.ndarray:
    """(temperatures, images) InfoNCE of each image, the mean of it and its texts as queries."""
    weights = positives / positives.sum(axis=1, keepdims=True)
    found = []
    for temperature in _TEMPERATURES:
        logits = scores / temperature
        asked = _surprise(logits, positives, weights)
        back = _surprise(logits.T, positives.T, positives.T / positives.T.sum(axis=1, keepdims=True))
        found.append((asked + weights @ back) / 2)
    return np.stack(found)


def _surprise(logits: np.ndarray, positives: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(queries,) mean over each query's positives of −log p(positive against its negatives)."""
    top = logits.max(axis=1, keepdims=True)  # at most 200 above any other: nothing below vanishes
    others = np.where(positives, 0.0, np.exp(logits - top)).sum(axis=1, keepdims=True)
    pairs = np.log(np.exp(logits - top) + others) - (logits - top)
    surprise: np.ndarray = (np.where(positives, pairs, 0.0) * weights).sum(axis=1)
    return surprise
