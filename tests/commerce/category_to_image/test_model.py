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
    mean_pooled,
)
from diptych.core.errors import MismatchError


def bags_of(counts: list[int], width: int = 3, seed: int = 0, scale: float = 1.0) -> Bags:
    chance = np.random.default_rng(seed)
    rows = torch.from_numpy(scale * chance.standard_normal((sum(counts), width)))
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
def test_mean_and_attention_agree_with_a_loop(counts: list[int]) -> None:
    bags, attention = bags_of(counts), AttentionPooling(3).double()
    np.testing.assert_allclose(mean_pooled(bags), slow_pooled(bags, [0.0] * 3), atol=1e-12)
    torch.testing.assert_close(attention(bags), mean_pooled(bags))  # before training it is the mean
    attention.query.data = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    expected = slow_pooled(bags, attention.query.tolist())
    np.testing.assert_allclose(attention(bags).detach(), expected, atol=1e-12)


def test_weights_sum_to_one_and_do_not_overflow() -> None:
    bags, attention = bags_of([3, 0, 2, 1], scale=1e4), AttentionPooling(3).double()
    attention.query.data.fill_(50.0)
    weights = attention.weights(bags)
    sums = torch.zeros(4, dtype=torch.float64).index_add(0, bags.owner, weights)
    np.testing.assert_allclose(sums.detach(), [1, 0, 1, 1])
    attention(bags).sum().backward()
    assert torch.isfinite(attention.query.grad).all()


def test_the_gradient_of_the_query_against_finite_differences() -> None:
    bags, attention = bags_of([3, 1, 0, 2]), AttentionPooling(3).double()

    def pooled(query: torch.Tensor) -> torch.Tensor:
        attention.query.data = query.detach()
        return torch.func.functional_call(attention, {"query": query}, (bags,))

    assert torch.autograd.gradcheck(
        pooled, torch.tensor([0.3, -0.1, 0.7], dtype=torch.float64, requires_grad=True)
    )


def slow_head(head: ProjectionHead, x: np.ndarray) -> np.ndarray:
    """The same head by its formula."""
    state = {name: value.numpy() for name, value in head.state_dict().items()}

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        spread = np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
        return (x - x.mean(axis=1, keepdims=True)) / spread * state[f"{name}.weight"] + state[f"{name}.bias"]

    def gelu(x: np.ndarray) -> np.ndarray:
        return x * ndtr(x)

    for name in ("first", "second"):
        x, layer = linear(name, x), f"{name}_norm"
        x = gelu(norm(layer, x)) if head.normalise == "before" else norm(layer, gelu(x))
    return linear("output", x)


def at_random(model: Any) -> Any:
    chance = torch.Generator().manual_seed(1)
    for value in model.double().parameters():
        value.data = torch.randn(value.shape, generator=chance, dtype=torch.float64)
    return model


@pytest.mark.parametrize("normalise", ["before", "after"])
def test_two_hidden_layers_by_the_formula(normalise: Normalise) -> None:
    head = at_random(ProjectionHead(5, 4, 3, normalise))
    rows = np.random.default_rng(0).standard_normal((6, 5))
    np.testing.assert_allclose(
        head(torch.from_numpy(rows)).detach().numpy(), slow_head(head, rows), rtol=1e-10
    )


def test_dropout_is_after_each_hidden_layer() -> None:
    head = at_random(ProjectionHead(5, 4, 3, "before"))
    rows = torch.ones(2, 5, dtype=torch.float64)
    calls: list[tuple[int, int]] = []

    def keep(n: int, width: int) -> torch.Tensor:
        calls.append((n, width))
        return torch.full((n, width), len(calls) - 1.0, dtype=torch.float64)  # all dropped, then all kept

    dropped = head.second_norm(head.second.bias.expand(2, 4))
    expected = head.output(torch.nn.functional.gelu(dropped))
    torch.testing.assert_close(head(rows, keep=keep), expected)
    assert calls == [(2, 4), (2, 4)]


WIDTHS: dict[Modality, int] = {"image": 5, "title": 3, "attributes": 3}

SUBSETS = [some for size in (1, 2, 3) for some in combinations(MODALITIES, size)]


