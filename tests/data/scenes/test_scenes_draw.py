from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest

from diptych.data.scenes.draw import PAINTERS, contours, draw_object, draw_world, paint_background
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


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_fill_a_unit_circle(shape: str) -> None:
    outer, *holes = contours(shape)
    reach = max(math.hypot(x, y) for x, y in outer)
    assert 0.85 <= reach <= 1.25
    assert 0.9 < area(outer) - sum(map(area, holes)) < 3.2
    assert abs(sum(x for x, _ in outer) / len(outer)) < 0.25


def test_a_square_has_the_area_it_should() -> None:
    canvas = np.full((100, 100, 3), 200.0, dtype=np.float32)
    item = SceneObject("square", "black", "large", "matte", 0.5, 0.5, 0.3)
    draw_object(canvas, item, (0.0, 0.0), np.random.default_rng(0))
    covered = (canvas.mean(axis=2) < 150).sum()
    assert covered == pytest.approx((2 * 0.84 * 30) ** 2, rel=0.03)


def test_objects_are_cut_at_the_border() -> None:
    canvas = np.full((40, 40, 3), 200.0, dtype=np.float32)
    for x, y in itertools.product((-0.1, 1.1), repeat=2):
        draw_object(canvas, replace(STAR, shape="circle", x=x, y=y), (1.0, 0.0), np.random.default_rng(0))
    draw_object(canvas, replace(STAR, x=3.0), (1.0, 0.0), np.random.default_rng(0))
    corners = canvas[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert (corners[:, 1] < 150).all()
    assert (canvas[15:25, 15:25] == 200).all()


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


def test_the_main_object_is_in_front() -> None:
    behind = replace(STAR, colour="green", shape="square", radius=0.25)
    front = replace(STAR, shape="square", radius=0.3)
    red, green, _ = pixels(replace(WORLD, objects=(front, behind)))[28:36, 28:36].mean(axis=(0, 1))
    assert red > 2 * green


@pytest.mark.parametrize("kind", BACKGROUNDS)
def test_backgrounds_are_textured_and_vary(kind: str) -> None:
    first = paint_background(kind, np.random.default_rng(0), 48)
    second = paint_background(kind, np.random.default_rng(1), 48)
    assert first.shape == (48, 48, 3)
    assert first.dtype == np.float32
    assert np.isfinite(first).all()
    assert first.min() > -60
    assert first.max() < 330
    assert first.std(axis=(0, 1)).max() > 2
    assert np.abs(first - second).mean() > 1


def test_every_background_has_a_painter() -> None:
    assert set(PAINTERS) == set(BACKGROUNDS)


@pytest.mark.parametrize("size", [32, 33, 96])
def test_any_size_can_be_drawn(size: int) -> None:
    for index in range(4):
        picture = draw_world(world_of(1, "val", index), random.Random(index), size)
        assert picture.size == (size, size)
        assert picture.mode == "RGB"
