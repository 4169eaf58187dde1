from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.sparse.distillation import (
    distillation_loss,
    flops_penalty,
    l1_penalty,
    rise,
    soft_targets,
    total_loss,
)
from diptych.sparse.options import LossOptions

from .golden_head import golden_head


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


def test_targets_have_no_gradient() -> None:
    dense = torch.ones(2, 2, requires_grad=True)
    assert not any(target.requires_grad for target in soft_targets(dense, 0.1))


def test_a_temperature_of_a_thousandth_does_not_overflow() -> None:
    targets = soft_targets(torch.tensor([[1.0, -1.0], [0.2, 0.999]]), 0.001)
    assert targets.i2t.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_rise() -> None:
    assert [rise(step, 4) for step in range(6)] == [0.0, 1 / 16, 1 / 4, 9 / 16, 1.0, 1.0]
    assert rise(0, 0) == 1.0


def test_penalties_by_hand() -> None:
    weights = torch.tensor([[1.0, 0.0, 2.0], [3.0, 0.0, 0.0]])
    assert l1_penalty(weights).item() == 3.0
    assert flops_penalty(weights).item() == 4.0 + 1.0
