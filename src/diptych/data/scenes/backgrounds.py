"""Backgrounds: textures of sand, grass, water and the like, as (size, size, 3) float arrays in 0..255."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def smooth_noise(chance: np.random.Generator, size: int, down: int, across: int) -> Array:
    """(size, size) float32 noise in about -1..1, ``down`` × ``across`` cells, smooth in between."""
    from PIL import Image

    cells = chance.random((down + 1, across + 1), dtype=np.float32) * 2 - 1
    grown = Image.fromarray(cells).resize((size, size), Image.Resampling.BICUBIC)
    return np.array(grown, dtype=np.float32)


def _tone(chance: np.random.Generator, *colour: float) -> Array:
    """A colour, a little brighter or darker and a little off in hue."""
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
"""One painter per value of the fact ``background``."""


def paint_background(kind: str, chance: np.random.Generator, size: int) -> Array:
    """Paint background ``kind``: (size, size, 3) float32, not yet clipped to 0..255."""
    return PAINTERS[kind](chance, size).astype(np.float32, copy=False)
