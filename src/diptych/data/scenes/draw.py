"""Images of worlds: textured ground, shaded objects that cast shadows and occlude each other, noise.

Shapes are drawn four times larger and averaged down, so edges are smooth; colours, textures, turns,
light and noise vary from image to image, so a pixel never tells a fact by itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from diptych.data.scenes.world import SceneObject, World

if TYPE_CHECKING:
    from PIL.Image import Image


Array = np.ndarray


def smooth_noise(chance: np.random.Generator, size: int, down: int, across: int) -> Array:
    """(size, size) float32 noise in about -1..1, ``down`` × ``across`` cells, smooth in between."""
    from PIL import Image

    cells = chance.random((down + 1, across + 1), dtype=np.float32) * 2 - 1
    grown = Image.fromarray(cells).resize((size, size), Image.Resampling.BICUBIC)
    return np.array(grown, dtype=np.float32)


def _tone(chance: np.random.Generator, *colour: float) -> Array:
    """Return a colour, a little brighter or darker and a little off in hue."""
    shade = np.asarray(colour, dtype=np.float32) * chance.uniform(0.88, 1.08)
    return np.asarray(shade + chance.uniform(-8, 8, 3), dtype=np.float32)


def _lit(colour: Array, light: Array) -> Array:
    """``colour`` (3,) with brightness offsets ``light`` (size, size)."""
    lit: Array = colour + light[..., None]
    return lit


def _sand(chance: np.random.Generator, size: int) -> Array:
    grain = chance.random((size, size), dtype=np.float32) * 44 - 22
    return _lit(_tone(chance, 222, 192, 138), 12 * smooth_noise(chance, size, 5, 4) + grain)


def _grass(chance: np.random.Generator, size: int) -> Array:
    blades = smooth_noise(chance, size, max(4, size // 10), max(8, size // 2))
    return _lit(_tone(chance, 96, 146, 62), 30 * blades + 10 * smooth_noise(chance, size, 3, 3))


def _water(chance: np.random.Generator, size: int) -> Array:
    rows = np.linspace(0, 2 * np.pi * chance.uniform(5, 8), size, dtype=np.float32)[:, None]
    waves = np.sin(rows + 2.2 * smooth_noise(chance, size, 4, 4))
    return _lit(_tone(chance, 78, 134, 178), 20 * waves)


def _brick(chance: np.random.Generator, size: int) -> Array:
    height = size / chance.uniform(6.5, 9)
    y = np.arange(size, dtype=np.float32) + chance.uniform(0, height)
    row = (y / height).astype(np.int64)
    x = np.arange(size, dtype=np.float32) / (2.2 * height) + chance.uniform(0, 1)
    column = (x[None] + 0.5 * (row[:, None] % 2)) % 16
    shades = chance.uniform(-18, 18, (int(row.max()) + 1, 17)).astype(np.float32)
    wall = _lit(_tone(chance, 158, 88, 70), shades[row[:, None], column.astype(np.int64)])
    mortar = ((y / height) % 1 < 0.14)[:, None] | (column % 1 < 0.07)
    wall[mortar] = _tone(chance, 196, 186, 176)
    return wall


def _snow(chance: np.random.Generator, size: int) -> Array:
    drifts = smooth_noise(chance, size, 4, 2)
    sparkle = np.where(chance.random((size, size), dtype=np.float32) > 0.97, np.float32(18), np.float32(0))
    picture = _lit(np.asarray([222, 229, 240], dtype=np.float32), 12 * drifts + sparkle)
    return picture + chance.uniform(-8, 8, 3).astype(np.float32)


def _night(chance: np.random.Generator, size: int) -> Array:
    fall = np.linspace(0, 26, size, dtype=np.float32)[:, None] + 5 * smooth_noise(chance, size, 3, 3)
    sky = _lit(_tone(chance, 24, 28, 62), fall)
    number = int(chance.integers(14, 34))
    y, x = chance.integers(0, size, number), chance.integers(0, size, number)
    sky[y, x] = chance.uniform(150, 250, (number, 1)).astype(np.float32)
    return sky


def _wood(chance: np.random.Generator, size: int) -> Array:
    grain = smooth_noise(chance, size, max(10, size // 3), 3)
    planks = int(chance.integers(4, 7))
    row = (np.arange(size) * planks / size + chance.uniform(0, 1)) % (planks + 1)
    shade = chance.uniform(-16, 16, planks + 1).astype(np.float32)[row.astype(np.int64)]
    shade = np.where(row % 1 < planks * 1.3 / size, np.float32(-48), shade)
    return _lit(_tone(chance, 146, 106, 66), 16 * grain + shade[:, None])


def _sunset(chance: np.random.Generator, size: int) -> Array:
    height = np.linspace(0, 1, size, dtype=np.float32) + chance.uniform(-0.12, 0.12)
    stops = [0, 0.45, 0.75, 1]
    bands = ((92, 68, 132), (206, 108, 122), (246, 164, 96), (252, 206, 128))
    column = np.stack([np.interp(height, stops, [band[c] for band in bands]) for c in range(3)], axis=1)
    sky: Array = column[:, None] + 16 * smooth_noise(chance, size, 7, 2)[..., None]
    return sky


# One painter per value of the fact ``background``.
PAINTERS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "sand": _sand,
    "grass": _grass,
    "water": _water,
    "brick": _brick,
    "snow": _snow,
    "night": _night,
    "wood": _wood,
    "sunset": _sunset,
}


Point = tuple[float, float]
Contour = tuple[Point, ...]

_STEPS = 40


def _polar(radius: float, turn: float, y: float = 0.0) -> Point:
    """Return a point at ``turn`` of a full circle, clockwise from straight up."""
    angle = 2 * math.pi * turn
    return radius * math.sin(angle), y - radius * math.cos(angle)


def _arc(radius: float, start: float, stop: float, x: float = 0.0) -> list[Point]:
    turns = (start + (stop - start) * step / _STEPS for step in range(_STEPS + 1))
    return [(x + px, py) for px, py in (_polar(radius, turn) for turn in turns)]


def _regular(corners: int, radius: float, y: float = 0.0) -> list[Point]:
    return [_polar(radius, corner / corners, y) for corner in range(corners)]


def _heart() -> list[Point]:
    turns = (2 * math.pi * step / _STEPS for step in range(_STEPS))
    return [
        (
            1.0 * math.sin(t) ** 3,
            -(13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)) / 15.5 - 0.1,
        )
        for t in turns
    ]


def _cross() -> list[Point]:
    arm, width = 1.0, 0.34
    corner = [(width, -arm), (width, -width), (arm, -width)]
    points: list[Point] = []
    for _ in range(4):
        points.extend(corner)
        corner = [(-y, x) for x, y in corner]
    return points


def _crescent() -> list[Point]:
    # outer circle of radius r around the origin, bitten by a circle of radius b around (c, 0)
    r, b, c = 1.05, 0.85, 0.55
    x = (r * r - b * b + c * c) / (2 * c)
    tip = math.sqrt(r * r - x * x)
    outer_turn = math.atan2(x, tip) / (2 * math.pi)
    inner_turn = math.atan2(x - c, tip) / (2 * math.pi)
    outer = _arc(r, outer_turn, -0.5 - outer_turn)
    inner = _arc(b, -0.5 - inner_turn, inner_turn, x=c)
    return [(px + 0.2, py) for px, py in outer + inner[1:-1]]


_ARROW = [(0, -1.1), (0.85, -0.1), (0.34, -0.1), (0.34, 1.0), (-0.34, 1.0), (-0.34, -0.1), (-0.85, -0.1)]


def _flower() -> list[Point]:
    turns = (step / (2 * _STEPS) for step in range(2 * _STEPS))
    return [_polar(0.52 + 0.53 * abs(math.cos(5 * math.pi * turn)), turn) for turn in turns]


def _drop() -> list[Point]:
    turns = (2 * math.pi * step / _STEPS for step in range(_STEPS))
    return [(0.8 * math.sin(t) * math.sin(t / 2) ** 1.2, -1.05 * math.cos(t)) for t in turns]


@cache
def contours(shape: str) -> tuple[Contour, ...]:
    """Return the contours of ``shape``: the first is filled, further ones are holes; about one unit in radius."""
    side = 0.84
    outlines: dict[str, Callable[[], list[list[Point]]]] = {
        "circle": lambda: [_arc(0.95, 0, 1)[:-1]],
        "square": lambda: [[(-side, -side), (side, -side), (side, side), (-side, side)]],
        "triangle": lambda: [_regular(3, 1.15, y=0.1)],
        "star": lambda: [[_polar(0.48 if corner % 2 else 1.15, corner / 10) for corner in range(10)]],
        "heart": lambda: [_heart()],
        "cross": lambda: [_cross()],
        "ring": lambda: [_arc(1.0, 0, 1)[:-1], _arc(0.52, 0, 1)[:-1]],
        "crescent": lambda: [_crescent()],
        "arrow": lambda: [_ARROW],
        "flower": lambda: [_flower()],
        "drop": lambda: [_drop()],
        "hexagon": lambda: [_regular(6, 1.0)],
    }
    return tuple(tuple(contour) for contour in outlines[shape]())


_SUPERSAMPLING = 4
_RGB = {
    "red": (206, 34, 40),
    "orange": (240, 132, 26),
    "yellow": (246, 218, 52),
    "green": (40, 152, 62),
    "turquoise": (46, 198, 192),
    "blue": (38, 80, 204),
    "purple": (128, 54, 168),
    "pink": (244, 142, 184),
    "white": (244, 243, 238),
    "black": (34, 34, 38),
}
_TOWARDS_LIGHT = {"left": (-1.0, 0.0), "right": (1.0, 0.0), "top": (0.0, -1.0), "bottom": (0.0, 1.0)}
_TINTS = {"neutral": (1.0, 1.0, 1.0), "warm": (1.07, 1.0, 0.87), "cool": (0.89, 0.99, 1.09)}
_FRAME_GREY = {"white": 240.0, "black": 22.0}


def draw_world(world: World, chance: random.Random, size: int) -> Image:
    """Draw one world.

    Args:
        world: what is in it; the same world drawn twice with other ``chance`` gives other pixels.
        size: side of the square image in pixels.

    Returns:
        An RGB Pillow image, (size, size).
    """
    from PIL import Image as pillow

    noise = np.random.Generator(np.random.PCG64(chance.getrandbits(128)))
    canvas = PAINTERS[world.background](noise, size).astype(
        np.float32, copy=False
    )  # not yet clipped to 0..255
    towards = _TOWARDS_LIGHT[world.light]
    for item in reversed(world.objects):  # largest last: the main object is in front
        draw_object(canvas, item, towards, noise)
    ramp = np.linspace(-1, 1, size, dtype=np.float32) * np.float32(noise.uniform(0.1, 0.2))
    canvas *= (1 + towards[0] * ramp)[None, :, None] + (towards[1] * ramp)[:, None, None]
    canvas *= np.asarray(_TINTS[world.tint], dtype=np.float32) * np.float32(noise.uniform(0.9, 1.06))
    if world.frame != "none":
        width = max(1, round(size * noise.uniform(0.015, 0.03)))
        border = np.ones((size, size), dtype=bool)
        border[width:-width, width:-width] = False
        canvas[border] = _FRAME_GREY[world.frame]
    grain = noise.standard_normal((size, size, 3), dtype=np.float32)
    canvas += grain * np.float32(noise.uniform(2, 7))
    return pillow.fromarray(np.clip(canvas, 0, 255).astype(np.uint8))


def draw_object(
    canvas: Array, item: SceneObject, towards: tuple[float, float], noise: np.random.Generator
) -> None:
    """Draw one object with its shadow onto ``canvas`` (size, size, 3) float32, in place."""
    size = len(canvas)
    radius = item.radius * size
    reach = math.ceil(radius * 1.25) + 1
    left, top = round(item.x * size) - reach, round(item.y * size) - reach
    offset = (item.x * size - left, item.y * size - top)
    inside, rim = _masks(item.shape, radius, offset, 2 * reach, float(noise.uniform(-14, 14)))

    length = noise.uniform(0.14, 0.22) * radius
    _blend(
        canvas,
        left - round(towards[0] * length),
        top - round(towards[1] * length),
        inside * np.float32(0.42),
        np.zeros(3, dtype=np.float32),
    )
    y, x = np.mgrid[0 : 2 * reach, 0 : 2 * reach].astype(np.float32)
    x, y = (x + 0.5 - offset[0]) / radius, (y + 0.5 - offset[1]) / radius
    surface = _surface(item, x, y, towards, noise)
    edge = surface * np.float32(0.5) if item.colour != "black" else surface + np.float32(75)
    surface += (edge - surface) * rim[..., None]
    _blend(canvas, left, top, inside, surface)


def _masks(
    shape: str, radius: float, offset: tuple[float, float], side: int, degrees: float
) -> tuple[Array, Array]:
    """(side, side) coverage of the shape and of its rim, in 0..1."""
    from PIL import Image as pillow
    from PIL import ImageDraw

    scale = _SUPERSAMPLING
    turn = math.radians(degrees)
    cos, sin = math.cos(turn) * radius * scale, math.sin(turn) * radius * scale
    inside = pillow.new("L", (side * scale, side * scale))
    rim = pillow.new("L", (side * scale, side * scale))
    fill, line = ImageDraw.Draw(inside), ImageDraw.Draw(rim)
    width = max(scale, round(0.16 * radius * scale))
    for number, contour in enumerate(contours(shape)):
        points = [
            (offset[0] * scale + x * cos - y * sin, offset[1] * scale + x * sin + y * cos) for x, y in contour
        ]
        fill.polygon(points, fill=0 if number else 255)
        line.line([*points, points[0], points[1]], fill=255, width=width, joint="curve")
    coverage = np.asarray(inside.reduce(scale), dtype=np.float32) / 255
    return coverage, np.asarray(rim.reduce(scale), dtype=np.float32) / 255


def _surface(
    item: SceneObject, x: Array, y: Array, towards: tuple[float, float], noise: np.random.Generator
) -> Array:
    """Colour and material of an object: (side, side, 3) float32; x and y are in radii from its centre."""
    base = np.asarray(_RGB[item.colour], dtype=np.float32) * np.float32(noise.uniform(0.88, 1.06))
    base = base + noise.uniform(-10, 10, 3).astype(np.float32)
    bright = float(base @ np.asarray([0.3, 0.59, 0.11])) > 95
    other = base * np.float32(0.48) if bright else base + (255 - base) * np.float32(0.6)
    lit = x * towards[0] + y * towards[1]
    if item.material == "shiny":
        spot = np.exp(-((x - 0.35 * towards[0]) ** 2 + (y - 0.35 * towards[1]) ** 2) / 0.1)
        body = base * (0.92 + 0.3 * lit)[..., None]
        return body + (255 - body) * np.clip(0.95 * spot, 0, 1)[..., None]
    surface = base * (1 + 0.06 * lit)[..., None]
    if item.material == "matte":
        return surface
    angle, frequency = noise.uniform(0, math.pi), noise.uniform(2.0, 2.6)
    phase = noise.uniform(0, 1)
    along = frequency * (x * math.cos(angle) + y * math.sin(angle)) + phase
    if item.material == "striped":
        pattern = np.clip(0.5 + 2.5 * np.sin(2 * math.pi * along * 0.8), 0, 1)
    else:
        aside = frequency * (y * math.cos(angle) - x * math.sin(angle)) + phase
        nearest = (along - np.round(along)) ** 2 + (aside - np.round(aside)) ** 2
        pattern = np.clip((0.3 - np.sqrt(nearest)) * 6 + 0.5, 0, 1)
    return surface + (other - surface) * pattern.astype(np.float32)[..., None]


def _blend(canvas: Array, left: int, top: int, alpha: Array, colour: Array) -> None:
    """Lay ``colour`` (3,) or (h, w, 3) over the canvas at (left, top), where alpha (h, w) says."""
    height, width = alpha.shape
    size = len(canvas)
    x0, x1, y0, y1 = max(left, 0), min(left + width, size), max(top, 0), min(top + height, size)
    if x0 >= x1 or y0 >= y1:
        return
    cut = (slice(y0 - top, y1 - top), slice(x0 - left, x1 - left))
    under = canvas[y0:y1, x0:x1]
    under += ((colour[cut] if colour.ndim == 3 else colour) - under) * alpha[cut][..., None]
