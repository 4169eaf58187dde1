from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from score_batches import random_batch

from diptych.core.errors import UsageError
from diptych.objectives import pairs, smoothap
from diptych.objectives.smoothap import SmoothAP

GOLDEN = Path(__file__).parents[1] / "golden"


def plain(scores: torch.Tensor, positives: torch.Tensor, temperature: float, sign: int = 1) -> torch.Tensor:
    """(queries,) the equations as they stand: every candidate with every other, for each query."""
    losses = []
    for row, relevant in zip(scores, positives, strict=True):
        above = torch.sigmoid(sign * (row[None, :] - row[:, None]) / temperature)  # [i, j]: j above i
        above = above * (1 - torch.eye(len(row), dtype=row.dtype))
        among_positives = 1 + above[:, relevant].sum(dim=1)
        among_all = among_positives + above[:, ~relevant].sum(dim=1)
        losses.append(1 - (among_positives / among_all)[relevant].mean())
    return torch.stack(losses)


def average_precision(scores: list[float], relevant: list[bool]) -> float:
    """The measure itself, from the sorted list."""
    hits, total = 0, 0.0
    for rank, place in enumerate(sorted(range(len(scores)), key=lambda i: -scores[i]), start=1):
        if relevant[place]:
            hits += 1
            total += hits / rank
    return total / hits


def test_by_hand() -> None:
    scores = torch.tensor([[0.3, 0.1, 0.2]], dtype=torch.float64)
    positives = torch.tensor([[True, True, False]])
    higher, lower = 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))  # one τ apart, G(±1)
    two_higher, two_lower = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))
    first = (1 + two_lower) / (1 + two_lower + lower)
    second = (1 + two_higher) / (1 + two_higher + higher)
    batch = torch.cat([scores, scores.flip(1)]), torch.cat([positives, positives.flip(1)])
    loss = smoothap(*batch, 0.1, direction="i2t", reduction="none")
    assert loss.tolist() == pytest.approx([1 - (first + second) / 2] * 2)


@given(st.integers(0, 10_000))
def test_becomes_average_precision(seed: int) -> None:
    batch = random_batch(seed)
    loss = smoothap(batch.scores, batch.positives, 1e-7, direction="i2t", reduction="none")
    exact = [
        1 - average_precision(row, relevant)
        for row, relevant in zip(batch.scores.tolist(), batch.positives.tolist(), strict=True)
    ]
    assert loss.tolist() == pytest.approx(exact, abs=1e-6)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.1, 1.0]), st.sampled_from(["none", "positive-sign"]))
def test_values_and_gradients_are_those_of_the_plain_form(seed: int, temperature: float, compat: str) -> None:
    batch = random_batch(seed, largest=12)
    scores = batch.scores.requires_grad_()
    sign = -1 if compat == "positive-sign" else 1
    expected = [
        plain(scores, batch.positives, temperature, sign),
        plain(scores.T, batch.positives.T, temperature, sign),
    ]
    (gradient,) = torch.autograd.grad((expected[0].mean() + expected[1].mean()) / 2, scores)
    objective = SmoothAP(temperature, compat=compat)  # type: ignore[arg-type]
    loss = objective(scores, batch.positives)
    loss.backward()
    assert loss.item() == pytest.approx((expected[0].mean() + expected[1].mean()).item() / 2, abs=1e-12)
    torch.testing.assert_close(scores.grad, gradient, atol=1e-12, rtol=1e-9)
    torch.testing.assert_close(objective.per_query(scores, batch.positives), expected[0])


@pytest.mark.parametrize("elements", [1, 7, 30, 10_000])
def test_the_size_of_a_block_changes_nothing(elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = random_batch(11, largest=12)
    scores = batch.scores.requires_grad_()
    expected = plain(scores, batch.positives, 0.1)
    weights = torch.arange(1.0, len(scores) + 1, dtype=torch.float64)  # a gradient of its own per query
    (gradient,) = torch.autograd.grad(expected @ weights, scores)
    monkeypatch.setattr(pairs, "BLOCK_ELEMENTS", elements)
    values = smoothap(scores, batch.positives, 0.1, direction="i2t", reduction="none")
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(torch.autograd.grad(values @ weights, scores)[0], gradient)


def test_a_row_larger_than_a_block_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    class Noted:
        def value(self, block: pairs.PairBlock) -> torch.Tensor:
            sizes.append(len(block.rows))
            return block.own[:, 0]

        slope = value

    for elements in (1, 6, 1000):
        monkeypatch.setattr(pairs, "BLOCK_ELEMENTS", elements)
        own = pairs.pair_losses(Noted(), torch.arange(9.0).reshape(3, 3), torch.eye(3, dtype=torch.bool))
        assert own.tolist() == [0.0, 4.0, 8.0]
    assert sizes == [1, 1, 1, 2, 1, 3]


def test_the_printed_sign_agrees_with_the_published_code() -> None:
    golden = np.load(GOLDEN / "smoothap_ecir.npz", allow_pickle=False)
    owner = torch.arange(len(golden["cap"])) // int(golden["n_captions_per_image"])
    positives = torch.arange(len(golden["img"]))[:, None] == owner
    objective = SmoothAP(float(golden["tau"]), compat="positive-sign")
    loss = objective(torch.tensor(golden["img"] @ golden["cap"].T), positives)
    assert loss.item() == pytest.approx(float(golden["loss_if_sign_of_Dij_were_positive"]), abs=1e-9)


def test_a_second_derivative_is_refused() -> None:
    batch = random_batch(0)
    scores = batch.scores.requires_grad_()
    with pytest.raises(UsageError, match="has no second derivative"):
        torch.autograd.grad(smoothap(scores, batch.positives, 0.1), scores, create_graph=True)


def test_only_the_scores_and_their_gradient_grow_with_the_batch() -> None:
    """What is kept between forward and backward is as large as the inputs, not as their pairs."""
    n_images, per_image = 16, 5
    positives = torch.arange(n_images)[:, None] == torch.arange(n_images * per_image) // per_image
    scores = torch.randn(n_images, n_images * per_image, requires_grad=True)
    kept: list[int] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        smoothap(scores, positives)
    assert max(kept) == scores.numel()
    assert sum(kept) < 8 * scores.numel()
