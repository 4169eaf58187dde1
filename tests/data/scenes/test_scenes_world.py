from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.errors import DataError, UnknownNameError
from diptych.data.scenes.facts import (
    DESCRIBABLE,
    FACT_VALUES,
    Described,
    described,
)
from diptych.data.scenes.world import (
    SPLITS,
    SceneObject,
    home_split,
    place,
    relation,
    world_of,
)


def at(x: float, y: float, radius: float = 0.1) -> SceneObject:
    return SceneObject("star", "red", "small", "matte", x, y, radius)


@pytest.mark.parametrize(
    ("first", "other", "expected"),
    [
        (at(0.2, 0.5), at(0.8, 0.4), "left of"),
        (at(0.8, 0.5), at(0.2, 0.4), "right of"),
        (at(0.5, 0.1), at(0.4, 0.9), "above"),
        (at(0.5, 0.9), at(0.4, 0.1), "below"),
        (at(0.1, 0.1), at(0.9, 0.5), "left of"),  # the longer way decides
        (at(0.1, 0.1), at(0.5, 0.9), "above"),
    ],
)
def test_relation_follows_the_longer_axis(first: SceneObject, other: SceneObject, expected: str) -> None:
    assert relation(first, other) == expected


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (0.5, 0.5, "middle"),
        (0.2, 0.4, "left"),
        (0.8, 0.6, "right"),
        (0.6, 0.2, "top"),
        (0.45, 0.75, "bottom"),
    ],
)
def test_place(x: float, y: float, expected: str) -> None:
    assert place(x, y) == expected


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(-5, 10_000), split=st.sampled_from(SPLITS), index=st.integers(0, 10_000))
def test_every_world_is_as_its_facts_say(seed: int, split: str, index: int) -> None:
    world = world_of(seed, split, index)
    assert world == world_of(seed, split, index)
    facts = world.facts()
    assert home_split(facts) == split
    assert set(facts) <= set(FACT_VALUES)
    assert all(value in FACT_VALUES[key] for key, value in facts.items())
    assert facts["count"] == str(len(world.objects))
    radii = [item.radius for item in world.objects]
    assert radii == sorted(radii, reverse=True)
    assert radii[0] >= 1.1 * radii[1]
    assert len({(item.shape, item.colour) for item in world.objects}) == len(world.objects)
    main = world.objects[0]
    for item in world.objects:
        assert 0 < item.x < 1
        assert 0 < item.y < 1
    for other in world.objects[1:]:
        # left or above is never a matter of a pixel, and nothing is hidden behind the main object
        assert abs(abs(main.x - other.x) - abs(main.y - other.y)) > 0.05
        assert math.hypot(main.x - other.x, main.y - other.y) > 0.7 * (main.radius + other.radius)


def test_no_two_splits_share_a_describable_world_and_hardly_two_images_do() -> None:
    seen: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for split in SPLITS:
        facts = [world_of(7, split, index).facts() for index in range(300)]
        seen[split] = {tuple((key, one[key]) for key in DESCRIBABLE if key in one) for one in facts}
        assert len(seen[split]) == 300
    assert not seen["train"] & seen["val"]
    assert not seen["train"] & seen["test"]
    assert not seen["val"] & seen["test"]


def test_an_unknown_split_is_named() -> None:
    with pytest.raises(UnknownNameError, match="dev"):
        world_of(0, "dev", 0)


def test_described_by_hand() -> None:
    facts = {"a": "1", "b": "1", "c": "1", "d": "1"}
    assert described(facts, [["a", "b"], ["a", "b", "c"], ["a"]]) == Described(
        shared=("a",), partial=("b",), specific=("c",), undescribed=("d",)
    )
    # one caption: what it states is shared, not specific; no caption: nothing is described
    assert described(facts, [["a"]]) == Described(("a",), (), (), ("b", "c", "d"))
    assert described(facts, []) == Described((), (), (), ("a", "b", "c", "d"))
    with pytest.raises(DataError, match="caption 1 states 'x'"):
        described(facts, [["a"], ["x"]])
