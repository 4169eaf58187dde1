from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from score_batches import random_batch

from diptych.objectives import cosine_distance
from diptych.objectives.cosine_distance import CosineDistance


def test_by_hand() -> None:
    scores = torch.tensor([[0.9, 0.5, -1.0], [-1.0, -1.0, 0.0]], dtype=torch.float64)
    positives = torch.tensor([[True, True, False], [False, False, True]])
    # Image 0: mean of 0.1 and 0.5; image 1: 1. Texts: 0.1, 0.5 and 1.
    assert cosine_distance(scores, positives, direction="i2t").item() == pytest.approx((0.3 + 1) / 2)
    assert cosine_distance(scores, positives, direction="t2i").item() == pytest.approx(1.6 / 3)
    assert cosine_distance(scores, positives).item() == pytest.approx((0.65 + 1.6 / 3) / 2)
    assert cosine_distance(scores, positives, compat="pairs").item() == pytest.approx(1.6 / 3)
    assert cosine_distance(scores, positives, reduction="none").tolist() == pytest.approx(
        [0.3, 1.0, 0.1, 0.5, 1.0]
    )


@given(st.integers(0, 10_000))
def test_negatives_are_not_looked_at(seed: int) -> None:
    batch = random_batch(seed)
    scores = batch.scores.requires_grad_()
    CosineDistance()(scores, batch.positives).backward()
    assert scores.grad is not None
    assert (scores.grad[batch.positives] < 0).all()
    assert not scores.grad[~batch.positives].any()


def test_one_pair_is_enough() -> None:
    one = torch.tensor([[0.25]])
    assert not CosineDistance.needs_negatives
    assert CosineDistance()(one, torch.ones(1, 1, dtype=torch.bool)).item() == 0.75
    assert CosineDistance(compat="pairs")(one, torch.ones(1, 1, dtype=torch.bool)).item() == 0.75
