from __future__ import annotations

import itertools
import math

import pytest

from diptych.training.sections import Stage
from diptych.training.towers import learning_rate


def rates(steps_per_epoch: int, **options: object) -> list[float]:
    stage = Stage.model_validate({"epochs": 4, "learning_rate": 1.0, **options})
    return [learning_rate(stage, step, steps_per_epoch) for step in range(4 * steps_per_epoch)]


def test_step_falls_every_so_many_epochs() -> None:
    found = rates(3, schedule="step", step_epochs=2, decay=0.1)
    assert found == pytest.approx([1.0] * 6 + [0.1] * 6)


def test_cosine_ends_at_its_final_share() -> None:
    found = rates(5, schedule="cosine", final=0.1)
    assert found[0] == 1.0
    assert found[-1] == pytest.approx(0.1)
    assert found == sorted(found, reverse=True)
    assert found[9] + found[10] == pytest.approx(1.1)


def test_a_line_falls_by_the_same_at_every_step() -> None:
    found = rates(5, schedule="linear", final=0.05)
    assert found[0] == 1.0
    assert found[-1] == pytest.approx(0.05)
    assert [a - b for a, b in itertools.pairwise(found)] == pytest.approx([0.05] * 19)
    assert rates(3, schedule="linear", per="epoch")[::3] == pytest.approx([1.0, 0.75, 0.5, 0.25])


@pytest.mark.parametrize("schedule", ["constant", "cosine", "linear"])
def test_warm_up_is_linear_and_ends_at_the_top(schedule: str) -> None:
    found = rates(5, schedule=schedule, warmup=4)
    assert found[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_a_cosine_can_move_once_per_epoch() -> None:
    stage = Stage(epochs=4, learning_rate=2.0, schedule="cosine", per="epoch")
    rates = [learning_rate(stage, step, steps_per_epoch=3) for step in range(12)]
    assert rates[:3] == [2.0, 2.0, 2.0]
    assert rates[6] == pytest.approx(1.0)
    # As the field's per-epoch schedulers: half way down after half of the epochs, never quite at 0.
    assert rates[-1] == pytest.approx(1 + math.cos(math.pi * 3 / 4))
