from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import UsageError
from diptych.objectives import triplet
from diptych.objectives.triplet import Triplet, TripletHardest, TripletTop


def slow(scores: np.ndarray, positives: np.ndarray, margin: float, hardest: int | None) -> tuple[float, int]:
    """Triplets one by one; the sum and the number of (query, positive) pairs of one direction."""
    total, pairs = 0.0, 0
    for query in range(len(scores)):
        negatives = [s for s, p in zip(scores[query], positives[query], strict=True) if not p]
        for score in scores[query][positives[query]]:
            hinges = [max(0.0, margin - score + n) for n in negatives]
            total += sum(sorted(hinges, reverse=True)[:hardest])
            pairs += 1
    return total, pairs


def random_case(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    n_images, n_texts = random.integers(2, 6, size=2)
    positives = random.random((n_images, n_texts)) < 0.3
    positives[0, 0] = False  # a negative, whatever else
    positives[np.arange(n_images), 1 + random.integers(n_texts - 1, size=n_images)] = True
    positives[1 + random.integers(n_images - 1, size=n_texts), np.arange(n_texts)] = True
    return torch.from_numpy(random.uniform(-1, 1, (n_images, n_texts))), torch.from_numpy(positives)


def test_by_hand() -> None:
    scores = torch.tensor([[0.9, 0.8, 0.1], [0.2, 0.3, 0.4]], dtype=torch.float64)
    positives = torch.tensor([[True, False, False], [False, True, True]])
    # Image 0: [0.2 − 0.9 + 0.8]₊ + 0. Image 1, captions 1 and 2: [0.2 − 0.3 + 0.2]₊ + [0.2 − 0.4 + 0.2]₊.
    assert triplet(scores, positives, direction="i2t").item() == pytest.approx(0.1 + 0.1 + 0.0)
    # Captions: [0.2 − 0.9 + 0.2]₊, [0.2 − 0.3 + 0.8]₊, [0.2 − 0.4 + 0.1]₊.
    assert triplet(scores, positives, direction="t2i").item() == pytest.approx(0.7)
    assert triplet(scores, positives).item() == pytest.approx(0.9)
    assert triplet(scores, positives, reduction="mean").item() == pytest.approx(0.2 / 3 + 0.7 / 3)
    assert triplet(scores, positives, reduction="none").tolist() == pytest.approx([0.1, 0.1, 0, 0, 0.7, 0])


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.0, 0.2, 1.0]))
def test_agrees_with_triplets_one_by_one(seed: int, hardest: bool, margin: float) -> None:
    scores, positives = random_case(seed)
    i2t, pairs = slow(scores.numpy(), positives.numpy(), margin, 1 if hardest else None)
    t2i, _ = slow(scores.numpy().T, positives.numpy().T, margin, 1 if hardest else None)
    assert triplet(scores, positives, margin, hardest=hardest).item() == pytest.approx(i2t + t2i, abs=1e-12)
    mean = triplet(scores, positives, margin, hardest=hardest, reduction="mean").item()
    assert mean == pytest.approx((i2t + t2i) / pairs, abs=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 7))
def test_the_k_hardest_are_those_of_triplets_one_by_one(seed: int, k: int) -> None:
    """Up to more than there are: then it is the sum over all."""
    scores, positives = random_case(seed)
    i2t, _ = slow(scores.numpy(), positives.numpy(), 0.2, k)
    t2i, _ = slow(scores.numpy().T, positives.numpy().T, 0.2, k)
    assert TripletTop(k=k).forward(scores, positives).item() == pytest.approx(i2t + t2i, abs=1e-12)
    with pytest.raises(UsageError, match="k 0"):
        TripletTop(k=0)


def test_published_pairs_make_other_captions_negatives() -> None:
    scores = torch.tensor([[0.5, 0.6]], dtype=torch.float64)
    positives = torch.tensor([[True, True]])
    # As published: two rows, the same image twice; its other caption and its own copy are negatives.
    expected = (0.2 - 0.5 + 0.6) + (0.2 - 0.6 + 0.5) + 0.2 + 0.2
    assert triplet(scores, positives, compat="pairs").item() == pytest.approx(expected)


def test_a_triplet_at_the_margin_is_no_violation() -> None:
    scores = torch.tensor([[1.0, 0.5], [0.0, 1.0]], requires_grad=True)
    for hardest in (False, True):
        loss = triplet(scores, torch.eye(2, dtype=torch.bool), 0.5, hardest=hardest, direction="i2t")
        (gradient,) = torch.autograd.grad(loss, scores)
        assert loss.item() == 0.0
        assert not gradient.any()


def test_classes_carry_their_choices() -> None:
    scores, positives = random_case(3)
    assert torch.equal(TripletHardest(0.1)(scores, positives), triplet(scores, positives, 0.1, hardest=True))
    chosen = Triplet(0.4, direction="t2i", reduction="mean", compat="pairs")
    expected = triplet(scores, positives, 0.4, direction="t2i", reduction="mean", compat="pairs")
    assert torch.equal(chosen(scores, positives), expected)
