"""What cannot be planted is refused with a word on what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diptych.core.errors import UsageError
from diptych.data.scenes.shop_log import DEFAULT, DeviceSet
from diptych.data.scenes.shop_log.chance import Calendar, choose, cumulated, geometric
from diptych.data.scenes.shop_log.world import NO_DEVICE, World, query_texts, typed_texts


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"hours": (1.0,) * 24}, "hours is no distribution"),
        ({"channels": {"direct": 1.0}}, "name each of direct, paid, organic, other"),
        ({"device": {**DEFAULT.device, "watch": 0.0}}, "watch"),
        ({"device_sets": (DeviceSet(("pc",), 0.5),)}, "device_sets is no distribution"),
        ({"repeat": 1.0}, "repeat is 1.0"),
        ({"recognised": 0.9, "login": 0.2}, "recognised and login"),
        ({"exact_gaps": -0.1}, "exact_gaps is -0.1"),
        ({"buyers": replace(DEFAULT.buyers, start=(0.5, 0.5, 0, 0, 0, 0, 0, 0))}, "give a session away"),
        ({"buyers": replace(DEFAULT.buyers, start=(0.5,) * 8)}, "buyers.start is no distribution"),
    ],
)
def test_impossible_effects(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replace(DEFAULT, **wrong)


def test_choices_by_hand() -> None:
    flat = cumulated(np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]))
    uniform = np.array([0.0, 0.49, 0.5, 1 - 2**-53, 0.0, 0.24, 0.25, 1 - 2**-53])
    rows = np.repeat([0, 1], 4)
    assert choose(flat, 3, uniform[4:], 1).tolist() == [1, 1, 2, 2]
    assert choose(flat, 3, uniform[:3], rows[:3]).tolist() == [0, 0, 1]
    assert choose(flat, 3, uniform, rows).max() == 2


def test_a_geometric_number_by_hand() -> None:
    # mean 1: 0 with probability 1/2, 1 with 1/4, 2 with 1/8 …
    assert geometric(np.array([0.0, 0.49, 0.51, 0.74, 0.76, 0.9]), 1.0).tolist() == [0, 0, 1, 1, 2, 3]
    assert geometric(np.array([0.0, 0.999]), 0.0).tolist() == [0, 0]


def test_devices_in_the_long_run_stay_as_they_are() -> None:
    world = World.of(DEFAULT, Calendar("UTC", 28), 0)
    for place, devices in enumerate(world.owned):
        shares, moves = world.stationary[place], world.moves[place, :NO_DEVICE]
        assert set(np.flatnonzero(shares)) == set(devices)
        assert shares @ moves == pytest.approx(shares)
        assert moves[list(devices)].sum(axis=1) == pytest.approx(1)
    pair = world.owned.index((0, 1))  # smartphone and PC: 0.68 to 0.20, and 0.16 to 0.73
    assert world.moves[pair, 0, 1] == pytest.approx(0.20 / 0.88)
    assert world.stationary[pair, 0] == pytest.approx((0.16 / 0.89) / (0.16 / 0.89 + 0.20 / 0.88))


def test_the_vocabulary_has_no_query_twice_and_survives_typing() -> None:
    texts = query_texts(9000)
    assert len(set(texts)) == 9000
    for text, typed in zip(np.repeat(texts[:300], 5), typed_texts(300), strict=True):
        assert " ".join(typed.lower().split()) == text
