from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.sparse.fused import Fused, FusedScores, Penalty
from diptych.sparse.head import SparseHeads, fresh_heads, head_of
from diptych.sparse.task import distillation_loss, soft_targets

from .golden_head import PARAMETERS, flops_penalty, golden_head, l1_penalty

PENALTIES = {"l1": l1_penalty, "flops": flops_penalty}


def plain(
    heads: SparseHeads, images: Tensor, texts: Tensor, allowed: Tensor | None, penalty: str
) -> FusedScores:
    """The same with autograd, all activations held."""
    of_images, of_texts = head_of(heads, "image")(images), head_of(heads, "text")(texts)
    if allowed is not None:
        of_texts = of_texts * allowed
    measure = PENALTIES[penalty]
    return FusedScores(of_images @ of_texts.T, measure(of_images), measure(of_texts))


def case(
    seed: int, pairs: int = 5, terms: int = 37, *, shared: bool = True, bias: bool = True
) -> tuple[SparseHeads, Tensor, Tensor, Tensor]:
    heads = fresh_heads(7, 6, terms, shared=shared, bias=bias, eps=1e-12, seed=seed).double()
    generator = torch.Generator().manual_seed(seed)
    images, texts = (torch.randn(pairs, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    return heads, images, texts, torch.rand(pairs, terms, generator=generator)


def gradients(heads: SparseHeads, found: FusedScores, dense: Tensor) -> list[Tensor]:
    loss = distillation_loss(found.scores, soft_targets(dense, 0.5))
    loss = loss + 0.3 * found.image_penalty + 0.2 * found.text_penalty
    return list(torch.autograd.grad(loss, list(heads.parameters())))


def same(first: Any, second: Any, tolerance: float = 1e-10) -> None:
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(
    ("shared", "bias", "penalty", "keep"),
    list(product((True, False), (True, False), ("l1", "flops"), (True, False))),
)
@pytest.mark.parametrize("share", [None, 0.0, 0.05, 0.5, 1.0])  # of terms that captions may have
def test_equals_the_plain_form_in_values_and_gradients(
    shared: bool, bias: bool, penalty: Penalty, keep: bool, share: float | None
) -> None:
    heads, images, texts, draws = case(1, shared=shared, bias=bias)
    allowed = None if share is None else draws < share
    found = Fused(penalty, chunk=8, keep=keep)(heads, images, texts, allowed)
    expected = plain(heads, images, texts, allowed, penalty)
    same(found, expected)
    same(gradients(heads, found, images @ texts.T), gradients(heads, expected, images @ texts.T))


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 20), st.integers(1, 25), st.floats(0, 1))
def test_any_size_and_any_chunk(seed: int, pairs: int, terms: int, chunk: int, share: float) -> None:
    heads, images, texts, draws = case(seed, pairs, terms)
    allowed = draws < share
    found = Fused(chunk=chunk)(heads, images, texts, allowed)
    expected = plain(heads, images, texts, allowed, "l1")
    same(found, expected)
    same(gradients(heads, found, images @ texts.T), gradients(heads, expected, images @ texts.T))


