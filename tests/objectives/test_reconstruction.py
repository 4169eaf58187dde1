"""Reconstruction of captions: from a latent target, word by word, and under a constraint."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from safetensors.torch import load_file, save_file

from diptych.core.errors import NumericalError, StorageError, UsageError
from diptych.objectives.reconstruction import (
    InputTargetDecoder,
    LagrangeMultiplier,
    LatentTargetDecoder,
    cosine_reconstruction_loss,
    token_reconstruction_loss,
)

GOLDEN = Path(__file__).parents[1] / "golden"


def golden_of(name: str) -> dict[str, torch.Tensor]:
    values = np.load(GOLDEN / f"{name}.npz", allow_pickle=False)
    return {key: torch.tensor(values[key]) for key in values.files if values[key].dtype.kind != "U"}


def load(decoder: Any, golden: dict[str, torch.Tensor]) -> Any:
    decoder = decoder.double()
    decoder.load_state_dict({name[2:]: value for name, value in golden.items() if name.startswith("w.")})
    return decoder


def test_latent_targets_agree_with_the_published_code() -> None:
    golden = golden_of("ltd_cosine_reconstruction")
    decoder = load(LatentTargetDecoder(10, 7, hidden=(8, 8)), golden)
    captions, targets = golden["z_captions"].requires_grad_(), golden["targets"]
    reconstructions = decoder(captions)
    np.testing.assert_allclose(reconstructions.detach(), golden["reconstructions"], atol=1e-9)
    each = cosine_reconstruction_loss(reconstructions, targets, reduction="none")
    np.testing.assert_allclose(each.detach(), golden["loss_rec_per_sample"], atol=1e-9)
    loss = cosine_reconstruction_loss(reconstructions, targets)
    assert loss.item() == pytest.approx(float(golden["loss_rec"]), abs=1e-9)
    loss.backward()
    np.testing.assert_allclose(captions.grad, golden["grad_z"], atol=1e-9)
    # The file's weight gradients are the sum of those of this loss and of its Lagrangian term, λ/η times it.
    again = cosine_reconstruction_loss(decoder(golden["z_captions"]), targets)
    (again / float(golden["eta"])).backward()
    np.testing.assert_allclose(decoder.decoder[0].weight.grad, golden["grad_W1"], atol=1e-9)
    np.testing.assert_allclose(decoder.decoder[4].bias.grad, golden["grad_b3"], atol=1e-9)


def test_hand_written_angles() -> None:
    rows = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0], [-5.0, 0.0]])
    targets = torch.tensor([[7.0, 0.0], [0.1, 0.0], [0.0, 4.0], [1.0, 0.0]])
    each = cosine_reconstruction_loss(rows, targets, reduction="none")
    assert each.tolist() == pytest.approx([0.0, 1.0, 1 - math.sqrt(0.5), 2.0])
    assert cosine_reconstruction_loss(rows, targets).item() == pytest.approx(each.mean().item())
    # Rows without a direction are at a right angle to everything, and still have a gradient.
    rows = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [1e-30, 0.0]], requires_grad=True)
    targets = torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    each = cosine_reconstruction_loss(rows, targets, reduction="none")
    assert each.tolist() == [1.0, 1.0, 1.0, 1.0]
    (gradient,) = torch.autograd.grad(each.sum(), rows)
    torch.testing.assert_close(gradient, torch.tensor([[-0.6, -0.8], [0, 0], [0, 0], [-1.0, 0.0]]))


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_lengths_do_not_matter(seed: int, first: float, second: float) -> None:
    random = torch.Generator().manual_seed(seed)
    a, b = torch.randn(2, 3, 5, generator=random, dtype=torch.float64)
    loss = cosine_reconstruction_loss(a, b, reduction="none")
    assert torch.allclose(cosine_reconstruction_loss(a * first, b * second, reduction="none"), loss)
    # Half the squared distance on the unit sphere, as the paper says.
    unit = torch.nn.functional.normalize
    assert torch.allclose((unit(a) - unit(b)).square().sum(1) / 2, loss)


def test_the_latent_decoder_starts_as_published() -> None:
    torch.manual_seed(0)
    decoder = LatentTargetDecoder(1024, 384)
    shapes = [tuple(value.shape) for name, value in decoder.named_parameters() if name.endswith("weight")]
    assert shapes == [(512, 1024), (512, 512), (384, 512)]
    for name, value in decoder.named_parameters():
        limit = 0.0 if name.endswith("bias") else math.sqrt(6 / sum(value.shape))
        assert 0.99 * limit <= value.abs().max() <= limit


def slow(logits: np.ndarray, tokens: np.ndarray, lengths: np.ndarray) -> list[float]:
    """Eq. 4 word by word: each caption's sum of −log p(next word)."""
    sums = []
    for row, ids, length in zip(logits, tokens, lengths, strict=True):
        total = 0.0
        for step in range(length - 1):
            total -= math.log(math.exp(row[step][ids[step + 1]]) / sum(math.exp(x) for x in row[step]))
        sums.append(total)
    return sums


