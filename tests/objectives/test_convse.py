from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from score_batches import random_batch

from diptych.objectives import convse, convse_plus_plus, infonce, triplet
from diptych.objectives.convse import ConVSEPlusPlus

GOLDEN = Path(__file__).parents[1] / "golden"
EYE = torch.eye(2, dtype=torch.bool)


def test_every_pair_agrees_with_the_published_code() -> None:
    golden = np.load(GOLDEN / "convse.npz", allow_pickle=False)
    scores = torch.tensor(golden["img"] @ golden["cap"].T)
    each = convse(scores, torch.eye(len(scores), dtype=torch.bool), float(golden["tau"]), reduction="none")
    terms = np.concatenate([golden["loss_I_term_per_pair"], golden["loss_C_term_per_pair"]])
    np.testing.assert_allclose(each, terms, atol=1e-9)


@given(st.integers(0, 10_000), st.sampled_from([0.05, 1.0]))
def test_convse_is_infonce_not_halved(seed: int, temperature: float) -> None:
    batch = random_batch(seed)
    halved = infonce(batch.scores, batch.positives, temperature)
    torch.testing.assert_close(convse(batch.scores, batch.positives, temperature), 2 * halved)
    i2t = infonce(batch.scores, batch.positives, temperature, direction="i2t")
    torch.testing.assert_close(convse(batch.scores, batch.positives, temperature, direction="i2t"), i2t)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.5]), st.sampled_from([0.0, 0.2]))
def test_the_hardest_negatives_are_those_of_the_equations(
    seed: int, temperature: float, margin: float
) -> None:
    """Eq. 12–14 with their exponentials, pair by pair."""
    batch = random_batch(seed)
    total = 0.0
    for scores, positives in ((batch.scores, batch.positives), (batch.scores.T, batch.positives.T)):
        terms = []
        for row, relevant in zip(scores.tolist(), positives.tolist(), strict=True):
            negatives = [s for s, r in zip(row, relevant, strict=True) if not r]
            for score in (s for s, r in zip(row, relevant, strict=True) if r):
                if not negatives:
                    terms.append(0.0)
                    continue
                over = math.exp(score / temperature) / math.exp((max(negatives) + margin) / temperature)
                terms.append(max(0.0, -math.log(over)))
        total += sum(terms) / len(terms)
    loss = convse_plus_plus(batch.scores, batch.positives, temperature, margin)
    assert loss.item() == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_is_the_loss_of_vse_plus_plus_over_pairs_and_temperature(seed: int) -> None:
    """Value and gradient, to the last bits: the two papers' losses differ by a constant factor."""
    random = torch.Generator().manual_seed(seed)
    n, temperature = 16, 0.1
    scores = torch.rand(n, n, dtype=torch.float64, generator=random).requires_grad_()
    positives = torch.eye(n, dtype=torch.bool)
    theirs = triplet(scores, positives, 0.2, hardest=True) / (n * temperature)
    ours = ConVSEPlusPlus(temperature, 0.2)(scores, positives)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-15)
    gradients = [torch.autograd.grad(loss, scores)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-15, atol=0)
    assert gradients[0].any()


def test_no_exponential_overflows() -> None:
    scores = torch.tensor([[-1.0, 1.0], [1.0, -1.0]], requires_grad=True)
    loss = convse_plus_plus(scores, EYE, 1e-3)  # exp(1000) would be infinite
    loss.backward()
    assert loss.item() == pytest.approx(2 * 2200)
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()


def test_queries_add_up_their_positives() -> None:
    scores = torch.tensor([[0.5, 0.6, 0.55], [0.0, 0.1, 0.9]], dtype=torch.float64)
    positives = torch.tensor([[True, True, False], [False, False, True]])
    values = ConVSEPlusPlus(0.1, 0.2).per_query(scores, positives)
    assert values.tolist() == pytest.approx([(0.25 + 0.15) / 0.1, 0.0])
