"""Rows of pairs with a planted error: the text side is turned, and all rows of a side have much in common."""

from __future__ import annotations

import numpy as np


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def planted(
    pairs: int, width: int = 12, seed: int = 0, turn: float = 0.8, common: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """(pairs, width) rows of pictures and of texts; the rotation does not depend on the seed."""
    random = np.random.default_rng([seed, 1])
    fixed = np.random.default_rng(99)
    rotation, triangle = np.linalg.qr(
        np.eye(width) + turn * fixed.normal(size=(width, width)) / np.sqrt(width)
    )
    rotation = rotation * np.sign(np.diag(triangle))  # little of a turn is near the identity
    shared = random.normal(size=(pairs, width))
    offsets = common * fixed.normal(size=(2, width))
    images = shared + 0.3 * random.normal(size=shared.shape) + offsets[0]
    texts = shared @ rotation + 0.3 * random.normal(size=shared.shape) + offsets[1]
    return unit(images), unit(texts)


def first_share(images: np.ndarray, texts: np.ndarray) -> float:
    """R@1 of both directions."""
    scores = images @ texts.T
    own = np.arange(len(scores))
    return float((scores.argmax(axis=1) == own).mean() + (scores.argmax(axis=0) == own).mean()) / 2
