"""The description without weights: against a slow one, and what it should not and should tell apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from diptych.commerce.category_to_image.features.pictures.kinds import (
    GRID_WIDTH,
    MAX_SIDE,
    describe_grid,
    on_square_page,
    without_white_margins,
)


def blot(colour: tuple[int, int, int] = (200, 30, 30), shape: str = "box", side: int = 64) -> Image.Image:
    """A product that fills its picture: a box, or a ring with the page in its middle."""
    pixels = np.full((side, side, 3), 255, dtype=np.uint8)
    pixels[:] = colour
    if shape == "ring":
        pixels[side // 4 : 3 * side // 4, side // 4 : 3 * side // 4] = 255
    return Image.fromarray(pixels)


def slowly(pixels: np.ndarray) -> np.ndarray:
    """The description of 64 × 64 pixels without margins, number by number."""
    grey = [[float(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]) for p in row] for row in pixels]
    colours, edges, shades = [0.0] * 192, [0.0] * 512, [0.0] * 64

    def slope(values: list[float], at: int) -> float:
        low, high = max(at - 1, 0), min(at + 1, len(values) - 1)
        return (values[high] - values[low]) / (high - low)

    for y in range(64):
        for x in range(64):
            cell = (y // 8) * 8 + x // 8
            for channel in range(3):
                colours[cell * 3 + channel] += 1 - int(pixels[y, x, channel]) / 255
            down, right = slope([row[x] for row in grey], y), slope(grey[y], x)
            angle = (math.atan2(down, right) / math.pi) % 1.0
            edges[cell * 8 + min(int(angle * 8), 7)] += math.hypot(down, right)
            if min(pixels[y, x]) < 240:
                red, green, blue = (int(one) // 64 for one in pixels[y, x])
                shades[red * 16 + green * 4 + blue] += 1
    parts = [colours, [math.sqrt(one) for one in edges], [math.sqrt(one) for one in shades]]
    lengths = [math.sqrt(sum(one * one for one in part)) for part in parts]
    row = [one / max(length, 1e-12) for part, length in zip(parts, lengths, strict=True) for one in part]
    whole = math.sqrt(sum(one * one for one in row))
    return np.array([one / whole for one in row])


def test_a_very_long_picture_gets_a_page_of_bounded_size() -> None:
    long = Image.new("RGB", (20 * MAX_SIDE, 10), (200, 30, 30))  # a square around it would have 80 GB
    page = on_square_page(long)
    assert page.size == (MAX_SIDE, MAX_SIDE)
    assert page.getpixel((5, (MAX_SIDE - 1) // 2)) == (200, 30, 30)
    assert page.getpixel((5, 0)) == (255, 255, 255)
    assert abs(float(np.linalg.norm(describe_grid(long))) - 1) < 1e-5


def test_against_a_slow_one() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    pixels[10:20, 10:20] = 255
    pixels[0, 0] = pixels[-1, -1] = 0  # so that there is no margin
    row = describe_grid(Image.fromarray(pixels))
    assert row.dtype == np.float32
    assert row.shape == (GRID_WIDTH,) == (768,)
    np.testing.assert_allclose(row, slowly(pixels), atol=1e-6)


def test_an_edge_and_its_opposite_are_one_orientation() -> None:
    pixels = np.full((64, 64, 3), 100, dtype=np.uint8)
    pixels[:, :32] = 20
    there = describe_grid(Image.fromarray(pixels))[192:704].reshape(64, 8).sum(axis=0)
    back = describe_grid(Image.fromarray(pixels[:, ::-1].copy()))[192:704].reshape(64, 8).sum(axis=0)
    np.testing.assert_allclose(there, back, atol=1e-6)
    assert np.flatnonzero(there).tolist() == [0]  # all edges are upright


@pytest.mark.parametrize("margin", [(0, 0, 0, 0), (10, 10, 10, 10), (0, 40, 7, 3), (64, 0, 64, 0)])
def test_white_margins_do_not_matter(margin: tuple[int, int, int, int]) -> None:
    picture = blot(shape="ring")
    framed = ImageOps.expand(picture, margin, (252, 255, 250))
    assert without_white_margins(framed).size == picture.size
    np.testing.assert_allclose(describe_grid(framed), describe_grid(picture), atol=1e-6)


def test_colours_and_shapes_are_told_apart() -> None:
    red, blue, ring = (describe_grid(one) for one in (blot(), blot((30, 30, 200)), blot(shape="ring")))
    paler = describe_grid(blot((205, 36, 28)))
    assert red @ paler > 0.99
    assert red @ paler > red @ ring > 0
    assert red @ paler > red @ blue


def test_a_white_picture_has_a_row() -> None:
    row = describe_grid(blot((255, 255, 255)))
    assert np.linalg.norm(row) == pytest.approx(1)
    assert without_white_margins(blot((255, 255, 255))).size == (64, 64)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 2**31))
def test_every_picture_has_a_unit_row(width: int, height: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).choice([0, 128, 239, 240, 255], (height, width, 3)).astype(np.uint8)
    row = describe_grid(Image.fromarray(pixels))
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)
