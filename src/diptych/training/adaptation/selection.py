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
import torch

from diptych.core.progress import track
from diptych.encoders.linear_maps import LinearMaps
from diptych.objectives.infonce import infonce_per_query

__all__ = ["LEAST_PAIRS", "Learner", "held_out_losses"]

_FOLDS = 5
_ENOUGH = 128
"""When so many pairs have been held out, further folds would say little more."""

_TEMPERATURES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)

LEAST_PAIRS = 32
"""Of fewer, the folds are so small that what they say is mostly chance."""


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
    losses: dict[float, list[np.ndarray]] = {strength: [] for strength in (np.inf, *strengths)}
    enough = min(_FOLDS, math.ceil(_ENOUGH * _FOLDS / count))
    for fold in track(range(enough), "choosing the pull", unit="folds"):
        out = np.arange(count) % _FOLDS == fold
        seen, kept = positives[~out].any(axis=0), positives[out].any(axis=0)
        able = learner(images[~out], texts[seen], positives[~out][:, seen])
        fold_images, fold_texts, fold_positives = images[out], texts[kept], positives[out][:, kept]
        for strength, found in losses.items():
            maps = LinearMaps.identity(images.shape[1]) if strength == np.inf else able.maps(strength)
            x = maps.image(fold_images, "image", range(len(fold_images)))
            y = maps.text(fold_texts, "text", range(len(fold_texts)))
            found.append(_losses(x.astype(np.float64) @ y.T.astype(np.float64), fold_positives))
    return {strength: _best_temperature(found) for strength, found in losses.items()}


def _best_temperature(losses: list[np.ndarray]) -> float:
    return float(np.concatenate(losses, axis=1).mean(axis=1).min())


def _losses(scores: np.ndarray, positives: np.ndarray) -> np.ndarray:
    """(temperatures, images) InfoNCE of each image, the mean of it and its texts as queries."""
    weights = torch.from_numpy(positives / positives.sum(axis=1, keepdims=True))
    relevant = torch.from_numpy(positives)
    found = []
    for temperature in _TEMPERATURES:
        logits = torch.from_numpy(scores / temperature)
        texts = infonce_per_query(logits.T, relevant.T)
        found.append((infonce_per_query(logits, relevant) + weights @ texts) / 2)
    return torch.stack(found).numpy()