def random_case(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    lengths, tokens = random.integers(2, 7, size=4), random.integers(1, 9, size=(4, 6))
    tokens[np.arange(6) >= lengths[:, None]] = 0
    return tuple(map(torch.from_numpy, (random.normal(0, 2, (4, 6, 9)), tokens, lengths)))  # type: ignore[return-value]


FORMS = [
    ("none", "mean", "loss_corrected_vocab_axis_softmax"),
    ("none", "token-mean", "loss_corrected_mean_per_token"),
    ("time-axis", "mean", "loss_official_time_axis_softmax"),
]


def test_input_targets_agree_with_the_published_code() -> None:
    """And the lean loss, which keeps no logits, has the value and the gradients of the whole one."""
    for compat, reduction, name in FORMS:
        golden = golden_of("itd_input_decoder")
        decoder = load(InputTargetDecoder(20, 10, word_width=6), golden)
        captions, *rest = golden["z_captions"].requires_grad_(), golden["token_ids"], golden["lengths"]
        logits = decoder(captions, *rest)
        np.testing.assert_allclose(logits.detach(), golden["logits"], atol=1e-9)
        losses = (
            token_reconstruction_loss(logits, *rest, compat, reduction),
            decoder.loss(captions, *rest, compat, reduction),
        )
        for loss in losses:
            assert loss.item() == pytest.approx(golden[name].item(), abs=1e-9)
        full, lean = (torch.autograd.grad(loss, [captions, *decoder.parameters()]) for loss in losses)
        torch.testing.assert_close(lean, full)
        assert lean[0].abs().min() > 0


@given(st.integers(0, 10_000))
def test_input_targets_agree_with_a_slow_form_and_padding_is_nowhere(seed: int) -> None:
    logits, tokens, lengths = random_case(seed)
    sums = slow(logits.numpy(), tokens.numpy(), lengths.numpy())
    each = token_reconstruction_loss(logits, tokens, lengths, reduction="none")
    assert each.tolist() == pytest.approx(sums)
    assert token_reconstruction_loss(logits, tokens, lengths).item() == pytest.approx(sum(sums) / 4)
    per_token = token_reconstruction_loss(logits, tokens, lengths, reduction="token-mean").item()
    assert per_token == pytest.approx(sum(sums) / (int(lengths.sum()) - 4))
    inside = torch.arange(6) < lengths[:, None]
    others = logits.masked_fill(~inside[:, :, None], 50.0), tokens.masked_fill(~inside, 8)
    wider = torch.cat([logits, logits], 1), torch.cat([tokens, tokens], 1)
    for changed in (others, wider):
        assert torch.equal(token_reconstruction_loss(*changed, lengths, reduction="none"), each)
    # The published soft-max sees the padding.
    published = token_reconstruction_loss(logits, tokens, lengths, "time-axis", "none")
    assert not torch.allclose(token_reconstruction_loss(*wider, lengths, "time-axis", "none"), published)


def test_no_state_has_read_the_token_it_predicts() -> None:
    torch.manual_seed(0)
    decoder = InputTargetDecoder(9, 5, word_width=4)
    captions, tokens, lengths = torch.randn(1, 5), torch.tensor([[1, 4, 5, 2]]), torch.tensor([4])
    before = decoder(captions, tokens, lengths)
    after = decoder(captions, torch.tensor([[1, 4, 7, 2]]), lengths)
    # Token 2 is predicted at step 1 and read at step 2.
    assert torch.equal(after[:, :2], before[:, :2])
    assert not torch.allclose(after[:, 2], before[:, 2])
    # The last step predicts nothing: the end token's own embedding has no gradient.
    decoder.loss(captions, tokens, lengths).backward()
    assert decoder.embed.weight.grad.abs().sum(dim=1).nonzero().flatten().tolist() == [1, 4, 5]  # type: ignore[union-attr]


DECODER = InputTargetDecoder(9, 5, word_width=4)
TOKENS, LENGTHS = torch.ones(2, 3, dtype=torch.int64), torch.tensor([3, 2])


def test_what_does_not_fit_is_named() -> None:
    for message, call in [
        ("384 wide, targets 768", lambda: cosine_reconstruction_loss(torch.ones(2, 384), torch.ones(2, 768))),
        (
            r"\(2, 4\), targets \(3, 4\)",
            lambda: cosine_reconstruction_loss(torch.ones(2, 4), torch.ones(3, 4)),
        ),
        ("no rows", lambda: cosine_reconstruction_loss(torch.ones(0, 4), torch.ones(0, 4))),
        ("'sum'", lambda: cosine_reconstruction_loss(torch.ones(2, 4), torch.ones(2, 4), reduction="sum")),  # type: ignore[arg-type]
        ("8 → 0 → 4 → 6", lambda: LatentTargetDecoder(8, 6, hidden=(0, 4))),
        (r"\(2, 6\)", lambda: DECODER(torch.zeros(2, 6), TOKENS, LENGTHS)),
        (r"\(3, 5\), tokens \(2, 3\)", lambda: DECODER.loss(torch.zeros(3, 5), TOKENS, LENGTHS)),
        ("from 2 to 4 for 3", lambda: DECODER.loss(torch.zeros(2, 5), TOKENS, torch.tensor([2, 4]))),
        ("captions of length 1", lambda: DECODER.loss(torch.zeros(2, 5), TOKENS, torch.tensor([1, 1]))),
        (r"\(2, 4, 9\), tokens", lambda: token_reconstruction_loss(torch.zeros(2, 4, 9), TOKENS, LENGTHS)),
        (
            r"tokens have shape \(2, 3\), lengths \(3,\)",
            lambda: DECODER.loss(torch.zeros(2, 5), TOKENS, LENGTHS[[0, 1, 1]]),
        ),
        (r"tokens have shape \(0, 3\)", lambda: DECODER.loss(torch.zeros(0, 5), TOKENS[:0], LENGTHS[:0])),
        ("compat 'time'", lambda: DECODER.loss(torch.zeros(2, 5), TOKENS, LENGTHS, compat="time")),  # type: ignore[arg-type]
        ("reduction 'sum'", lambda: DECODER.loss(torch.zeros(2, 5), TOKENS, LENGTHS, reduction="sum")),  # type: ignore[arg-type]
        ("0 words", lambda: InputTargetDecoder(0, 5)),
        ("bound η is 0.0", lambda: LagrangeMultiplier(0.0)),
        ("bound η is nan", lambda: LagrangeMultiplier(math.nan)),
        (r"starts at 101.0, outside \[0, 100.0\]", lambda: LagrangeMultiplier(0.2, start=101.0)),
        ("starts at -1.0", lambda: LagrangeMultiplier(0.2, start=-1.0)),
        ("learning rate is 0.0", lambda: LagrangeMultiplier(0.2, learning_rate=0.0)),
        ("momentum is 1.0", lambda: LagrangeMultiplier(0.2, momentum=1.0)),
        ("dampening is 1.5", lambda: LagrangeMultiplier(0.2, dampening=1.5)),
        ("highest value is 0.0", lambda: LagrangeMultiplier(0.2, highest=0.0)),
        ("compat 'published'", lambda: LagrangeMultiplier(0.2, compat="published")),  # type: ignore[arg-type]
    ]:
        refused(UsageError, message, call)


def test_the_last_that_fits_is_taken_and_papers_sizes_are_the_default() -> None:
    assert LagrangeMultiplier(0.2, start=5.0, highest=5.0).raw == 5.0
    assert LagrangeMultiplier(0.2).velocity == 0.0
    assert LagrangeMultiplier(0.2, dampening=1.0, momentum=0.0).dampening == 1.0
    assert torch.isfinite(
        InputTargetDecoder(2, 1, word_width=1).loss(torch.zeros(1, 1), TOKENS[:1, :2], LENGTHS[1:])
    )
    assert InputTargetDecoder(4, 3).embed.embedding_dim == 300


def test_a_multiplier_agrees_with_the_published_code() -> None:
    for compat in ("unprojected", "none"):
        golden = golden_of("lagrange_multiplier")
        rates = [float(golden[name]) for name in ("main.start", "lr", "momentum", "dampening", "clamp_max")]
        multiplier = LagrangeMultiplier(float(golden["main.eta"]), *rates, compat)
        for step, loss in enumerate(golden["main.rec_losses"].tolist()):
            found = {
                "lagrangian_term_before": multiplier.term(torch.tensor(loss, dtype=torch.float64)).item()
            }
            multiplier.ascend(loss)
            found |= {"raw_after": multiplier.raw, "clamped_after": multiplier.value}
            found |= {"momentum_buffer_after": -multiplier.velocity}
            for name, value in found.items():
                assert value == pytest.approx(float(golden[f"main.{name}_step"][step]), abs=1e-12), name


@given(
    st.lists(st.floats(0, 5), min_size=1, max_size=40),
    st.floats(0.05, 2),
    st.floats(0, 0.95),
    st.floats(0, 1),
    st.floats(0, 3),
)
def test_unprojected_is_sgd_of_torch(
    losses: list[float], bound: float, momentum: float, dampening: float, start: float
) -> None:
    multiplier = LagrangeMultiplier(bound, start, 0.3, momentum, dampening, 3.0, "unprojected")
    parameter = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer = torch.optim.SGD([parameter], lr=0.3, momentum=momentum, dampening=dampening)
    for loss in losses:
        parameter.grad = torch.tensor(-(loss / bound - 1), dtype=torch.float64)
        optimizer.step()
        multiplier.ascend(loss)
        assert multiplier.raw == pytest.approx(parameter.item(), abs=1e-9)
        assert multiplier.value == min(max(multiplier.raw, 0.0), 3.0)


def test_the_gradient_of_the_loss_is_scaled_and_the_multiplier_has_none() -> None:
    golden = golden_of("ltd_cosine_reconstruction")
    multiplier = LagrangeMultiplier(float(golden["eta"]), start=float(golden["lam"]))
    loss = golden["loss_rec"].requires_grad_()
    term = multiplier.term(loss)
    assert term.item() == pytest.approx(float(golden["lagrangian_term"]), abs=1e-12)
    (gradient,) = torch.autograd.grad(term, loss)
    np.testing.assert_allclose(gradient * golden["grad_z"], golden["grad_z_lagrangian"], atol=1e-9)
    assert [*multiplier.parameters(), *multiplier.buffers()] == []


def test_a_multiplier_recovers_survives_a_file_and_refuses_nan() -> None:
    for compat, least, most in (("none", 1, 1), ("unprojected", 91, 1000)):
        multiplier, waited = LagrangeMultiplier(0.2, start=0.1, learning_rate=0.05, compat=compat), 0
        for _ in range(200):
            multiplier.ascend(0.1)
        assert multiplier.value == 0.0
        while multiplier.value == 0.0:
            multiplier.ascend(0.4)
            waited += 1
        assert least <= waited <= most
    for loss in (math.nan, math.inf):
        multiplier = LagrangeMultiplier(0.2)
        multiplier.ascend(0.3)
        before = multiplier.get_extra_state()
        refused(NumericalError, f"reconstruction loss is {loss}", multiplier.ascend, loss)
        assert torch.equal(multiplier.get_extra_state(), before)
        assert multiplier.logged() == {"multiplier": multiplier.value}


def test_the_state_of_a_multiplier_survives_a_file_and_any_precision(tmp_path: Path) -> None:
    def holder() -> Any:
        module = torch.nn.Linear(2, 2)
        module.add_module("multiplier", LagrangeMultiplier(0.2, learning_rate=0.07, compat="unprojected"))
        return module

    module, other, fresh = holder(), holder(), holder()
    for loss in (0.01, 0.5, 1 / 3):
        module.multiplier.ascend(loss)
    state = module.to(torch.float16).state_dict()
    assert [value.dtype for value in state.values()] == [torch.float16, torch.float16, torch.float64]
    save_file(state, tmp_path / "weights.safetensors")
    other.load_state_dict(load_file(tmp_path / "weights.safetensors"), strict=True)
    for loss in (0.9, 0.05):
        module.multiplier.ascend(loss)
        other.multiplier.ascend(loss)
    first, second = module.multiplier, other.multiplier
    assert (first.raw, first.velocity, first.value) == (second.raw, second.velocity, second.value)
    fresh.load_state_dict(holder().state_dict())
    fresh.multiplier.ascend(0.4)
    assert fresh.multiplier.velocity == pytest.approx(1.0)  # undampened
    for wrong in (
        torch.zeros(2, dtype=torch.float64),
        torch.zeros(3, dtype=torch.float16),
        torch.full((3,), math.nan, dtype=torch.float64),
    ):
        message = "three finite float64 numbers"
        refused(StorageError, message, LagrangeMultiplier(0.2).load_state_dict, {"_extra_state": wrong})
