from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.sparse.head import SparseHead, fresh_heads
from diptych.sparse.options import LossOptions
from diptych.sparse.pairs import PairBatch
from diptych.sparse.task import (
    HeadFolder,
    HeadTask,
    distillation_loss,
    rate_share,
    rise,
    soft_targets,
    total_loss,
)
from diptych.sparse.training import chosen_precision
from diptych.training.checkpoint import Place
from diptych.training.trainer import Saving, StepResult, Trainer, single_device

from .golden_head import flops_penalty, golden_head, l1_penalty
from .small_pairs import options


def test_head_and_loss_agree_with_the_published_code() -> None:
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


def test_regularisers_and_their_warm_up_agree_with_the_published_code() -> None:
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


def slow(scores: np.ndarray, dense: np.ndarray, temperature: float) -> list[float]:
    """One direction of the thesis's loss, word by word: nats of each query (row)."""
    losses = []
    for sparse, target in zip(scores, dense, strict=True):
        wanted = [math.exp(value / temperature) for value in target]
        given_ = [math.exp(value) for value in sparse]
        losses.append(
            -sum(w / sum(wanted) * math.log(g / sum(given_)) for w, g in zip(wanted, given_, strict=True))
        )
    return losses


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.3, 1.0]))
def test_agrees_with_a_slow_form(seed: int, temperature: float) -> None:
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


def test_equal_scores_are_learned_to_be_equal() -> None:
    # Two captions of one picture, or a picture twice in a batch: the target is halved, not a negative.
    targets = soft_targets(torch.tensor([[0.9, 0.9], [0.1, 0.3]]), 0.1)
    assert targets.i2t[0].tolist() == pytest.approx([0.5, 0.5])
    assert targets.t2i.sum(dim=1).tolist() == pytest.approx([1.0, 1.0])
    assert targets.t2i[0, 1].item() == pytest.approx(1 / (1 + math.exp(8)))
    dense = torch.ones(2, 2, requires_grad=True)
    assert not any(target.requires_grad for target in soft_targets(dense, 0.1))
    sharp = soft_targets(torch.tensor([[1.0, -1.0], [0.2, 0.999]]), 0.001)  # does not overflow
    assert sharp.i2t.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_rise() -> None:
    assert [rise(step, 4) for step in range(6)] == [0.0, 1 / 16, 1 / 4, 9 / 16, 1.0, 1.0]
    assert rise(0, 0) == 1.0


@pytest.mark.parametrize(
    ("steps", "warmup", "shares"),
    [
        (10, 3, [1 / 4, 2 / 4, 3 / 4, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7]),
        (2, 0, [1.0, 0.5]),
        (3, 3, [1 / 4, 2 / 4, 3 / 4]),
    ],
)
def test_the_rate_rises_and_falls_in_straight_lines(steps: int, warmup: int, shares: list[float]) -> None:
    assert [rate_share(step, steps, warmup) for step in range(steps)] == pytest.approx(shares)


CPU = torch.device("cpu")
STEPS = 10


def batch(seed: int = 0) -> PairBatch:
    generator = torch.Generator().manual_seed(seed)
    images, texts = (torch.nn.functional.normalize(torch.randn(6, 8, generator=generator)) for _ in "ab")
    return PairBatch(images, texts, torch.rand(6, 20, generator=generator) < 0.3)


class Batches:
    """Pairs of which each step has its own."""

    steps = STEPS
    document_frequency = np.full(20, 0.3)

    def epoch(self, epoch: int) -> list[int]:
        return list(range(STEPS))

    def load(self, number: int, device: torch.device) -> PairBatch:
        return batch(number)


class Watched(HeadTask):
    """Remembers the losses of each step."""

    def after_step(self, place: Place, result: StepResult) -> None:
        self.seen = [*getattr(self, "seen", []), [float(loss) for loss in result.losses[0]]]

    def after_epoch(self, place: Place) -> None:
        pass


def fresh() -> SparseHead:
    return cast(SparseHead, fresh_heads(8, 6, 20, shared=True, bias=True, eps=1e-12, seed=0))


def trained(folder: Path, similarity: str = "cosine", **sections: Any) -> Watched:
    sections["training"] = {**sections.get("training", {}), "epochs": 1}
    made: Any = SimpleNamespace(heads=fresh(), options=options(**sections), device=CPU, expands=True)
    task = Watched(HeadFolder(folder), made, cast(Any, Batches()), similarity, "float32")
    Trainer(task, task.folder, single_device(CPU), Saving(epochs=False)).train()
    return task


def test_steps_are_adamws_with_the_loss_as_it_is_written(tmp_path: Path) -> None:
    settings = {"learning_rate": 1e-2, "projection_learning_rate": 3e-2, "weight_decay": 0.1, "warmup": 0.5}
    task = trained(tmp_path, training=settings, loss={"eta": 0.01, "warmup": 0.4}, expansion={"mode": "0"})
    slow = fresh()
    rest = [*slow.vocab_layer_norm.parameters(), *slow.vocab_projector.parameters()]
    groups: list[Any] = [
        {"params": list(slow.proj.parameters()), "lr": 3e-2},
        {"params": rest, "lr": 1e-2},
    ]
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
        loss.backward()  # type: ignore[no-untyped-call]
        for group, top in zip(optimizer.param_groups, (3e-2, 1e-2), strict=True):
            group["lr"] = top * rate
        optimizer.step()
    for name, value in task.heads.state_dict().items():
        torch.testing.assert_close(value, slow.state_dict()[name], rtol=1e-3, atol=1e-4)


def test_order_embeddings_are_compared_as_they_are_meant(tmp_path: Path) -> None:
    one, seen = batch(), {}
    for similarity in ("cosine", "order"):
        seen[similarity] = trained(tmp_path / similarity, similarity, expansion={"mode": "1"}).seen[0][1]
    violation = (one.texts[None] - one.images[:, None]).clamp_min(0).square().sum(dim=2)
    scores = fresh()(one.images) @ fresh()(one.texts).T
    expected = distillation_loss(scores, soft_targets(-violation, 0.1)).item()
    assert seen["order"] == pytest.approx(expected, rel=1e-5)
    assert seen["order"] != pytest.approx(seen["cosine"], rel=1e-3)


def test_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_precision("float32", CPU) == "float32"
    assert chosen_precision("bfloat16", CPU) == "bfloat16"
    with pytest.raises(UsageError, match="float16 on cpu"):
        chosen_precision("float16", CPU)
    # auto is bfloat16 only in hardware
    for has, wanted in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has=has: has, raising=False)
        assert chosen_precision("auto", CPU) == wanted
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert chosen_precision("auto", CPU) == "float32"