def random_model(
    modalities: tuple[Modality, ...], attributes: Literal["mean", "attention"]
) -> CategoryProductModel:
    widths = {one: WIDTHS[one] for one in modalities}
    return at_random(CategoryProductModel(widths, 4, hidden=6, width=2, attributes=attributes))


def random_rows(n: int = 6) -> dict[Modality, torch.Tensor | Bags]:
    chance = torch.Generator().manual_seed(4)

    def rows(m: int, width: int) -> torch.Tensor:
        return torch.randn(m, width, generator=chance, dtype=torch.float64)

    return {
        "image": rows(n, 5),
        "title": rows(n, 3),
        "attributes": Bags(rows(4, 3), torch.tensor([0, 1, 1, 3, 3, 4, 4])),
    }


@pytest.mark.parametrize("modalities", SUBSETS, ids="-".join)
def test_any_subset_gives_unit_rows(modalities: tuple[Modality, ...]) -> None:
    model = random_model(modalities, "mean")
    p, c = model(random_rows(), torch.ones(2, 4, dtype=torch.float64))
    torch.testing.assert_close(p.norm(dim=1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(c.norm(dim=1), torch.ones(2, dtype=torch.float64))
    assert model.product_head.first.in_features == sum(WIDTHS[one] for one in modalities)


def plain_products(model: CategoryProductModel, rows: Any, pictured: list[bool]) -> torch.Tensor:
    """Eq. 7.6 product by product: image, title and attributes end to end, a learned row for what is missing."""
    joined = []
    for product, has_image in enumerate(pictured):
        begin, end = rows["attributes"].start[product : product + 2].tolist()
        own = Bags(rows["attributes"].rows[begin:end], torch.tensor([0, end - begin]))
        pooled = mean_pooled(own) if model.attention is None else model.attention(own)
        image = rows["image"][product] if has_image else model.missing["image"]
        attributes = pooled[0] if end > begin else model.missing["attributes"]
        joined.append(torch.cat([image, rows["title"][product], attributes]))
    return torch.nn.functional.normalize(model.product_head(torch.stack(joined)), dim=1)


@pytest.mark.parametrize("attributes", ["mean", "attention"])
def test_products_and_their_gradients_by_the_formula(attributes: Literal["mean", "attention"]) -> None:
    """The learned rows have their gradient by another way than the formula is written."""
    model, rows = random_model(MODALITIES, attributes), random_rows()
    if model.attention is not None:
        model.attention.query.data.fill_(0.3)
    pictured = [True, False, True, False, False, True]
    present = {"image": torch.tensor(pictured)}
    weights = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(6, 2)
    (model.products(rows, present) * weights).sum().backward()
    found = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
    model.zero_grad()
    plain = plain_products(model, rows, pictured)
    torch.testing.assert_close(plain, model.products(rows, present))
    (plain * weights).sum().backward()
    for name, value in model.named_parameters():
        if value.grad is not None:
            torch.testing.assert_close(found[name], value.grad)
    assert found["missing.image"].abs().max() > 0
    assert found["missing.attributes"].abs().max() > 0


def test_what_lies_in_the_place_of_a_missing_row_does_not_count() -> None:
    model, rows = random_model(MODALITIES, "mean"), random_rows()
    present = {one: torch.zeros(6, dtype=torch.bool) for one in MODALITIES}
    with torch.no_grad():
        nothing = model.products(rows, present)
        spoiled = {**rows, "image": torch.full((6, 5), torch.nan, dtype=torch.float64)}
        torch.testing.assert_close(model.products(spoiled, present), nothing)
    assert torch.isfinite(nothing).all()  # a product with nothing at all has a row
    torch.testing.assert_close(nothing, nothing[:1].expand(6, 2))


def test_rows_that_do_not_fit_are_refused() -> None:
    model = random_model(("image", "title"), "mean")
    with pytest.raises(MismatchError, match="no title rows"):
        model.products({"image": torch.ones(1, 5)})
    with pytest.raises(MismatchError, match="image rows are 4 wide, the model takes 5"):
        model.products({"image": torch.ones(1, 4), "title": torch.ones(1, 3)})