def test_gradients_are_those_of_finite_differences() -> None:
    heads, images, texts, draws = case(3, pairs=3, terms=9)
    allowed = draws < 0.7
    head = head_of(heads, "image")

    def function(weight: Tensor, bias: Tensor, norm: Tensor) -> tuple[Tensor, ...]:
        values = {"vocab_projector.weight": weight, "vocab_projector.bias": bias}
        values["vocab_layer_norm.weight"] = norm

        class Caller(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.head = head

            def forward(self) -> tuple[Tensor, ...]:
                return tuple(Fused("flops", chunk=4)(self.head, images, texts, allowed))

        module = Caller()
        named = {f"head.{name}": value for name, value in values.items()}
        return tuple(torch.func.functional_call(module, named, ()))

    inputs = (head.vocab_projector.weight, head.vocab_projector.bias, head.vocab_layer_norm.weight)
    given_ = tuple(value.detach().clone().requires_grad_() for value in inputs)
    assert torch.autograd.gradcheck(function, given_)


def test_gradients_agree_with_the_published_code() -> None:
    head, golden, own = golden_head()
    found = Fused(chunk=16)(head, golden["z_img"], golden["z_text"], own)
    targets = soft_targets(golden["z_img"] @ golden["z_text"].T, 0.05)
    loss = distillation_loss(found.scores, targets)
    assert loss.item() == pytest.approx(golden["train_loss_noexp"].item(), abs=1e-9)
    penalty = (0.01 * found.image_penalty + 0.02 * found.text_penalty) / 2
    assert penalty.item() == pytest.approx(golden["train_reg_noexp"].item(), abs=1e-9)
    (loss + penalty).backward()
    for name in PARAMETERS:
        torch.testing.assert_close(
            head.get_parameter(name).grad, golden[f"grad_noexp.{name}"], atol=1e-9, rtol=0
        )


def kept_numbers(keep: bool, pairs: int, terms: int) -> int:
    """Numbers as wide as a chunk of the vocabulary or wider that are held between forward and backward."""
    heads = fresh_heads(7, 6, terms, shared=True, bias=True, eps=1e-12, seed=0)
    rows = torch.randn(2, pairs, 7, generator=torch.Generator().manual_seed(0))
    held: list[Tensor] = []

    def hold(tensor: Tensor) -> Tensor:
        held.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(hold, lambda tensor: tensor):
        Fused(chunk=64, keep=keep)(heads, rows[0], rows[1])
    weights = {id(parameter) for parameter in heads.parameters()}
    return sum(
        one.numel()
        for one in held
        if one.ndim == 2 and len(one) >= pairs and id(one) not in weights and one.shape[1] >= 64
    )


def test_no_more_than_one_activation_per_side_is_held() -> None:
    pairs, terms = 32, 512
    assert kept_numbers(True, pairs, terms) == 2 * pairs * terms
    assert kept_numbers(False, pairs, terms) == 0


def test_half_precision_is_near() -> None:
    heads = fresh_heads(16, 24, 300, shared=True, bias=True, eps=1e-12, seed=0)
    generator = torch.Generator().manual_seed(0)
    images, texts = (torch.nn.functional.normalize(torch.randn(24, 16, generator=generator)) for _ in "ab")
    exact = Fused(chunk=64)(heads, images, texts)
    near = Fused(chunk=64, dtype=torch.bfloat16)(heads, images, texts)
    assert near.scores.dtype == torch.float32
    assert not torch.equal(near.scores, exact.scores)  # it was in half
    torch.testing.assert_close(near.scores, exact.scores, rtol=0.01, atol=0.02)
    torch.testing.assert_close(near.image_penalty, exact.image_penalty, rtol=0.01, atol=0)
    dense = images @ texts.T
    for a, b in zip(gradients(heads, near, dense), gradients(heads, exact, dense), strict=True):
        assert ((a - b).norm() / b.norm()).item() < 0.03


def test_a_weight_too_small_for_its_type_is_zero_both_ways() -> None:
    heads = fresh_heads(2, 2, 3, shared=True, bias=True, eps=1e-12, seed=0)
    head = head_of(heads, "image")
    with torch.no_grad():
        head.vocab_projector.weight.zero_()
        head.vocab_projector.bias.copy_(torch.tensor([1e-30, -1.0, 1.0]))
    found = Fused()(heads, torch.ones(2, 2), torch.ones(2, 2))
    found.image_penalty.backward()
    assert head.vocab_projector.bias.grad is not None
    assert head.vocab_projector.bias.grad.tolist() == pytest.approx([0.0, 0.0, 0.5])


def test_compiled_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # Traced as for a compiler, but run by PyTorch itself, which needs no compiler of C++ beside it.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    heads, images, texts, draws = case(2)
    compiled = Fused(chunk=8, compiled=True)
    for allowed in (None, draws < 0.1, draws < 0.9):
        expected = plain(heads, images, texts, allowed, "l1")
        found = compiled(heads, images, texts, allowed)
        same(found, expected)
        same(gradients(heads, found, images @ texts.T), gradients(heads, expected, images @ texts.T))


def test_second_derivatives_are_refused() -> None:
    heads, images, texts, _ = case(0)
    found = Fused()(heads, images, texts)
    with pytest.raises(UsageError, match="fused scores"):
        torch.autograd.grad(found.scores.sum(), list(heads.parameters()), create_graph=True)
