from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.sparse.head import Fused, FusedScores, SparseHead, fresh_heads, head_of
from diptych.sparse.options import LossOptions
from diptych.sparse.task import (
    HeadFolder,
    HeadTask,
    PairBatch,
    distillation_loss,
    rate_share,
    rise,
    soft_targets,
    total_loss,
    words_loss,
)
from diptych.sparse.training import chosen_precision
from diptych.training.trainer import Saving, Trainer, single_device

from .golden_head import PARAMETERS, flops_penalty, golden_head, l1_penalty
from .small_pairs import options


def test_head_and_loss_agree_with_the_published_code():
    head, golden, own = golden_head()
    texts, images = head(golden["z_text"]), head(golden["z_img"])
    torch.testing.assert_close(texts, golden["s_text"], atol=1e-9, rtol=0)
    torch.testing.assert_close(images, golden["s_img"], atol=1e-9, rtol=0)
    torch.testing.assert_close(texts * own, golden["s_text_noexp"], atol=1e-9, rtol=0)
    for temperature in ("0.001", "0.05", "1.0"):
        targets = soft_targets(golden["z_img"] @ golden["z_text"].T, float(temperature))
        whole = distillation_loss(images @ texts.T, targets)
        assert whole.item() == pytest.approx(golden[f"bice_temp_{temperature}"].item(), abs=1e-9)
        alone = distillation_loss(images @ (texts * own).T, targets)
        assert alone.item() == pytest.approx(golden[f"bice_noexp_temp_{temperature}"].item(), abs=1e-9)
        literal = total_loss(whole, whole, whole, LossOptions(weight=0.0), 1.0)
        assert literal.item() == pytest.approx(
            golden[f"thesis_bidir_log2_temp_{temperature}"].item(), abs=1e-9
        )


def test_words_are_a_softmax_over_all_terms():
    head, golden, own = golden_head()
    own = own.clone()
    own[0] = 0  # a caption without any term
    expected = []
    for rows in (golden["z_img"], golden["z_text"]):
        outputs = np.exp(head.vocab_projector(head.hidden(rows)).detach().numpy())
        likely = np.log(outputs / outputs.sum(axis=1, keepdims=True))
        expected += [
            row[one].mean() if one.any() else 0.0 for row, one in zip(likely, own.numpy() > 0, strict=True)
        ]
    found = words_loss(head, PairBatch(golden["z_img"], golden["z_text"], own > 0))
    assert found.item() == pytest.approx(-np.mean(expected), abs=1e-6)


def test_regularisers_and_their_warm_up_agree_with_the_published_code():
    _, golden, _ = golden_head()
    image, text = l1_penalty(golden["s_img"]), l1_penalty(golden["s_text"])
    assert image.item() == pytest.approx(golden["L1_img_mean"].item(), abs=1e-9)
    assert text.item() == pytest.approx(golden["L1_text_mean"].item(), abs=1e-9)
    zero = torch.zeros((), dtype=torch.float64)
    found = [
        total_loss(zero, 0.01 * image, 0.02 * text, LossOptions(eta=1.0), rise(step, 10)).item()
        for step in range(13)
    ]
    assert found == pytest.approx(golden["reg_calls_1_13_qreg.02_dreg.01_T10"].tolist(), abs=1e-9)
    flops = [0.1 * rise(step, 4) * flops_penalty(golden["s_text"]).item() for step in range(6)]
    assert flops == pytest.approx(golden["flops_reg_calls_1_6_w.1_T4"].tolist(), abs=1e-9)


def slow(scores, dense, temperature):
    """One direction of the thesis's loss, word by word: nats of each query (row)."""
    losses = []
    for sparse, target in zip(scores, dense, strict=True):
        wanted = [math.exp(value / temperature) for value in target]
        found = [math.exp(value) for value in sparse]
        pairs = zip(wanted, found, strict=True)
        losses.append(-sum(w / sum(wanted) * math.log(g / sum(found)) for w, g in pairs))
    return losses


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.3, 1.0]))
def test_agrees_with_a_slow_form(seed, temperature):
    random = np.random.default_rng(seed)
    scores, dense = random.uniform(0, 5, (4, 4)), random.uniform(-1, 1, (4, 4))
    i2t, t2i = slow(scores, dense, temperature), slow(scores.T, dense.T, temperature)
    found = distillation_loss(
        torch.from_numpy(scores), soft_targets(torch.from_numpy(dense), temperature)
    ).item()
    assert found == pytest.approx((sum(i2t) + sum(t2i)) / 8)
    whole = total_loss(torch.tensor(found), torch.tensor(3.0), torch.tensor(5.0), LossOptions(eta=0.1), 0.5)
    assert whole.item() == pytest.approx(found + 0.1 * 0.5 * 4.0)
    options = LossOptions(eta=0.1, weight=0.25)
    literal = total_loss(torch.tensor(found), torch.tensor(3.0), torch.tensor(5.0), options, 0.5)
    bits = (sum(i2t) + sum(t2i)) / 4 / math.log(2)
    assert literal.item() == pytest.approx(0.75 * bits + 0.25 * 0.1 * 0.5 * 8.0, rel=1e-5)


