"""The contrastive loss by hand, and its tree-aware margins."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
import torch

from diptych.commerce.category_to_image.model import (
    CategoryProductLoss,
    category_product_loss,
    pair_losses,
    tree_margins,
)
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import NumericalError, UsageError

C = np.random.default_rng(0).standard_normal((5, 3))

P = np.random.default_rng(1).standard_normal((5, 3))


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / math.sqrt((left @ left) * (right @ right)))


def slow_pairs(scores: np.ndarray, temperature: float, masked: np.ndarray | None = None) -> list[float]:
    """Eq. 7.7 and 7.8, letter by letter: the loss of every row's own pair, c→p; other pairs can be masked."""
    losses = []
    for j, row in enumerate(scores):
        own = math.exp(row[j] / temperature)
        others = [k for k in range(len(row)) if k != j and (masked is None or not masked[j, k])]
        losses.append(-math.log(own / (own + sum(math.exp(row[k] / temperature) for k in others))))
    return losses


@pytest.mark.parametrize("temperature", [1.0, 0.07])
@pytest.mark.parametrize("balance", [0.0, 0.3, 1.0])
def test_the_published_loss_letter_by_letter(temperature: float, balance: float) -> None:
    found = category_product_loss(torch.from_numpy(C), torch.from_numpy(P), temperature, balance)
    cosines = np.array([[cosine(c, p) for p in P] for c in C])
    to_product, to_category = (np.mean(slow_pairs(one, temperature)) for one in (cosines, cosines.T))
    assert float(found) == pytest.approx(balance * to_category + (1 - balance) * to_product, rel=1e-12)


def test_a_batch_of_one_category_has_nothing_to_learn() -> None:
    scores = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    losses = pair_losses(scores, 0.1, torch.ones(3, 3, dtype=torch.bool))
    sum(losses).sum().backward()
    assert scores.grad is not None
    assert not scores.grad.any()


@pytest.mark.parametrize("strength", [0.0, 0.4])
@pytest.mark.parametrize("duplicates", ["negatives", "masked"])
def test_pairs_of_one_category_and_margins(
    duplicates: Literal["negatives", "masked"], strength: float
) -> None:
    """A margin is added to its score; and gradients are those of finite differences."""
    same, margins = NODES[:, None] == NODES, tree_margins(TREE, NODES, strength)
    given = (torch.from_numpy(same), torch.from_numpy(margins).double())
    if duplicates == "negatives":
        same, given = None, (None, given[1])
    found, scores = pair_losses(SCORES, 0.5, *given), SCORES.numpy()
    for losses, one in zip(found, (scores.T, scores), strict=True):
        np.testing.assert_allclose(losses, slow_pairs(one + margins, 0.5, same), rtol=1e-6)

    def loss(c: torch.Tensor, p: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        cosines = torch.nn.functional.cosine_similarity(c[:, None], p[None], dim=2)
        to_category, to_product = pair_losses(cosines, t, *given)
        return (0.3 * to_category + 0.7 * to_product).mean()

    inputs = (torch.tensor(C[:4]), torch.tensor(P[:4]), torch.tensor(0.5, dtype=torch.float64))
    assert torch.autograd.gradcheck(loss, tuple(one.requires_grad_() for one in inputs))


def test_the_temperature_is_learned_and_capped() -> None:
    loss = CategoryProductLoss(0.07, learn_temperature=True)
    scores = torch.eye(3, requires_grad=True)
    loss(scores).backward()
    assert loss.log_scale is not None
    assert loss.log_scale.grad is not None
    assert float(loss.log_scale.grad) < 0  # everything is right: sharper is better
    loss.log_scale.data.fill_(50.0)
    assert float(torch.as_tensor(loss.temperature).detach()) == pytest.approx(0.01)
    assert CategoryProductLoss(1.0).log_scale is None


def test_what_cannot_be() -> None:
    two = torch.eye(2)
    for refused, said in (
        *((lambda t=t: pair_losses(two, t), "temperature") for t in (0.0, -1.0, math.nan, math.inf)),
        (lambda: pair_losses(torch.ones(2, 3)), r"\(2, 3\)"),
        (
            lambda: category_product_loss(torch.ones(2, 3), torch.ones(3, 3)),
            r"\(2, 3\)",
        ),
        (lambda: category_product_loss(two, two, balance=1.5), r"balance 1\.5"),
    ):
        with pytest.raises(UsageError, match=said):
            refused()
    with pytest.raises(NumericalError, match="learned temperature is nan"):
        pair_losses(two, torch.tensor(math.nan))


# Clothes(0) > Shirts(1), Trousers(2); Home(3) > Lamps(4)
TREE = CategoryTree([("Clothes", "Shirts"), ("Clothes", "Trousers"), ("Home", "Lamps")])

NODES = np.array([1, 2, 4, 1])

SCORES = torch.tensor(
    [[0.9, 0.5, 0.1, 0.6], [0.4, 0.8, 0.0, 0.2], [0.3, 0.2, 0.7, 0.1], [0.9, 0.5, 0.1, 0.6]],
    dtype=torch.float64,
)


def test_margins_by_hand() -> None:
    # Siblings are 2 edges apart, other trees 4, which is as far as it goes.
    expected = [[0, 0.1, 0.2, 0], [0.1, 0, 0.2, 0.1], [0.2, 0.2, 0, 0.2], [0, 0.1, 0.2, 0]]
    np.testing.assert_allclose(tree_margins(TREE, NODES, 0.2), expected, rtol=1e-6)


def test_it_bounds_the_distance_of_the_prediction() -> None:
    chance = np.random.default_rng(0)
    for temperature in (0.05, 0.5, 2.0):
        for _ in range(20):
            scores = torch.from_numpy(chance.uniform(-1, 1, (4, 4)))
            margins = torch.from_numpy(tree_margins(TREE, NODES, 0.3)).double()
            _, to_product = pair_losses(scores, temperature, margins=margins)
            bound = margins[torch.arange(4), scores.argmax(dim=1)]
            assert bool((temperature * to_product >= bound - 1e-12).all())


def test_margins_of_a_batch_do_not_depend_on_what_else_is_in_it() -> None:
    np.testing.assert_allclose(tree_margins(TREE, np.array([0, 3]), 1.0, greatest=4), [[0, 0.5], [0.5, 0]])
