from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from diptych.core.errors import NumericalError, StorageError, UsageError
from diptych.objectives.reconstruction import LagrangeMultiplier

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("compat", ["unprojected", "none"])
def test_agrees_with_the_published_code(compat: str) -> None:
    golden = np.load(GOLDEN / "lagrange_multiplier.npz", allow_pickle=False)
    multiplier = LagrangeMultiplier(
        float(golden["main.eta"]),
        start=float(golden["main.start"]),
        learning_rate=float(golden["lr"]),
        momentum=float(golden["momentum"]),
        dampening=float(golden["dampening"]),
        highest=float(golden["clamp_max"]),
        compat=compat,  # type: ignore[arg-type]
    )
    for step, loss in enumerate(golden["main.rec_losses"]):
        term = multiplier.term(torch.tensor(loss)).item()
        assert term == pytest.approx(golden["main.lagrangian_term_before_step"][step], abs=1e-12)
        multiplier.ascend(float(loss))
        assert multiplier.raw == pytest.approx(golden["main.raw_after_step"][step], abs=1e-12)
        assert multiplier.value == pytest.approx(golden["main.clamped_after_step"][step], abs=1e-12)
        assert -multiplier.velocity == pytest.approx(
            golden["main.momentum_buffer_after_step"][step], abs=1e-12
        )


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
    golden = np.load(GOLDEN / "ltd_cosine_reconstruction.npz", allow_pickle=False)
    multiplier = LagrangeMultiplier(float(golden["eta"]), start=float(golden["lam"]))
    loss = torch.tensor(golden["loss_rec"], requires_grad=True)
    term = multiplier.term(loss)
    assert term.item() == pytest.approx(float(golden["lagrangian_term"]), abs=1e-12)
    term.backward()
    assert loss.grad is not None
    np.testing.assert_allclose(loss.grad.item() * golden["grad_z"], golden["grad_z_lagrangian"], atol=1e-9)
    assert list(multiplier.parameters()) == []
    assert list(multiplier.buffers()) == []


def test_projected_it_recovers_at_once_and_unprojected_it_winds_up() -> None:
    waited = {}
    for compat in ("none", "unprojected"):
        multiplier = LagrangeMultiplier(0.2, start=0.1, learning_rate=0.05, compat=compat)  # type: ignore[arg-type]
        for _ in range(200):
            multiplier.ascend(0.1)
        assert multiplier.value == 0.0
        waited[compat] = 0
        while multiplier.value == 0.0:
            multiplier.ascend(0.4)
            waited[compat] += 1
    assert waited["none"] == 1
    assert waited["unprojected"] > 90


def test_its_state_survives_a_file_and_any_precision(tmp_path: Path) -> None:
    def holder() -> torch.nn.Module:
        module = torch.nn.Linear(2, 2)
        module.add_module("multiplier", LagrangeMultiplier(0.2, learning_rate=0.07, compat="unprojected"))
        return module

    module = holder()
    for loss in (0.01, 0.5, 1 / 3):
        module.multiplier.ascend(loss)  # type: ignore[operator, union-attr]
    module.to(torch.float16)
    state = module.state_dict()
    assert state["weight"].dtype == torch.float16
    assert state["multiplier._extra_state"].dtype == torch.float64
    save_file(state, tmp_path / "weights.safetensors")
    other = holder()
    other.load_state_dict(load_file(tmp_path / "weights.safetensors"), strict=True)
    for loss in (0.9, 0.05):
        module.multiplier.ascend(loss)  # type: ignore[operator, union-attr]
        other.multiplier.ascend(loss)  # type: ignore[operator, union-attr]
    first, second = module.multiplier, other.multiplier
    assert isinstance(first, LagrangeMultiplier)
    assert isinstance(second, LagrangeMultiplier)
    assert (first.raw, first.velocity, first.value) == (second.raw, second.velocity, second.value)
    fresh = holder()
    fresh.load_state_dict(holder().state_dict())
    fresh.multiplier.ascend(0.4)  # type: ignore[operator, union-attr]
    assert fresh.multiplier.velocity == pytest.approx(1.0)  # type: ignore[union-attr]  # undampened


@pytest.mark.parametrize(
    "state",
    [
        torch.zeros(2, dtype=torch.float64),
        torch.zeros(3, dtype=torch.float16),
        torch.full((3,), float("nan"), dtype=torch.float64),
    ],
)
def test_a_damaged_state_is_refused(state: torch.Tensor) -> None:
    with pytest.raises(StorageError, match="three finite float64 numbers"):
        LagrangeMultiplier(0.2).load_state_dict({"_extra_state": state})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": 0.0}, "bound η is 0.0"),
        ({"bound": -0.2}, "bound η is -0.2"),
        ({"bound": float("nan")}, "bound η is nan"),
        ({"start": 101.0}, r"starts at 101.0, outside \[0, 100.0\]"),
        ({"start": -1.0}, "starts at -1.0"),
        ({"learning_rate": 0.0}, "learning rate is 0.0"),
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"dampening": 1.5}, "dampening is 1.5"),
        ({"highest": 0.0}, "highest value is 0.0"),
        ({"compat": "published"}, "compat 'published'"),
    ],
)
def test_impossible_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LagrangeMultiplier(**{"bound": 0.2, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number(loss: float) -> None:
    multiplier = LagrangeMultiplier(0.2)
    multiplier.ascend(0.3)
    before = multiplier.get_extra_state()
    with pytest.raises(NumericalError, match=f"reconstruction loss is {loss}"):
        multiplier.ascend(loss)
    assert torch.equal(multiplier.get_extra_state(), before)
    assert multiplier.logged() == {"multiplier": multiplier.value}
