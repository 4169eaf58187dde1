from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from score_batches import random_batch

from diptych.core.errors import NumericalError, UsageError
from diptych.objectives import siglip
from diptych.objectives.siglip import SigLIP

EYE = torch.eye(2, dtype=torch.bool)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0]), st.sampled_from([-10.0, 0.0]))
def test_agrees_with_pairs_one_by_one(seed: int, temperature: float, bias: float) -> None:
    batch = random_batch(seed)
    n_images, n_texts = batch.scores.shape
    total = 0.0
    for image in range(n_images):
        for text in range(n_texts):
            sign = 1 if batch.positives[image, text] else -1
            logit = sign * (batch.scores[image, text].item() / temperature + bias)
            total += math.log1p(math.exp(-logit))
    loss = siglip(batch.scores, batch.positives, temperature, bias)
    assert loss.item() == pytest.approx(total / n_images)
    by_text = siglip(batch.scores, batch.positives, temperature, bias, direction="t2i")
    assert by_text.item() == pytest.approx(total / n_texts)
    whole = siglip(batch.scores, batch.positives, temperature, bias, reduction="sum")
    assert whole.item() == pytest.approx(total)
    each = siglip(batch.scores, batch.positives, temperature, bias, reduction="none")
    assert each.shape == (n_images,)
    assert each.sum().item() == pytest.approx(total)


def test_starts_where_the_paper_starts() -> None:
    objective = SigLIP()
    assert objective.logged() == {"temperature": pytest.approx(0.1), "bias": pytest.approx(-10.0)}
    scores = torch.eye(2) * 0.5
    # Two positives at 10·0.5 − 10 = −5, two negatives at −10, over two images.
    expected = math.log1p(math.exp(5)) + math.log1p(math.exp(-10))
    assert objective(scores, EYE).item() == pytest.approx(expected)


def test_scale_and_bias_are_learned_or_not() -> None:
    scores = torch.tensor([[0.5, 0.2], [0.1, 0.4]])
    learned = SigLIP()
    learned(scores, EYE).backward()
    gradients = {name: parameter.grad for name, parameter in learned.named_parameters()}
    assert set(gradients) == {"log_scale", "bias"}
    # By finite differences in t' and b.
    step = 1e-3
    up = siglip(scores.double(), EYE, 1 / (10 * math.exp(step)))
    down = siglip(scores.double(), EYE, 1 / (10 * math.exp(-step)))
    assert gradients["log_scale"] is not None
    assert gradients["log_scale"].item() == pytest.approx((up - down).item() / (2 * step), rel=1e-4)
    up, down = (siglip(scores.double(), EYE, 0.1, -10 + sign * step) for sign in (1, -1))
    assert gradients["bias"] is not None
    assert gradients["bias"].item() == pytest.approx((up - down).item() / (2 * step), rel=1e-4)
    fixed = SigLIP(learn_temperature=False, learn_bias=False)
    assert list(fixed.parameters()) == []
    assert fixed.logged() == {}
    assert fixed(scores, EYE).item() == pytest.approx(learned(scores, EYE).item())


def test_its_scale_has_no_ceiling() -> None:
    objective = SigLIP()
    assert objective.log_scale is not None
    with torch.no_grad():
        objective.log_scale.fill_(math.log(500.0))
    assert objective.logged()["temperature"] == pytest.approx(1 / 500)


def test_what_makes_no_sense_is_refused() -> None:
    zeros = torch.zeros(2, 2)
    refused(UsageError, "bias nan", siglip, zeros, EYE, bias=math.nan)
    refused(UsageError, "bias inf", SigLIP, bias=math.inf)
    refused(UsageError, "temperature 0", SigLIP, 0.0)
    refused(UsageError, "'up'", siglip, zeros, EYE, direction="up")
    objective = SigLIP()
    assert isinstance(objective.bias, torch.nn.Parameter)
    with torch.no_grad():
        objective.bias.fill_(torch.inf)
    with pytest.raises(NumericalError, match="the learned bias is inf"):
        objective(zeros, EYE)
