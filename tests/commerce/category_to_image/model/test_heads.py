from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from diptych.commerce.category_to_image.model import Normalise, ProjectionHead


def slow_head(head: ProjectionHead, row: list[float]) -> list[float]:
    """The same head, one number at a time."""
    state = {name: value.double().tolist() for name, value in head.state_dict().items()}

    def linear(name: str, given: list[float]) -> list[float]:
        weights, biases = state[f"{name}.weight"], state[f"{name}.bias"]
        return [
            sum(w * x for w, x in zip(line, given, strict=True)) + b
            for line, b in zip(weights, biases, strict=True)
        ]

    def norm(name: str, given: list[float]) -> list[float]:
        mean = sum(given) / len(given)
        spread = math.sqrt(sum((x - mean) ** 2 for x in given) / len(given) + 1e-5)
        gains, biases = state[f"{name}.weight"], state[f"{name}.bias"]
        return [(x - mean) / spread * g + b for x, g, b in zip(given, gains, biases, strict=True)]

    def gelu(given: list[float]) -> list[float]:
        return [x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in given]

    for name in ("first", "second"):
        row = linear(name, row)
        row = (
            gelu(norm(f"{name}_norm", row)) if head.normalise == "before" else norm(f"{name}_norm", gelu(row))
        )
    return linear("output", row)


def random_head(normalise: Normalise) -> ProjectionHead:
    head = ProjectionHead(5, 4, 3, normalise).double()
    chance = torch.Generator().manual_seed(1)
    for value in head.parameters():
        value.data = torch.randn(value.shape, generator=chance, dtype=torch.float64)
    return head


@pytest.mark.parametrize("normalise", ["before", "after"])
def test_two_hidden_layers_by_the_formula(normalise: Normalise) -> None:
    head = random_head(normalise)
    rows = np.random.default_rng(0).standard_normal((6, 5))
    expected = [slow_head(head, row.tolist()) for row in rows]
    np.testing.assert_allclose(head(torch.from_numpy(rows)).detach().numpy(), expected, rtol=1e-10)


def test_the_two_orders_differ() -> None:
    before, after = random_head("before"), random_head("after")
    rows = torch.ones(1, 5, dtype=torch.float64)
    assert not torch.allclose(before(rows), after(rows))


def test_parameters_have_plain_names() -> None:
    assert list(ProjectionHead(2, 3, 1).state_dict()) == [
        f"{part}.{kind}"
        for part in ("first", "first_norm", "second", "second_norm", "output")
        for kind in ("weight", "bias")
    ]


def test_dropout_is_after_each_hidden_layer_and_a_shift_behind_the_first() -> None:
    head = random_head("before")
    rows = torch.ones(2, 5, dtype=torch.float64)
    none = head(rows, keep=lambda n, width: torch.zeros(n, width, dtype=torch.float64))
    torch.testing.assert_close(none, head.output.bias.expand(2, 3))
    shift = torch.ones(2, 4, dtype=torch.float64)
    shifted = head(rows, shift=shift)
    head.first.bias.data += 1
    torch.testing.assert_close(shifted, head(rows))