def test_the_rate_rises_and_falls_in_straight_lines_and_the_penalty_by_a_parabola():
    assert [rise(step, 4) for step in range(6)] == [0.0, 1 / 16, 1 / 4, 9 / 16, 1.0, 1.0]
    assert rise(0, 0) == 1.0
    for steps, warmup, shares in (
        (10, 3, [1 / 4, 2 / 4, 3 / 4, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7]),
        (2, 0, [1.0, 0.5]),
        (3, 3, [1 / 4, 2 / 4, 3 / 4]),
    ):
        assert [rate_share(step, steps, warmup) for step in range(steps)] == pytest.approx(shares)


CPU = torch.device("cpu")
STEPS = 10


def batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    images, texts = (torch.nn.functional.normalize(torch.randn(6, 8, generator=generator)) for _ in "ab")
    return PairBatch(images, texts, torch.rand(6, 20, generator=generator) < 0.3)


class Batches:
    """Pairs of which each step has its own."""

    steps = STEPS
    document_frequency = np.full(20, 0.3)

    def epoch(self, epoch):
        return list(range(STEPS))

    def load(self, number, device):
        return batch(number)


class Watched(HeadTask):
    """Remembers the losses of each step."""

    def after_step(self, place, result):
        self.seen = [*getattr(self, "seen", []), [float(loss) for loss in result.losses[0]]]

    def after_epoch(self, place):
        pass


def fresh():
    return cast(SparseHead, fresh_heads(8, 6, 20, shared=True, bias=True, eps=1e-12, seed=0))


def trained(folder, similarity="cosine", **sections):
    sections["training"] = {**sections.get("training", {}), "epochs": 1}
    made: Any = SimpleNamespace(heads=fresh(), options=options(**sections), device=CPU, expands=True)
    task = Watched(HeadFolder(folder), made, cast(Any, Batches()), similarity, "float32")
    Trainer(task, task.folder, single_device(CPU), Saving(epochs=False)).train()
    return task


def test_steps_are_adamws_with_the_loss_as_it_is_written(tmp_path):
    settings = {"learning_rate": 1e-2, "projection_learning_rate": 3e-2, "weight_decay": 0.1, "warmup": 0.5}
    task = trained(tmp_path, training=settings, loss={"eta": 0.01, "warmup": 0.4}, expansion={"mode": "0"})
    slow = fresh()
    rest = [*slow.vocab_layer_norm.parameters(), *slow.vocab_projector.parameters()]
    groups: list[Any] = [{"params": list(slow.proj.parameters()), "lr": 3e-2}, {"params": rest, "lr": 1e-2}]
    optimizer = torch.optim.AdamW(groups, eps=1e-8, weight_decay=0.1)
    # Of 10 steps rates rise over 5 and fall over 5, the regulariser's weight rises over 4.
    rates = [1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1, 4 / 5, 3 / 5, 2 / 5, 1 / 5]
    shares = [0, 1 / 16, 4 / 16, 9 / 16, 1, 1, 1, 1, 1, 1]
    for number, (rate, share) in enumerate(zip(rates, shares, strict=True)):
        one = batch(number)
        images, texts = slow(one.images), slow(one.texts) * one.in_caption
        nats = distillation_loss(images @ texts.T, soft_targets(one.images @ one.texts.T, 0.1))
        penalty = (l1_penalty(images) + l1_penalty(texts)) / 2
        loss: Tensor = nats + 0.01 * share * penalty
        assert task.seen[number] == pytest.approx([loss.item(), nats.item(), penalty.item()], rel=1e-4)
        optimizer.zero_grad()
        loss.backward()
        for group, top in zip(optimizer.param_groups, (3e-2, 1e-2), strict=True):
            group["lr"] = top * rate
        optimizer.step()
    for name, value in task.heads.state_dict().items():
        torch.testing.assert_close(value, slow.state_dict()[name], rtol=1e-3, atol=1e-4)


def test_order_embeddings_are_compared_as_they_are_meant(tmp_path):
    one, seen = batch(), {}
    for similarity in ("cosine", "order"):
        seen[similarity] = trained(tmp_path / similarity, similarity, expansion={"mode": "1"}).seen[0][1]
    violation = (one.texts[None] - one.images[:, None]).clamp_min(0).square().sum(dim=2)
    scores = fresh()(one.images) @ fresh()(one.texts).T
    expected = distillation_loss(scores, soft_targets(-violation, 0.1)).item()
    assert seen["order"] == pytest.approx(expected, rel=1e-5)
    assert seen["order"] != pytest.approx(seen["cosine"], rel=1e-3)


