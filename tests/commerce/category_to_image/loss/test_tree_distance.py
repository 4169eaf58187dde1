from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from diptych.commerce.category_to_image.loss import category_product_loss, pair_losses, tree_margins
from diptych.core.errors import UsageError
from diptych.data.taxonomy import CategoryTree

# Clothes(0) > Shirts(1), Trousers(2); Home(3) > Lamps(4)
TREE = CategoryTree([("Clothes", "Shirts"), ("Clothes", "Trousers"), ("Home", "Lamps")])
NODES = np.array([1, 2, 4, 1])
SCORES = torch.tensor(
    [
        [0.9, 0.5, 0.1, 0.6],
        [0.4, 0.8, 0.0, 0.2],
        [0.3, 0.2, 0.7, 0.1],
        [0.9, 0.5, 0.1, 0.6],
    ],
    dtype=torch.float64,
)


def test_margins_by_hand() -> None:
    # Siblings are 2 edges apart, other trees 4, which is as far as it goes.
    expected = [[0, 0.1, 0.2, 0], [0.1, 0, 0.2, 0.1], [0.2, 0.2, 0, 0.2], [0, 0.1, 0.2, 0]]
    np.testing.assert_allclose(tree_margins(TREE, NODES, 0.2), expected, rtol=1e-6)


def test_the_loss_by_hand() -> None:
    margins = torch.from_numpy(tree_margins(TREE, NODES, 0.2)).double()
    to_category, to_product = pair_losses(SCORES, 0.5, margins=margins)
    first = -math.log(
        math.exp(0.9 / 0.5)
        / (math.exp(0.9 / 0.5) + math.exp(0.6 / 0.5) + math.exp(0.3 / 0.5) + math.exp(0.6 / 0.5))
    )
    assert float(to_product[0]) == pytest.approx(first, rel=1e-6)
    third = -math.log(
        math.exp(0.7 / 0.5)
        / (math.exp(0.3 / 0.5) + math.exp(0.2 / 0.5) + math.exp(0.7 / 0.5) + math.exp(0.3 / 0.5))
    )
    assert float(to_category[2]) == pytest.approx(third, rel=1e-6)


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


def test_another_tree_weighs_more_than_a_sibling_of_the_same_score() -> None:
    scores = torch.full((3, 3), 0.2, dtype=torch.float64, requires_grad=True)
    margins = torch.from_numpy(tree_margins(TREE, NODES[:3], 0.2)).double()
    _, to_product = pair_losses(scores, 0.1, margins=margins)
    to_product.sum().backward()
    assert scores.grad is not None
    sibling, other = scores.grad[0, 1], scores.grad[0, 2]
    assert float(other / sibling) == pytest.approx(math.exp(0.1 / 0.1), rel=1e-6)


def test_gradients_against_finite_differences() -> None:
    margins = torch.from_numpy(tree_margins(TREE, NODES, 0.4)).double()

    def loss(c: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        return category_product_loss(c, p, 0.3, 0.6, margins=margins)

    chance = torch.Generator().manual_seed(0)
    rows = [torch.randn(4, 3, generator=chance, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(loss, tuple(rows))


def test_margins_of_a_batch_do_not_depend_on_what_else_is_in_it() -> None:
    np.testing.assert_allclose(tree_margins(TREE, np.array([0, 3]), 1.0, greatest=4), [[0, 0.5], [0.5, 0]])


def test_a_negative_strength() -> None:
    with pytest.raises(UsageError, match=r"strength -0\.1"):
        tree_margins(TREE, NODES, -0.1)
