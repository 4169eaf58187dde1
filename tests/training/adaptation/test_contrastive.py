from __future__ import annotations

import numpy as np
import scipy.optimize
import torch

from diptych.objectives import infonce
from diptych.training.adaptation.contrastive import ContrastivePairs

from .planted import first_share, planted


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


def test_a_strong_penalty_leaves_the_rows_alone() -> None:
    images, texts = planted(10)
    maps = ContrastivePairs.of(images, texts, np.eye(10, dtype=bool)).maps(1e6)
    assert np.allclose(maps.image.matrix, np.eye(12), atol=1e-5)


def test_a_planted_rotation_is_found() -> None:
    learned, held_out = planted(150, turn=3.0), planted(100, seed=1, turn=3.0)
    maps = ContrastivePairs.of(*learned, np.eye(150, dtype=bool)).maps(0.001)
    adapted = maps.image(held_out[0], "image", range(100)), maps.text(held_out[1], "text", range(100))
    assert first_share(*adapted) > first_share(*held_out) + 0.3


def test_the_same_pairs_give_the_same_bits() -> None:
    images, texts = planted(8)
    first, second = (
        ContrastivePairs.of(images, texts, np.eye(8, dtype=bool)).maps(0.1).fingerprint for _ in range(2)
    )
    assert first == second
