from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.sparse.distillation import distillation_loss, l1_penalty, soft_targets
from diptych.sparse.head import SparseHead, fresh_heads
from diptych.sparse.pairs import PairBatch
from diptych.sparse.task import HeadFolder, HeadTask
from diptych.sparse.training import chosen_precision
from diptych.training.checkpoint import Place
from diptych.training.trainer import Saving, StepResult, Trainer, single_device

from .small_pairs import options

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
