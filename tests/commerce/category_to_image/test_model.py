"""Pooled attributes, heads and both together."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from diptych.commerce.category_to_image.features import MODALITIES, Modality
from diptych.commerce.category_to_image.model import (
    AttentionPooling,
    Bags,
    CategoryProductModel,
    Normalise,
    ProjectionHead,
)


def bags_of(counts: list[int], scale: float = 1.0) -> Bags:
    rows = torch.from_numpy(scale * np.random.default_rng(0).standard_normal((sum(counts), 3)))
    return Bags(rows, torch.tensor(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)))


def slow_pooled(bags: Bags, query: list[float]) -> np.ndarray:
    """Attention over each product's attributes, one at a time; a query of zeros is the mean."""
    pooled = np.zeros((len(bags.start) - 1, len(query)))
    for place, (begin, end) in enumerate(pairwise(bags.start.tolist())):
        rows = bags.rows[begin:end].numpy()
        parts = np.array([math.exp(row @ np.array(query) / math.sqrt(len(query))) for row in rows])
        if len(rows):
            pooled[place] = sum(part * row for part, row in zip(parts, rows, strict=True)) / parts.sum()
    return pooled


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_attention_agrees_with_a_loop_and_begins_as_the_mean(counts: list[int]) -> None:
    bags, attention = bags_of(counts), AttentionPooling(3).double()
    for query in ([0.0, 0.0, 0.0], [1.0, -2.0, 0.5]):
        attention.query.data = torch.tensor(query, dtype=torch.float64)
        np.testing.assert_allclose(attention(bags).detach(), slow_pooled(bags, query), atol=1e-12)


def test_attention_does_not_overflow_and_its_gradient_is_that_of_finite_differences() -> None:
    large, attention = bags_of([3, 0, 2, 1], scale=1e4), AttentionPooling(3).double()
    attention.query.data.fill_(50.0)
    pooled = attention(large)
    pooled.sum().backward()
    assert torch.isfinite(pooled).all()
    assert torch.isfinite(attention.query.grad).all()
    assert torch.equal(pooled[3], large.rows[5])  # of one attribute the mean is itself

    def pooled_by(query: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(attention, {"query": query}, (bags_of([3, 1, 0, 2]),))

    query = torch.tensor([0.3, -0.1, 0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(pooled_by, query)


def at_random(model: Any) -> Any:
    chance = torch.Generator().manual_seed(1)
    for value in model.double().parameters():
        value.data = torch.randn(value.shape, generator=chance, dtype=torch.float64)
    return model.eval()


@pytest.mark.parametrize("normalise", ["before", "after"])
def test_two_hidden_layers_by_the_formula(normalise: Normalise) -> None:
    head, x = at_random(ProjectionHead(5, 4, 3, normalise)), np.random.default_rng(0).standard_normal((6, 5))
    linear = [one for one in head.modules() if isinstance(one, torch.nn.Linear)]
    norms = [one for one in head.modules() if isinstance(one, torch.nn.LayerNorm)]

    def slow(layer: Any, x: np.ndarray) -> np.ndarray:
        return x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()

    def slow_norm(layer: Any, x: np.ndarray) -> np.ndarray:
        spread = np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
        scaled = (x - x.mean(axis=1, keepdims=True)) / spread
        return scaled * layer.weight.detach().numpy() + layer.bias.detach().numpy()

    expected = x
    for layer, norm in zip(linear[:2], norms, strict=True):
        expected = slow(layer, expected)
        before = slow_norm(norm, expected) if normalise == "before" else expected
        activated = before * ndtr(before)
        expected = activated if normalise == "before" else slow_norm(norm, activated)
    found = head(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(found, slow(linear[2], expected), rtol=1e-10)


def test_dropout_is_after_each_hidden_layer_and_only_in_training() -> None:
    head, rows = at_random(ProjectionHead(5, 400, 3, dropout=0.25)), torch.ones(2, 5, dtype=torch.float64)
    assert torch.equal(head(rows), head(rows))
    head.train()
    assert [type(one).__name__ for one in head.rest][2::4] == ["Dropout", "Dropout"]
    assert not torch.equal(head(rows), head(rows))


WIDTHS: dict[Modality, int] = {"image": 5, "title": 3, "attributes": 3}
SUBSETS = [some for size in (1, 2, 3) for some in combinations(MODALITIES, size)]


def random_model(
    modalities: tuple[Modality, ...], attributes: Literal["mean", "attention"] = "mean"
) -> CategoryProductModel:
    widths = {one: WIDTHS[one] for one in modalities}
    return at_random(CategoryProductModel(widths, 4, hidden=6, width=2, attributes=attributes))


def random_rows(n: int = 6) -> dict[Modality, torch.Tensor]:
    chance = torch.Generator().manual_seed(4)
    return {
        one: torch.randn(n, width, generator=chance, dtype=torch.float64) for one, width in WIDTHS.items()
    }


def test_products_by_the_formula() -> None:
    """Eq. 7.6: image, title and attributes end to end; a learned shift of the first layer for what is missing."""
    model, rows = random_model(MODALITIES, "attention"), random_rows()
    bags = Bags(rows["attributes"][:4], torch.tensor([0, 1, 1, 3, 3, 4, 4]))
    present = {
        "image": torch.tensor([True, False, True, False, False, True]),
        "attributes": bags.start.diff() > 0,
    }
    found = model.products({**rows, "attributes": bags}, present)
    image = rows["image"] * present["image"][:, None]
    assert model.attention is not None
    joined = torch.cat([image, rows["title"], model.attention(bags)], dim=1)
    lacks = torch.stack([~present["image"], torch.zeros(6, dtype=torch.bool), ~present["attributes"]], dim=1)
    hidden = model.product_head.first(joined) + lacks.double() @ model.missing
    torch.testing.assert_close(found, torch.nn.functional.normalize(model.product_head.rest(hidden), dim=1))
    found.sum().backward()
    assert model.missing.grad is not None
    assert model.missing.grad.abs().amax(dim=1).bool().tolist() == [True, False, True]


def test_what_lies_in_the_place_of_a_missing_row_does_not_count() -> None:
    model, rows = random_model(MODALITIES), random_rows()
    present = {one: torch.zeros(6, dtype=torch.bool) for one in MODALITIES}
    with torch.no_grad():
        nothing = model.products(rows, present)
        spoiled = {**rows, "image": torch.full((6, 5), torch.nan, dtype=torch.float64)}
        torch.testing.assert_close(model.products(spoiled, present), nothing)
    assert torch.isfinite(nothing).all()  # a product with nothing at all has a row
    torch.testing.assert_close(nothing, nothing[:1].expand(6, 2))
