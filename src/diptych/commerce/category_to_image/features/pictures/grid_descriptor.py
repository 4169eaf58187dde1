"""A picture in numbers without any weights: where its colours and edges are, and which colours it has.

Shops show a product in the middle of a white page, so white margins are cut first: how much room a product got
says nothing of it. Shapes and colours on an 8 × 8 grid are those of SIFT's and HOG's family, the histogram of
colours is Swain and Ballard's.

Sources: Dalal and Triggs, Histograms of Oriented Gradients for Human Detection, CVPR 2005; Swain and Ballard, Color
Indexing, IJCV 1991.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image


WHITE = 240
"""A pixel whose channels are all at least this is of the page."""


MAX_SIDE = 8192
"""Of a square page: a picture of 100,000 × 10 pixels would need 30 GB of white around it."""


def without_white_margins(picture: Image) -> Image:
    """The smallest part of an RGB picture that holds every pixel which is not white; all of a white one."""
    inked = np.asarray(picture).min(axis=2) < WHITE
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    if not len(rows):
        return picture
    return picture.crop((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))


def on_square_page(picture: Image) -> Image:
    """An RGB picture in the middle of a white square, as large as its longer side; nothing of it is lost.

    A longer side than :data:`MAX_SIDE` is scaled down to it first.
    """
    from PIL import Image as pillow

    if max(picture.size) > MAX_SIDE:
        scale = MAX_SIDE / max(picture.size)
        smaller = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(smaller, pillow.Resampling.BILINEAR, reducing_gap=2.0)
    side = max(picture.size)
    if picture.size == (side, side):
        return picture
    page = pillow.new("RGB", (side, side), (255, 255, 255))
    page.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return page


_SIDE, _CELLS, _ORIENTATIONS, _SHADES = 64, 8, 8, 4

GRID_WIDTH = _CELLS**2 * (3 + _ORIENTATIONS) + _SHADES**3
"""Length of a description: 768."""


def describe_grid(picture: Image) -> np.ndarray:
    """(768,) float32 of unit length: cells' mean colours, cells' edges by orientation, histogram of colours.

    Each of the three has the same weight; the page's white counts as nothing in the first and the last. A picture
    that is white altogether is described by its white.
    """
    from PIL import Image as pillow

    square = on_square_page(without_white_margins(picture))
    pixels = np.asarray(square.resize((_SIDE, _SIDE), pillow.Resampling.BILINEAR, reducing_gap=2.0))
    parts = (_colours(pixels), _edges(pixels), _histogram(pixels))
    row = np.concatenate([part / max(float(np.linalg.norm(part)), 1e-12) for part in parts])
    unit: np.ndarray = (row / np.linalg.norm(row)).astype(np.float32)
    return unit


def _by_cell(values: np.ndarray) -> np.ndarray:
    """(side, side, c) → (cells, cells, c) sums over each cell."""
    step = _SIDE // _CELLS
    sums: np.ndarray = values.reshape(_CELLS, step, _CELLS, step, -1).sum(axis=(1, 3))
    return sums


def _colours(pixels: np.ndarray) -> np.ndarray:
    found: np.ndarray = _by_cell(1.0 - pixels / 255.0).ravel()
    return found


def _edges(pixels: np.ndarray) -> np.ndarray:
    down, right = np.gradient(pixels @ np.array([0.299, 0.587, 0.114]))
    strength = np.hypot(down, right)
    # An edge and its opposite are one orientation.
    turn = (np.arctan2(down, right) / np.pi) % 1.0
    bins = np.minimum((turn * _ORIENTATIONS).astype(np.int64), _ORIENTATIONS - 1)
    spread = np.zeros((*strength.shape, _ORIENTATIONS))
    np.put_along_axis(spread, bins[..., None], strength[..., None], axis=2)
    # Roots, so that one hard edge does not outshine all others.
    found: np.ndarray = np.sqrt(_by_cell(spread)).ravel()
    return found


def _histogram(pixels: np.ndarray) -> np.ndarray:
    flat = pixels.reshape(-1, 3)
    inked = flat[flat.min(axis=1) < WHITE]
    shades = (inked if len(inked) else flat).astype(np.int64) * _SHADES // 256
    code = shades @ np.array([_SHADES**2, _SHADES, 1])
    return np.sqrt(np.bincount(code, minlength=_SHADES**3).astype(np.float64))
