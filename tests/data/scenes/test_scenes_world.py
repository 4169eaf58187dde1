from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.errors import DataError, UnknownNameError
from diptych.data.scenes.facts import (
    DESCRIBABLE,
    FACT_VALUES,
    NEVER_DESCRIBED,
    PLACES,
    SHARED,
    TOPICS,
    Described,
    described,
)
from diptych.data.scenes.world import (
    _MAIN_STRETCH,
    _OTHER_STRETCH,
    _RADII,
    SPLITS,
    SceneObject,
    World,
    _sample_spots,
    generator,
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


def test_facts_of_a_world_by_hand() -> None:
    world = World(
        objects=(
            SceneObject("star", "red", "large", "shiny", 0.25, 0.5, 0.21),
            SceneObject("ring", "blue", "small", "matte", 0.75, 0.55, 0.11),
        ),
        background="sand",
        light="left",
        tint="warm",
        frame="none",
    )
    assert world.facts() == {
        "main.shape": "star",
        "main.colour": "red",
        "main.size": "large",
        "main.material": "shiny",
        "main.place": "left",
        "second.shape": "ring",
        "second.colour": "blue",
        "second.size": "small",
        "second.material": "matte",
        "relation.main.second": "left of",
        "count": "2",
        "background": "sand",
        "light": "left",
        "tint": "warm",
        "frame": "none",
    }


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


def test_a_change_of_any_part_of_the_name_changes_the_world() -> None:
    worlds = {repr(world_of(seed, split, index)) for seed in (0, 1) for split in SPLITS for index in range(3)}
    assert len(worlds) == 2 * 3 * 3
    assert generator(0, "train", 1, "world").random() != generator(0, "train", 1, "picture").random()


def test_no_two_splits_share_a_describable_world_and_hardly_two_images_do() -> None:
    seen: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for split in SPLITS:
        facts = [world_of(7, split, index).facts() for index in range(300)]
        seen[split] = {tuple((key, one[key]) for key in DESCRIBABLE if key in one) for one in facts}
        assert len(seen[split]) == 300
    assert not seen["train"] & seen["val"]
    assert not seen["train"] & seen["test"]
    assert not seen["val"] & seen["test"]


def test_values_of_every_key_are_all_met() -> None:
    met = {key: Counter[str]() for key in FACT_VALUES}
    for index in range(1200):
        for key, value in world_of(3, "train", index).facts().items():
            met[key][value] += 1
    for key, values in FACT_VALUES.items():
        assert set(met[key]) == set(values), key
    backgrounds = met["background"]
    assert max(backgrounds.values()) < 1.6 * min(backgrounds.values())


def test_an_unknown_split_is_named() -> None:
    with pytest.raises(UnknownNameError, match="dev"):
        world_of(0, "dev", 0)


def test_keys_are_shared_topical_or_never_described() -> None:
    topical = {key for keys in TOPICS.values() for key in keys}
    assert set(SHARED) | topical | set(NEVER_DESCRIBED) == set(FACT_VALUES)
    assert not (set(SHARED) | topical) & set(NEVER_DESCRIBED)
    assert {"light", "tint", "frame"} <= set(NEVER_DESCRIBED)
    assert all(len(set(values)) == len(values) > 1 for values in FACT_VALUES.values())


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


@pytest.mark.parametrize("main_place", PLACES)
def test_the_most_crowded_world_still_fits(main_place: str) -> None:
    """Positions are drawn until they fit, so they must: four large objects, the largest they get."""
    large = _RADII["large"]
    radii = [large * max(_MAIN_STRETCH), *[large * max(_OTHER_STRETCH)] * 3]
    chance = random.Random(0)
    fits = [_sample_spots(chance, radii, main_place) is not None for _ in range(60)]
    assert sum(fits) > 15
