from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import UsageError
from diptych.objectives.reconstruction import LatentTargetDecoder, cosine_reconstruction_loss

GOLDEN = Path(__file__).parents[2] / "golden"


def loss_of(decoder: LatentTargetDecoder, golden: Mapping[str, np.ndarray]) -> torch.Tensor:
    return cosine_reconstruction_loss(
        decoder(torch.tensor(golden["z_captions"])), torch.tensor(golden["targets"])
    )


def test_agrees_with_the_published_code() -> None:
    golden = np.load(GOLDEN / "ltd_cosine_reconstruction.npz", allow_pickle=False)
    decoder = LatentTargetDecoder(10, 7, hidden=(8, 8)).double()
    weights = {name[2:]: torch.tensor(golden[name]) for name in golden.files if name.startswith("w.")}
    decoder.load_state_dict(weights, strict=True)
    captions = torch.tensor(golden["z_captions"], requires_grad=True)
    targets = torch.tensor(golden["targets"])
    reconstructions = decoder(captions)
    np.testing.assert_allclose(reconstructions.detach(), golden["reconstructions"], atol=1e-9)
    each = cosine_reconstruction_loss(reconstructions, targets, reduction="none")
    np.testing.assert_allclose(each.detach(), golden["loss_rec_per_sample"], atol=1e-9)
    loss = cosine_reconstruction_loss(reconstructions, targets)
    assert loss.item() == pytest.approx(float(golden["loss_rec"]), abs=1e-9)
    loss.backward()
    np.testing.assert_allclose(captions.grad, golden["grad_z"], atol=1e-9)
    # The file's weight gradients are the sum of those of this loss and of its Lagrangian term, λ/η times it.
    (loss_of(decoder, golden) / float(golden["eta"])).backward()
    first, last = decoder.decoder[0], decoder.decoder[4]
    np.testing.assert_allclose(first.weight.grad, golden["grad_W1"], atol=1e-9)  # type: ignore[arg-type]
    np.testing.assert_allclose(last.bias.grad, golden["grad_b3"], atol=1e-9)  # type: ignore[arg-type]


def test_hand_written_angles() -> None:
    reconstructions = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0], [-5.0, 0.0]])
    targets = torch.tensor([[7.0, 0.0], [0.1, 0.0], [0.0, 4.0], [1.0, 0.0]])
    each = cosine_reconstruction_loss(reconstructions, targets, reduction="none")
    assert each.tolist() == pytest.approx([0.0, 1.0, 1 - math.sqrt(0.5), 2.0])
    assert cosine_reconstruction_loss(reconstructions, targets).item() == pytest.approx(each.mean().item())


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_lengths_do_not_matter(seed: int, first: float, second: float) -> None:
    random = torch.Generator().manual_seed(seed)
    a, b = torch.randn(2, 3, 5, generator=random, dtype=torch.float64)
    loss = cosine_reconstruction_loss(a, b, reduction="none")
    assert torch.allclose(cosine_reconstruction_loss(a * first, b * second, reduction="none"), loss)
    assert torch.allclose(cosine_reconstruction_loss(-a, b, reduction="none"), 2 - loss)
    # Half the squared distance on the unit sphere, as the paper says.
    unit = torch.nn.functional.normalize
    assert torch.allclose((unit(a) - unit(b)).square().sum(1) / 2, loss)


def test_the_gradient_is_right() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(2, 4, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(cosine_reconstruction_loss, (a.requires_grad_(), b.requires_grad_()))


def test_rows_without_a_direction() -> None:
    rows = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [1e-30, 0.0]], requires_grad=True)
    targets = torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    each = cosine_reconstruction_loss(rows, targets, reduction="none")
    assert each.tolist() == [1.0, 1.0, 1.0, 1.0]
    each.sum().backward()
    assert rows.grad is not None
    assert rows.grad.tolist() == [
        pytest.approx([-0.6, -0.8]),
        [0.0, 0.0],
        [0.0, 0.0],
        pytest.approx([-1.0, 0.0]),
    ]


def test_half_precision_is_compared_in_single() -> None:
    torch.manual_seed(0)
    rows, targets = torch.randn(2, 5, 300)
    half = cosine_reconstruction_loss(rows.bfloat16(), targets.bfloat16())
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(
        cosine_reconstruction_loss(rows.bfloat16().float(), targets.bfloat16().float()).item()
    )


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(UsageError, match="384 wide, targets 768"):
        cosine_reconstruction_loss(torch.ones(2, 384), torch.ones(2, 768))
    with pytest.raises(UsageError, match=r"\(2, 4\), targets \(3, 4\)"):
        cosine_reconstruction_loss(torch.ones(2, 4), torch.ones(3, 4))
    with pytest.raises(UsageError, match="no rows"):
        cosine_reconstruction_loss(torch.ones(0, 4), torch.ones(0, 4))
    with pytest.raises(UsageError, match="'sum'"):
        cosine_reconstruction_loss(torch.ones(2, 4), torch.ones(2, 4), reduction="sum")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="8 → 0 → 4 → 6"):
        LatentTargetDecoder(8, 6, hidden=(0, 4))


def test_it_starts_as_published() -> None:
    torch.manual_seed(0)
    decoder = LatentTargetDecoder(1024, 384)
    shapes = {name: tuple(value.shape) for name, value in decoder.named_parameters()}
    assert shapes == {
        "decoder.0.weight": (512, 1024),
        "decoder.0.bias": (512,),
        "decoder.2.weight": (512, 512),
        "decoder.2.bias": (512,),
        "decoder.4.weight": (384, 512),
        "decoder.4.bias": (384,),
    }
    for name, value in decoder.named_parameters():
        if name.endswith("bias"):
            assert value.abs().max() == 0
        else:
            limit = math.sqrt(6 / sum(value.shape))
            assert 0.99 * limit < value.abs().max() <= limit
