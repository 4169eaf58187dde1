"""The contrastive loss by hand, and its tree-aware margins."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from diptych.commerce.category_to_image.loss import (
    CategoryProductLoss,
    category_product_loss,
    pair_losses,
    tree_margins,
)
from diptych.core.errors import NumericalError, UsageError
from diptych.data.taxonomy import CategoryTree

C = np.random.default_rng(0).standard_normal((5, 3))

P = np.random.default_rng(1).standard_normal((5, 3))

SAME = np.array([[a == b for b in "abaca"] for a in "abaca"])


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / math.sqrt((left @ left) * (right @ right)))


def slow_loss(temperature: float, balance: float) -> float:
    """Eq. 7.7 to 7.9, letter by letter."""
    total = 0.0
    beta = len(C)
    for j in range(beta):
        own = math.exp(cosine(C[j], P[j]) / temperature)
        to_product = -math.log(own / sum(math.exp(cosine(C[j], P[k]) / temperature) for k in range(beta)))
        to_category = -math.log(own / sum(math.exp(cosine(P[j], C[k]) / temperature) for k in range(beta)))
        total += balance * to_category + (1 - balance) * to_product
    return total / beta


def slow_pairs(scores: np.ndarray) -> list[float]:
    """c→p of each pair with other pairs of the same category masked."""
    losses = []
    for j in range(len(scores)):
        others = sum(math.exp(scores[j, k]) for k in range(len(scores)) if not SAME[j, k])
        losses.append(-math.log(math.exp(scores[j, j]) / (math.exp(scores[j, j]) + others)))
    return losses


@pytest.mark.parametrize("temperature", [1.0, 0.07])
@pytest.mark.parametrize("balance", [0.0, 0.3, 1.0])
def test_the_published_loss_letter_by_letter(temperature: float, balance: float) -> None:
    found = category_product_loss(torch.from_numpy(C), torch.from_numpy(P), temperature, balance)
    assert float(found) == pytest.approx(slow_loss(temperature, balance), rel=1e-12)


def test_pairs_of_one_category() -> None:
    scores = np.random.default_rng(2).standard_normal((5, 5))
    given = torch.from_numpy(scores)
    to_category, to_product = pair_losses(given, 1.0, torch.from_numpy(SAME), duplicates="masked")
    np.testing.assert_allclose(to_product, slow_pairs(scores), rtol=1e-10)
    np.testing.assert_allclose(to_category, slow_pairs(scores.T), rtol=1e-10)


def test_a_batch_of_one_category_has_nothing_to_learn() -> None:
    scores = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    losses = pair_losses(scores, 0.1, torch.ones(3, 3, dtype=torch.bool), duplicates="masked")
    sum(losses).sum().backward()
    assert scores.grad is not None
    assert not scores.grad.any()


@pytest.mark.parametrize("duplicates", ["negatives", "masked"])
def test_gradients_against_finite_differences(duplicates: str) -> None:
    def loss(c: torch.Tensor, p: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        same = torch.from_numpy(SAME)
        return category_product_loss(c, p, t, 0.3, same, duplicates=duplicates)  # type: ignore[arg-type]

    inputs = (torch.tensor(C), torch.tensor(P), torch.tensor(0.5, dtype=torch.float64))
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
        (lambda: pair_losses(two, duplicates="masked"), "nobody says which"),
        (lambda: pair_losses(two, duplicates="some"), "duplicates 'some'"),  # type: ignore[arg-type]
        (lambda: pair_losses(torch.ones(2, 3)), r"\(2, 3\)"),
        (
            lambda: category_product_loss(torch.ones(2, 3), torch.ones(3, 3)),
            r"are \(2, 3\), products \(3, 3\)",
        ),
        (lambda: category_product_loss(two, two, balance=1.5), r"balance 1\.5"),
        (lambda: tree_margins(TREE, NODES, -0.1), r"strength -0\.1"),
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


def test_the_loss_by_hand() -> None:
    margins = torch.from_numpy(tree_margins(TREE, NODES, 0.2)).double()
    to_category, to_product = pair_losses(SCORES, 0.5, margins=margins)
    # A score and its margin, over the temperature: row 0 to products, column 2 to categories.
    for found, right, others in (
        (to_product[0], 0.9, (0.6, 0.3, 0.6)),
        (to_category[2], 0.7, (0.3, 0.2, 0.3)),
    ):
        parts = [math.exp(one / 0.5) for one in (right, *others)]
        assert float(found) == pytest.approx(-math.log(parts[0] / sum(parts)), rel=1e-6)


@pytest.mark.parametrize("duplicates", ["negatives", "masked"])
def test_strength_0_is_the_plain_loss_to_the_bit(duplicates: str) -> None:
    same = torch.from_numpy(NODES[:, None] == NODES[None, :])
    none = torch.from_numpy(tree_margins(TREE, NODES, 0.0)).double()
    with_none = pair_losses(SCORES, 0.1, same, duplicates=duplicates, margins=none)  # type: ignore[arg-type]
    plain = pair_losses(SCORES, 0.1, same, duplicates=duplicates)  # type: ignore[arg-type]
    assert all(torch.equal(one, other) for one, other in zip(with_none, plain, strict=True))


def test_it_bounds_the_distance_of_the_prediction() -> None:
    chance = np.random.default_rng(0)
    for temperature in (0.05, 0.5, 2.0):
        for _ in range(20):
            scores = torch.from_numpy(chance.uniform(-1, 1, (4, 4)))
            margins = torch.from_numpy(tree_margins(TREE, NODES, 0.3)).double()
            _, to_product = pair_losses(scores, temperature, margins=margins)
            bound = margins[torch.arange(4), scores.argmax(dim=1)]
            assert bool((temperature * to_product >= bound - 1e-12).all())


def test_gradients_against_finite_differences_tree_distance() -> None:
    margins = torch.from_numpy(tree_margins(TREE, NODES, 0.4)).double()

    def loss(c: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        return category_product_loss(c, p, 0.3, 0.6, margins=margins)

    chance = torch.Generator().manual_seed(0)
    rows = [torch.randn(4, 3, generator=chance, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(loss, tuple(rows))


def test_margins_of_a_batch_do_not_depend_on_what_else_is_in_it() -> None:
    np.testing.assert_allclose(tree_margins(TREE, np.array([0, 3]), 1.0, greatest=4), [[0, 0.5], [0.5, 0]])
