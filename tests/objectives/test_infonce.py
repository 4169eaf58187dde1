from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import NumericalError
from diptych.objectives import infonce
from diptych.objectives.infonce import InfoNCE


def slow(scores: np.ndarray, positives: np.ndarray, temperature: float) -> list[float]:
    """Per query of one direction, the mean over its positives, each against all negatives."""
    losses = []
    for row, relevant in zip(scores / temperature, positives, strict=True):
        negatives = sum(math.exp(s) for s in row[~relevant])
        losses.append(np.mean([-math.log(math.exp(s) / (math.exp(s) + negatives)) for s in row[relevant]]))
    return losses


def random_case(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    owner = np.sort(np.concatenate([np.arange(4), random.integers(4, size=3)]))
    positives = np.arange(4)[:, None] == owner[None, :]
    return torch.from_numpy(random.uniform(-1, 1, (4, 7))), torch.from_numpy(positives)


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.5, 2.0]))
def test_agrees_with_a_slow_form(seed: int, temperature: float) -> None:
    scores, positives = random_case(seed)
    i2t = slow(scores.numpy(), positives.numpy(), temperature)
    t2i = slow(scores.numpy().T, positives.numpy().T, temperature)
    assert infonce(scores, positives, temperature).item() == pytest.approx((np.mean(i2t) + np.mean(t2i)) / 2)
    total = infonce(scores, positives, temperature, reduction="sum").item()
    assert total == pytest.approx((sum(i2t) + sum(t2i)) / 2)
    assert infonce(scores, positives, temperature, reduction="none").tolist() == pytest.approx(i2t + t2i)
    assert infonce(scores, positives, temperature, direction="t2i").item() == pytest.approx(np.mean(t2i))


def test_another_caption_of_the_same_image_is_no_negative() -> None:
    positives = torch.tensor([[True, True, False], [False, False, True]])
    low = torch.tensor([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    high = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    first = infonce(low, positives, direction="i2t", reduction="none", temperature=1.0)
    assert first[0].item() == pytest.approx((math.log(1 + math.exp(-1)) + math.log(1 + math.exp(1))) / 2)
    assert infonce(high, positives) < infonce(low, positives)
    assert infonce(high, positives, compat="pairs") > 3 * infonce(high, positives)


def test_learned_temperature_has_a_gradient_and_a_ceiling() -> None:
    objective = InfoNCE(0.07, learn_temperature=True)
    scores, positives = random_case(0)
    objective(scores.float(), positives).backward()
    assert objective.log_scale is not None
    assert objective.log_scale.grad is not None
    assert objective.logged() == {"temperature": pytest.approx(0.07)}
    with torch.no_grad():
        objective.log_scale.fill_(9.0)
    assert objective.logged()["temperature"] == pytest.approx(0.01)


def test_a_temperature_at_its_ceiling_still_learns() -> None:
    scores, positives = random_case(0)
    # The pairs are told apart badly, so 1/τ should come down; it starts at, and beyond, the ceiling.
    for start in (0.01, 0.001):
        objective = InfoNCE(start, learn_temperature=True)
        optimizer = torch.optim.SGD(objective.parameters(), lr=0.1)
        objective(-scores.float() * positives, positives).backward()
        optimizer.step()
        assert objective.logged()["temperature"] > 0.0101


def test_a_learned_temperature_that_diverged_is_named() -> None:
    objective = InfoNCE(learn_temperature=True)
    assert objective.log_scale is not None
    with torch.no_grad():
        objective.log_scale.fill_(torch.nan)
    scores, positives = random_case(0)
    for use in (objective, objective.per_query):
        with pytest.raises(NumericalError, match="the learned temperature is nan"):
            use(scores, positives)