def test_precision(monkeypatch):
    assert chosen_precision("float32", CPU) == "float32"
    assert chosen_precision("bfloat16", CPU) == "bfloat16"
    refused(UsageError, "float16 on cpu", chosen_precision, "float16", CPU)
    # auto is bfloat16 only in hardware
    for has, wanted in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has=has: has, raising=False)
        assert chosen_precision("auto", CPU) == wanted
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert chosen_precision("auto", CPU) == "float32"


PENALTIES = {"l1": l1_penalty, "flops": flops_penalty}


def plain(heads, images, texts, allowed, penalty):
    """The same with autograd, all activations held."""
    of_images, of_texts = head_of(heads, "image")(images), head_of(heads, "text")(texts)
    if allowed is not None:
        of_texts = of_texts * allowed
    measure = PENALTIES[penalty]
    return FusedScores(of_images @ of_texts.T, measure(of_images), measure(of_texts))


def case(seed, pairs=5, terms=37, *, shared=True, bias=True):
    heads = fresh_heads(7, 6, terms, shared=shared, bias=bias, eps=1e-12, seed=seed).double()
    generator = torch.Generator().manual_seed(seed)
    images, texts = (torch.randn(pairs, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    return heads, images, texts, torch.rand(pairs, terms, generator=generator)


def gradients(heads, found, dense):
    loss = distillation_loss(found.scores, soft_targets(dense, 0.5))
    loss = loss + 0.3 * found.image_penalty + 0.2 * found.text_penalty
    return list(torch.autograd.grad(loss, list(heads.parameters())))


def same(first, second, tolerance=1e-10):
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10_000),
    size=st.tuples(st.integers(1, 6), st.integers(1, 40)),
    head=st.fixed_dictionaries({"shared": st.booleans(), "bias": st.booleans()}),
    penalty=st.sampled_from(["l1", "flops"]),
    chunk=st.integers(1, 45),
    keep=st.booleans(),
    share=st.one_of(st.none(), st.sampled_from([0.0, 0.05, 1.0]), st.floats(0, 1)),
)
def test_equals_the_plain_form_in_values_and_gradients(seed, size, head, penalty, chunk, keep, share):
    """``share`` of the terms are those that captions may have."""
    heads, images, texts, draws = case(seed, *size, **head)
    allowed = None if share is None else draws < share
    found = Fused(penalty, chunk=chunk, keep=keep)(heads, images, texts, allowed)
    expected = plain(heads, images, texts, allowed, penalty)
    same(found, expected)
    same(gradients(heads, found, images @ texts.T), gradients(heads, expected, images @ texts.T))


def test_gradients_agree_with_the_published_code():
    head, golden, own = golden_head()
    found = Fused(chunk=16)(head, golden["z_img"], golden["z_text"], own)
    targets = soft_targets(golden["z_img"] @ golden["z_text"].T, 0.05)
    loss = distillation_loss(found.scores, targets)
    assert loss.item() == pytest.approx(golden["train_loss_noexp"].item(), abs=1e-9)
    penalty = (0.01 * found.image_penalty + 0.02 * found.text_penalty) / 2
    assert penalty.item() == pytest.approx(golden["train_reg_noexp"].item(), abs=1e-9)
    (loss + penalty).backward()
    for name in PARAMETERS:
        found = head.get_parameter(name).grad
        torch.testing.assert_close(found, golden[f"grad_noexp.{name}"], atol=1e-9, rtol=0)


def kept_numbers(keep, pairs, terms):
    """Numbers as wide as a chunk of the vocabulary or wider that are held between forward and backward."""
    heads = fresh_heads(7, 6, terms, shared=True, bias=True, eps=1e-12, seed=0)
    rows = torch.randn(2, pairs, 7, generator=torch.Generator().manual_seed(0))
    held: list[Tensor] = []

    def hold(tensor):
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


def test_no_more_than_one_activation_per_side_is_held():
    pairs, terms = 32, 512
    assert kept_numbers(True, pairs, terms) == 2 * pairs * terms
    assert kept_numbers(False, pairs, terms) == 0


def test_half_precision_is_near():
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


def test_compiled_it_is_the_same(monkeypatch):
    # Traced as for a compiler, but run by PyTorch itself, which needs no compiler of C++ beside it.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    heads, images, texts, draws = case(2)
    compiled = Fused(chunk=8, compiled=True)
    for allowed in (None, draws < 0.5):
        expected = plain(heads, images, texts, allowed, "l1")
        found = compiled(heads, images, texts, allowed)
        same(found, expected)
        same(gradients(heads, found, images @ texts.T), gradients(heads, expected, images @ texts.T))


def test_second_derivatives_are_refused():
    heads, images, texts, _ = case(0)
    found = Fused()(heads, images, texts)
    with pytest.raises(UsageError, match="fused scores"):
        torch.autograd.grad(found.scores.sum(), list(heads.parameters()), create_graph=True)
