from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from diptych.core.errors import RecipeError
from diptych.training.averaging import WeightAverage, averaged_steps
from diptych.training.sections import Averaging


@pytest.mark.parametrize(
    ("steps", "expected"),
    [(4426, [4048, 4136, 4224, 4312, 4400]), (1133, [1034, 1056, 1078, 1100, 1122])],
    ids=["COCO", "Flickr30k"],
)
def test_the_published_steps(steps: int, expected: list[int]) -> None:
    assert averaged_steps(steps, Averaging(compat="published")) == expected


@given(st.integers(50, 5000), st.integers(1, 5))
def test_exactly_as_many_as_asked_up_to_the_last_step(steps: int, checkpoints: int) -> None:
    averaging = Averaging(checkpoints=checkpoints)
    found = averaged_steps(steps, averaging)
    assert len(found) == checkpoints
    assert found[-1] == steps
    assert found[0] > steps * (1 - averaging.share)
    assert len({after - before for before, after in pairwise(found)}) <= 1


@pytest.mark.parametrize("compat", ["none", "published"])
def test_an_epoch_that_is_too_short_is_named(compat: str) -> None:
    with pytest.raises(RecipeError, match="takes 5 weights from the last 0.1 .* only 49 steps") as caught:
        averaged_steps(49, Averaging(compat=compat))  # type: ignore[arg-type]
    # To a computer the last tenth of 50 steps is not 5 steps in the published expression.
    needed = 50 if compat == "none" else 51
    assert f"at least {needed} steps" in caught.value.fix
    assert averaged_steps(needed, Averaging(compat=compat))  # type: ignore[arg-type]


def test_the_mean_of_the_weights_takes_their_place() -> None:
    layer = nn.Linear(1, 1)
    layer.bias.requires_grad = False
    average = WeightAverage(layer, Averaging(share=1.0, checkpoints=2), steps_per_epoch=4)
    for step in range(1, 5):
        nn.init.constant_(layer.weight, float(step))
        nn.init.constant_(layer.bias, float(step))
        average.after_step(step)
    assert average.count == 2  # steps 2 and 4
    average.finish(lambda: pytest.fail("there is no batch norm to refresh"))
    assert layer.weight.item() == 3.0
    assert layer.bias.item() == 4.0  # not trained, not averaged
    assert average.count == 0
    assert not average.mean


@pytest.mark.parametrize("refresh", [True, False])
def test_batch_norm_gets_the_statistics_of_the_mean(refresh: bool) -> None:
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1))
    norm = net[1]
    average = WeightAverage(
        net, Averaging(share=1.0, checkpoints=2, refresh_batch_norm=refresh), steps_per_epoch=2
    )
    for step, weight in ((1, 1.0), (2, 5.0)):
        nn.init.constant_(net[0].weight, weight)  # type: ignore[arg-type]
        average.after_step(step)
    batches = [torch.tensor([[0.0], [2.0]]), torch.tensor([[2.0], [4.0]])]
    stale = norm.running_mean.item()  # type: ignore[operator, union-attr]
    average.finish(lambda: (lambda batch=batch: net(batch) for batch in batches))  # type: ignore[misc]
    # The mean weight is 3; the batches' means are 3·1 and 3·3, and their plain mean is 6.
    assert norm.running_mean.item() == pytest.approx(6.0 if refresh else stale)  # type: ignore[operator, union-attr]
    assert norm.momentum == 0.1
