from __future__ import annotations

import numpy as np
import scipy.optimize
import torch

from diptych.objectives import infonce
from diptych.training.adaptation.contrastive import ContrastivePairs

from .planted import planted


def objective(
    images: np.ndarray, texts: np.ndarray, maps: tuple[np.ndarray, np.ndarray], strength: float
) -> float:
    sides = [
        torch.nn.functional.normalize(torch.from_numpy(rows @ a), dim=1)
        for rows, a in zip((images, texts), maps, strict=True)
    ]
    loss = float(infonce(sides[0] @ sides[1].T, torch.eye(len(images), dtype=torch.bool), 0.1))
    return loss + strength * sum(float(np.square(a - np.eye(len(a))).sum()) for a in maps)


def test_the_minimum_is_that_of_the_whole_space() -> None:
    images, texts = planted(2, width=3)
    texts = texts[::-1].copy()  # so that there is something to learn
    found = ContrastivePairs.of(images, texts, np.eye(2, dtype=bool)).maps(0.05)
    mine = (found.image.matrix.astype(float), found.text.matrix.astype(float))

    def value(numbers: np.ndarray) -> float:
        whole = numbers.reshape(2, 3, 3)
        return objective(images, texts, (whole[0], whole[1]), 0.05)

    best = scipy.optimize.minimize(value, np.stack([np.eye(3)] * 2).ravel(), method="BFGS")
    assert abs(objective(images, texts, mine, 0.05) - best.fun) < 1e-4
    assert objective(images, texts, mine, 0.05) < value(np.stack([np.eye(3)] * 2).ravel()) - 1e-2
    assert not found.image.mean.any()
