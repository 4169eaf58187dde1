from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from score_batches import random_batch

from diptych.core.errors import NumericalError, UsageError
from diptych.objectives import Within, mvn
from diptych.objectives.mvn import MVN


def slow(scores: np.ndarray, positives: np.ndarray, within: np.ndarray, temperature: float) -> list[float]:
    """Anchor by anchor; anchors that have a positive in common leave each other alone."""
    losses = []
    for anchor, (row, relevant) in enumerate(zip(scores, positives, strict=True)):
        negatives = [s for s, r in zip(row, relevant, strict=True) if not r]
        for other, score in enumerate(within[anchor]):
            if not (positives[anchor] & positives[other]).any():
                negatives.append(score)
        total = sum(math.exp(s / temperature) for s in negatives)
        raised = [math.exp(s / temperature) for s in row[relevant]]
        losses.append(float(np.mean([-math.log(p / (p + total)) for p in raised])))
    return losses


def simclr(images: torch.Tensor, texts: torch.Tensor, temperature: float) -> torch.Tensor:
    """SimCLR over the 2N rows of N pairs: cross-entropy with each row's own column left out."""
    rows = torch.cat([images, texts])
    n = len(images)
    logits = (rows @ rows.T / temperature).masked_fill(torch.eye(2 * n, dtype=torch.bool), -math.inf)
    return torch.nn.functional.cross_entropy(logits, torch.cat([torch.arange(n) + n, torch.arange(n)]))


@pytest.mark.parametrize("compat", ["none", "pairs"])
def test_pairs_are_simclr_over_twice_as_many_rows(compat: str) -> None:
    images, texts = torch.nn.functional.normalize(torch.randn(2, 8, 5, dtype=torch.float64), dim=2)
    images.requires_grad_()
    texts.requires_grad_()
    expected = torch.autograd.grad(simclr(images, texts, 0.1), (images, texts))
    within = Within(images @ images.T, texts @ texts.T)
    loss = MVN(compat=compat)(images @ texts.T, torch.eye(8, dtype=torch.bool), within)  # type: ignore[arg-type]
    assert loss.item() == pytest.approx(simclr(images, texts, 0.1).item(), abs=1e-12)
    torch.testing.assert_close(torch.autograd.grad(loss, (images, texts)), expected)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0]))
def test_agrees_with_anchors_one_by_one(seed: int, temperature: float) -> None:
    batch = random_batch(seed)
    scores, positives = batch.scores.numpy(), batch.positives.numpy()
    images = slow(scores, positives, batch.within.images.numpy(), temperature)
    texts = slow(scores.T, positives.T, batch.within.texts.numpy(), temperature)
    each = mvn(batch.scores, batch.positives, batch.within, temperature, reduction="none")
    assert each.tolist() == pytest.approx(images + texts, abs=1e-12)
    loss = mvn(batch.scores, batch.positives, batch.within, temperature).item()
    assert loss == pytest.approx(float(np.mean(images + texts)), abs=1e-12)


def test_captions_of_one_image_leave_each_other_alone() -> None:
    positives = torch.tensor([[True, True, False], [False, False, True]])
    scores = torch.tensor([[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]])
    far, near = torch.eye(3), torch.eye(3)
    near[0, 1] = near[1, 0] = 1.0
    images = torch.eye(2)
    assert mvn(scores, positives, Within(images, near)) == mvn(scores, positives, Within(images, far))
    published = [mvn(scores, positives, Within(images, texts), compat="pairs") for texts in (near, far)]
    assert published[0] > published[1]


def test_the_other_modality_may_be_left_out() -> None:
    batch = random_batch(4)
    anything = torch.full_like(batch.within.texts, torch.nan)
    half = mvn(batch.scores, batch.positives, Within(batch.within.images, anything), direction="i2t")
    assert half == mvn(batch.scores, batch.positives, batch.within, direction="i2t")


def test_what_makes_no_sense_is_refused() -> None:
    batch = random_batch(4)
    scores, positives, within = batch
    n_texts = scores.shape[1]
    for call in (MVN(), MVN().per_query):
        refused(UsageError, "mvn wants the scores inside each modality", call, scores, positives)
    with pytest.raises(UsageError, match=rf"among {n_texts} texts have shape \({n_texts}, 1\)"):
        mvn(scores, positives, Within(within.images, within.texts[:, :1]))
    broken = within.images.clone()
    broken[1, 0] = torch.inf
    with pytest.raises(NumericalError, match="image 1 and image 0 of the batch is inf"):
        mvn(scores, positives, Within(broken, within.texts))
    refused(UsageError, "temperature 0", mvn, scores, positives, within, 0)
    with pytest.raises(UsageError, match="'up'"):
        mvn(scores, positives, within, direction="up")  # type: ignore[arg-type]
