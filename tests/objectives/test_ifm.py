from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from score_batches import random_batch

from diptych.objectives import ifm, infonce, infonce_ifm
from diptych.objectives.ifm import InfoNCEIFM

GOLDEN = Path(__file__).parents[1] / "golden"
EYE = torch.eye(2, dtype=torch.bool)


def slow(scores: np.ndarray, positives: np.ndarray, temperature: float, epsilon: float) -> list[float]:
    """Per query the mean over its positives, every score moved by ε before the exponential."""
    losses = []
    for row, relevant in zip(scores, positives, strict=True):
        negatives = sum(math.exp((s + epsilon) / temperature) for s in row[~relevant])
        raised = [math.exp((s - epsilon) / temperature) for s in row[relevant]]
        losses.append(float(np.mean([-math.log(p / (p + negatives)) for p in raised])))
    return losses


@given(st.integers(0, 10_000), st.sampled_from([0.07, 1.0]), st.sampled_from([0.0, 0.05, 1.0]))
def test_agrees_with_scores_moved_one_by_one(seed: int, temperature: float, epsilon: float) -> None:
    batch = random_batch(seed)
    scores, positives = batch.scores.numpy(), batch.positives.numpy()
    each = slow(scores, positives, temperature, epsilon) + slow(scores.T, positives.T, temperature, epsilon)
    found = ifm(batch.scores, batch.positives, temperature, epsilon, reduction="none")
    assert found.tolist() == pytest.approx(each, abs=1e-12)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_the_mixture_is_a_weighted_mean(seed: int, weight: float) -> None:
    batch = random_batch(seed)
    plain = infonce(batch.scores, batch.positives, 0.1)
    harder = ifm(batch.scores, batch.positives, 0.1, 0.2)
    expected = (plain + weight * harder) / (1 + weight)
    torch.testing.assert_close(infonce_ifm(batch.scores, batch.positives, 0.1, 0.2, weight), expected)
    assert harder >= plain


@pytest.mark.parametrize("epsilon", ["0.0", "0.1"])
def test_agrees_with_the_published_code(epsilon: str) -> None:
    golden = np.load(GOLDEN / "infonce_ifm_svl.npz", allow_pickle=False)
    images = torch.tensor(golden["img"], requires_grad=True)
    captions = torch.tensor(golden["cap"], requires_grad=True)
    objective = InfoNCEIFM(0.07, learn_temperature=True, epsilon=float(epsilon))
    log_scale = torch.nn.Parameter(torch.tensor(-math.log(0.07), dtype=torch.float64))
    objective.log_scale = log_scale
    loss = objective(images @ captions.T, torch.eye(len(images), dtype=torch.bool))
    loss.backward()
    case = f"tau0.07_eps{epsilon}"
    assert loss.item() == pytest.approx(float(golden[f"{case}.loss"]), abs=1e-9)
    np.testing.assert_allclose(images.grad, golden[f"{case}.grad_img"], atol=1e-9)
    np.testing.assert_allclose(captions.grad, golden[f"{case}.grad_cap"], atol=1e-9)
    assert log_scale.grad is not None
    assert log_scale.grad.item() == pytest.approx(float(golden[f"{case}.grad_log_logit_scale"]), abs=1e-9)
