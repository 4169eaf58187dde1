from __future__ import annotations

import math

import pytest
import torch

from diptych.sparse.head import HeadPair, SparseHead, fresh_heads, head_of, term_weights

NAMES = ["proj", "vocab_layer_norm", "vocab_projector"]


def test_parameters_have_the_published_names() -> None:
    both = [f"{name}.{part}" for name in NAMES for part in ("weight", "bias")]
    assert list(SparseHead(4, 3, 7).state_dict()) == both
    plain = [name for name in both if name not in ("proj.bias", "vocab_projector.bias")]
    assert list(SparseHead(4, 3, 7, bias=False).state_dict()) == plain
    pair = fresh_heads(4, 3, 7, shared=False, bias=True, eps=1e-12, seed=0)
    assert list(pair.state_dict()) == [f"{side}.{name}" for side in ("image", "text") for name in both]


def test_a_row_by_hand() -> None:
    head = SparseHead(1, 2, 3, eps=0.0)
    with torch.no_grad():
        head.proj.weight.copy_(torch.tensor([[1.0], [3.0]]))
        head.proj.bias.zero_()
        head.vocab_projector.weight.copy_(torch.tensor([[0.0, 2.0], [2.0, 0.0], [1.0, 1.0]]))
        head.vocab_projector.bias.copy_(torch.tensor([0.0, 0.0, 0.5]))
    # (1, 3) · 5 has mean 10 and deviation 5: normed, it is (−1, 1).
    assert head.hidden(torch.tensor([[5.0]])).tolist() == [[-1.0, 1.0]]
    weights = head(torch.tensor([[5.0]]))
    assert weights[0].tolist() == pytest.approx([math.log(3), 0.0, math.log(1.5)])
    assert (head.width, head.hidden_width, head.terms) == (1, 2, 3)


def test_weights_are_never_negative() -> None:
    assert term_weights(torch.tensor([-5.0, 0.0, math.e - 1])).tolist() == pytest.approx([0.0, 0.0, 1.0])


def test_one_head_is_both_sides_and_two_are_not() -> None:
    shared = fresh_heads(4, 3, 7, shared=True, bias=True, eps=1e-12, seed=0)
    assert head_of(shared, "image") is head_of(shared, "text") is shared
    pair = fresh_heads(4, 3, 7, shared=False, bias=True, eps=1e-12, seed=0)
    assert isinstance(pair, HeadPair)
    assert head_of(pair, "image") is pair.image
    assert head_of(pair, "text") is pair.text
    assert not torch.equal(pair.image.proj.weight, pair.text.proj.weight)


def test_fresh_weights_are_a_function_of_the_seed_and_leave_the_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first = fresh_heads(4, 3, 7, shared=True, bias=True, eps=1e-12, seed=5)
    assert torch.equal(torch.rand(2), expected)
    second = fresh_heads(4, 3, 7, shared=True, bias=True, eps=1e-12, seed=5)
    other = fresh_heads(4, 3, 7, shared=True, bias=True, eps=1e-12, seed=6)
    assert torch.equal(head_of(first, "image").proj.weight, head_of(second, "image").proj.weight)
    assert not torch.equal(head_of(first, "image").proj.weight, head_of(other, "image").proj.weight)
