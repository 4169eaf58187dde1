"""Small random batches of scores, with several positives per image and per text and at least one negative."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from diptych.objectives import Within


class Batch(NamedTuple):
    """Scores of unit embeddings, what matches, and the scores inside each modality, in float64."""

    scores: torch.Tensor
    positives: torch.Tensor
    within: Within


def random_batch(seed: int, largest: int = 6) -> Batch:
    """2 to ``largest`` images and texts; every row and column has a positive, (0, 0) is a negative."""
    random = np.random.default_rng(seed)
    n_images, n_texts = random.integers(2, largest + 1, size=2)
    positives = random.random((n_images, n_texts)) < 0.25
    positives[0, 0] = False
    positives[np.arange(n_images), 1 + random.integers(n_texts - 1, size=n_images)] = True
    positives[1 + random.integers(n_images - 1, size=n_texts), np.arange(n_texts)] = True
    images, texts = (
        torch.nn.functional.normalize(torch.from_numpy(random.standard_normal((n, 3))))
        for n in (n_images, n_texts)
    )
    return Batch(images @ texts.T, torch.from_numpy(positives), Within(images @ images.T, texts @ texts.T))


def repeated(batch: Batch) -> Batch:
    """The same batch as published code sees it: one row and one column for each positive pair."""
    images, texts = batch.positives.nonzero(as_tuple=True)
    return Batch(
        batch.scores[images][:, texts],
        torch.eye(len(images), dtype=torch.bool),
        Within(batch.within.images[images][:, images], batch.within.texts[texts][:, texts]),
    )
