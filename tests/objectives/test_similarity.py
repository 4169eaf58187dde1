from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.objectives import SIMILARITIES, cosine_similarity, order_similarity, similarity, similarity_of
from diptych.objectives.similarity import order_root_similarity


def rows(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    n, m, d = random.integers(1, 6, size=3)
    return torch.from_numpy(random.standard_normal((n, d))), torch.from_numpy(random.standard_normal((m, d)))


def test_by_hand_and_where_order_is_perfect() -> None:
    images = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    texts = torch.tensor([[0.5, 1.0], [3.0, 2.0], [2.0, 4.0]])
    # A text below its image in every coordinate is in order; else the squares of what stands out.
    expected = [[0.0, -4.0, -5.0], [-1.25, -13.0, -20.0]]
    assert order_similarity(images, texts).tolist() == expected
    roots = [pytest.approx([-((-value) ** 0.5) for value in row]) for row in expected]
    assert order_root_similarity(images, texts).tolist() == roots
    assert cosine_similarity(images, texts).tolist() == [[2.5, 7.0, 10.0], [0.0, 0.0, 0.0]]
    images = torch.ones(1, 3, requires_grad=True)
    order_root_similarity(images, torch.zeros(1, 3)).sum().backward()
    assert images.grad is not None
    assert not images.grad.any()
    error = refused(UnknownNameError, "unknown similarity 'angle'", similarity_of, "angle")
    assert error.known == ["cosine", "order", "order-root"]
    images, texts = (part.requires_grad_() for part in rows(0))
    with pytest.raises(UsageError, match="order similarity has no second derivative"):
        torch.autograd.grad(order_similarity(images, texts).sum(), images, create_graph=True)


@given(st.integers(0, 10_000), st.sampled_from([1, 9, 10_000]))
def test_blocks_change_nothing(seed: int, elements: int) -> None:
    images, texts = (part.requires_grad_() for part in rows(seed))
    weights = torch.randn(len(images), len(texts), dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "_BLOCK_ELEMENTS", elements)
        found = order_similarity(images, texts)
        gradients = torch.autograd.grad((found * weights).sum(), (images, texts))
    expected = -(texts[None] - images[:, None]).clamp(min=0).square().sum(dim=2)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients, torch.autograd.grad((expected * weights).sum(), (images, texts)))


def test_gradients_are_those_of_finite_differences() -> None:
    for name in SIMILARITIES.names():
        for seed in range(3):
            inputs = tuple(part.requires_grad_() for part in rows(seed))
            assert torch.autograd.gradcheck(similarity_of(name), inputs)
        images = inputs[0]
        found, expected = cosine_similarity(images, images), images @ images.T
        assert torch.equal(found, expected)
        gradients = (torch.autograd.grad(one.square().sum(), images)[0] for one in (found, expected))
        torch.testing.assert_close(*gradients)
        message = r"images have shape \(2, 3\), texts \(2, 4\)"
        refused(MismatchError, message, similarity_of(name), torch.zeros(2, 3), torch.zeros(2, 4))
        assert similarity_of(name).description


def test_what_is_kept_for_the_gradient_is_the_two_inputs() -> None:
    images, texts = torch.rand(20, 8, requires_grad=True), torch.rand(30, 8, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, id):
        order_similarity(images, texts)
    assert sorted(kept) == [20 * 8, 30 * 8]
