from __future__ import annotations

import pytest
import torch
from diptych.sparse.step import SparsifyStep, chosen_precision, distillation_loss, l1_penalty, soft_targets

from diptych.core.errors import UsageError
from diptych.sparse.head import SparseHead, fresh_heads
from diptych.sparse.pairs import PairBatch

from .small_pairs import options

CPU = torch.device("cpu")


def batch(seed: int = 0) -> PairBatch:
    generator = torch.Generator().manual_seed(seed)
    images, texts = (torch.nn.functional.normalize(torch.randn(6, 8, generator=generator)) for _ in "ab")
    return PairBatch(images, texts, torch.rand(6, 20, generator=generator) < 0.3)


def made(**sections: object) -> tuple[SparseHead, SparsifyStep]:
    heads = fresh_heads(8, 6, 20, shared=True, bias=True, eps=1e-12, seed=0)
    assert isinstance(heads, SparseHead)
    return heads, SparsifyStep(heads, options(**sections), "cosine", CPU, "float32", 10)


def test_a_step_is_adamws_with_the_loss_as_it_is_written() -> None:
    settings = {"learning_rate": 1e-2, "projection_learning_rate": 3e-2, "weight_decay": 0.1, "warmup": 0.5}
    heads, step = made(training=settings, loss={"eta": 0.01, "warmup": 0.4})
    other, _ = made()
    slow = torch.optim.AdamW(
        [
            {"params": list(other.proj.parameters()), "lr": 3e-2},
            {
                "params": [*other.vocab_layer_norm.parameters(), *other.vocab_projector.parameters()],
                "lr": 1e-2,
            },
        ],
        eps=1e-8,
        weight_decay=0.1,
    )
    tops = [group["lr"] for group in slow.param_groups]
    # 10 steps: rates rise over 5, the regulariser over 4.
    for number, (rate, share) in enumerate([(1 / 6, 0), (2 / 6, 1 / 16), (3 / 6, 4 / 16)]):
        one = batch(number)
        allowed = one.in_caption if number != 1 else None
        found = step(one, allowed, number)
        images, texts = other(one.images), other(one.texts)
        texts = texts if allowed is None else texts * allowed
        nats = distillation_loss(images @ texts.T, soft_targets(one.images @ one.texts.T, 0.1))
        penalty = (l1_penalty(images) + l1_penalty(texts)) / 2
        loss = nats + 0.01 * share * penalty
        assert found.tolist() == pytest.approx([loss.item(), nats.item(), penalty.item()], rel=1e-5)
        slow.zero_grad()
        loss.backward()
        for group, top in zip(slow.param_groups, tops, strict=True):
            group["lr"] = top * rate
        slow.step()
        for name, value in heads.state_dict().items():
            torch.testing.assert_close(value, other.state_dict()[name], rtol=1e-3, atol=1e-5)


def test_every_parameter_has_a_rate_of_its_own_kind_once() -> None:
    heads, step = made(training={"learning_rate": 1e-3, "projection_learning_rate": 5e-3})
    tops = {id(p): group["top"] for group in step.optimizer.param_groups for p in group["params"]}
    found = {name: tops[id(parameter)] for name, parameter in heads.named_parameters()}
    assert found == {name: 5e-3 if name.startswith("proj.") else 1e-3 for name in found}
    assert sum(len(group["params"]) for group in step.optimizer.param_groups) == 6


def test_order_embeddings_are_compared_as_they_are_meant() -> None:
    one = batch()
    rows = PairBatch(one.images.abs(), one.texts.abs(), one.in_caption)
    losses = []
    for similarity in ("cosine", "order"):
        heads = fresh_heads(8, 6, 20, shared=True, bias=True, eps=1e-12, seed=0)
        step = SparsifyStep(heads, options(), similarity, CPU, "float32", 10)
        losses.append(float(step(rows, None, 0)[1]))
    violation = (rows.texts[None] - rows.images[:, None]).clamp_min(0).square().sum(dim=2)
    fresh = fresh_heads(8, 6, 20, shared=True, bias=True, eps=1e-12, seed=0)
    assert isinstance(fresh, SparseHead)
    scores = fresh(rows.images) @ fresh(rows.texts).T
    assert losses[1] == pytest.approx(
        distillation_loss(scores, soft_targets(-violation, 0.1)).item(), rel=1e-5
    )
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)


def test_precision() -> None:
    assert chosen_precision("float32", CPU) == "float32"
    assert chosen_precision("bfloat16", CPU) == "bfloat16"
    assert chosen_precision("auto", CPU) in ("float32", "bfloat16")
    with pytest.raises(UsageError, match="float16 on cpu"):
        chosen_precision("float16", CPU)


def test_auto_is_bfloat16_only_in_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    for has, wanted in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has=has: has, raising=False)
        assert chosen_precision("auto", CPU) == wanted
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert chosen_precision("auto", CPU) == "float32"
