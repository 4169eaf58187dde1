from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from diptych.data.scenes.draw import draw_world
from diptych.data.scenes.facts import BACKGROUNDS, COLOURS, MATERIALS, SHAPES
from diptych.data.scenes.world import SceneObject, World, generator, world_of

STAR = SceneObject("star", "red", "large", "matte", 0.5, 0.5, 0.3)
RING = replace(STAR, shape="ring", colour="blue", x=0.2, y=0.2, radius=0.1)
WORLD = World((STAR, RING), "sand", "left", "neutral", "none")
MIDDLE = np.arange(64 * 64).reshape(64, 64)[24:40, 24:40].ravel()


def pixels(world: World, seed: int = 0, size: int = 64) -> np.ndarray:
    return np.asarray(draw_world(world, random.Random(seed), size), dtype=np.float64)


def area(contour: tuple[tuple[float, float], ...]) -> float:
    """The shoelace formula."""
    following = [*contour[1:], contour[0]]
    return abs(sum(x * v - u * y for (x, y), (u, v) in zip(contour, following, strict=True))) / 2


def test_the_same_generator_draws_the_same_pixels_and_another_does_not() -> None:
    world = world_of(0, "train", 0)
    first, again, other = (
        np.asarray(draw_world(world, generator(0, "train", index, "picture"), 64)) for index in (0, 0, 1)
    )
    assert first.shape == (64, 64, 3)
    assert first.dtype == np.uint8
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_every_fact_shows() -> None:
    """Changing one fact, with the same noise, changes far more than rounding would."""
    before = pixels(WORLD)
    changed = [replace(WORLD, light="right"), replace(WORLD, tint="warm"), replace(WORLD, frame="black")]
    changed += [replace(WORLD, background=kind) for kind in BACKGROUNDS if kind != "sand"]
    for attribute, values in (("shape", SHAPES), ("colour", COLOURS), ("material", MATERIALS)):
        changed += [
            replace(WORLD, objects=(replace(STAR, **{attribute: value}), RING))
            for value in values
            if value != getattr(STAR, attribute)
        ]
    for world in changed:
        assert np.abs(pixels(world) - before).mean() > 1.0, world


def test_colours_are_told_apart_in_spite_of_their_jitter() -> None:
    """A reader of the middle pixels alone, by nearest mean colour, hardly ever errs."""
    middles = np.array(
        [
            [
                pixels(replace(WORLD, objects=(replace(STAR, shape="circle", colour=colour),)), seed)
                .reshape(64 * 64, 3)[MIDDLE]
                .mean(axis=0)
                for seed in range(8)
            ]
            for colour in COLOURS
        ]
    )  # (colours, seeds, 3)
    means = middles.mean(axis=1)
    distance = np.linalg.norm(middles[:, :, None] - means[None, None], axis=3)
    right = distance.argmin(axis=2) == np.arange(len(COLOURS))[:, None]
    assert right.mean() > 0.95


@pytest.mark.parametrize("size", [32, 33, 96])
def test_any_size_can_be_drawn(size: int) -> None:
    for index in range(4):
        picture = draw_world(world_of(1, "val", index), random.Random(index), size)
        assert picture.size == (size, size)
        assert picture.mode == "RGB"
