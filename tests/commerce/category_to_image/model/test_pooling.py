from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.category_to_image.model import AttentionPooling, Bags, mean_pooled


def bags_of(counts: list[int], width: int = 3, seed: int = 0, scale: float = 1.0) -> Bags:
    chance = np.random.default_rng(seed)
    rows = torch.from_numpy(scale * chance.standard_normal((sum(counts), width)))
    return Bags(rows, torch.tensor(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)))


def slow_pooled(bags: Bags, query: list[float]) -> list[list[float]]:
    """Attention over each product's attributes, one at a time; a query of zeros is the mean."""
    pooled = []
    for begin, end in zip(bags.start.tolist(), bags.start.tolist()[1:], strict=False):
        rows = bags.rows[begin:end].tolist()
        logits = [sum(a * q for a, q in zip(row, query, strict=True)) / math.sqrt(len(query)) for row in rows]
        parts = [math.exp(logit) for logit in logits]
        pooled.append(
            [
                sum(part * row[place] for part, row in zip(parts, rows, strict=True)) / sum(parts)
                if rows
                else 0.0
                for place in range(len(query))
            ]
        )
    return pooled


def test_the_mean_by_hand() -> None:
    bags = Bags(torch.tensor([[1.0, 2.0], [3.0, 6.0], [5.0, 5.0]]), torch.tensor([0, 2, 2, 3]))
    assert mean_pooled(bags).tolist() == [[2.0, 4.0], [0.0, 0.0], [5.0, 5.0]]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_mean_and_attention_agree_with_a_loop(counts: list[int]) -> None:
    bags, attention = bags_of(counts), AttentionPooling(3).double()
    np.testing.assert_allclose(
        mean_pooled(bags), np.array(slow_pooled(bags, [0.0] * 3)).reshape(-1, 3), atol=1e-12
    )
    torch.testing.assert_close(attention(bags), mean_pooled(bags))  # before training it is the mean
    attention.query.data = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    expected = np.array(slow_pooled(bags, attention.query.tolist())).reshape(-1, 3)
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


def test_padded_rows_are_the_same_bags() -> None:
    padded = torch.arange(24.0).reshape(3, 4, 2)
    present = torch.tensor([[True, False, True, False], [False] * 4, [True] * 4])
    bags = Bags.from_padded(padded, present)
    assert bags.start.tolist() == [0, 2, 2, 6]
    assert bags.rows[:2].tolist() == [[0, 1], [4, 5]]
    assert bags.owner.tolist() == [0, 0, 2, 2, 2, 2]
