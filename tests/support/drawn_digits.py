"""The code that drew ``shortcuts/drawn.npz``: strokes, slanted, turned, stretched and shifted at random."""

from __future__ import annotations

import math

import numpy as np

from diptych.analysis.shortcuts.digits import DRAWN_OF_EACH

_SIDE, _FINER = 28, 4


def drawn_anew() -> list[np.ndarray]:
    """Per digit (40, 28, 28) uint8."""
    return [
        np.stack([_draw(digit, np.random.default_rng([digit, number])) for number in range(DRAWN_OF_EACH)])
        for digit in range(10)
    ]


def _arc(
    x: float, y: float, width: float, height: float, start: float, stop: float
) -> list[tuple[float, float]]:
    steps = max(8, round(abs(stop - start) / 12))
    angles = [math.radians(start + (stop - start) * step / steps) for step in range(steps + 1)]
    return [(x + width * math.cos(angle), y + height * math.sin(angle)) for angle in angles]


# Strokes of each digit in a box from (-1, -1), left above, to (1, 1), right below.
_STROKES: tuple[tuple[list[tuple[float, float]], ...], ...] = (
    (_arc(0, 0, 0.62, 1, -90, 270),),
    ([(-0.35, -0.65), (0.05, -1), (0.05, 1)],),
    ([*_arc(0, -0.45, 0.6, 0.55, -170, 40), (-0.62, 1), (0.66, 1)],),
    (_arc(-0.05, -0.48, 0.58, 0.52, -150, 90), _arc(-0.05, 0.5, 0.66, 0.5, -90, 150)),
    ([(0.3, 1), (0.3, -1), (-0.66, 0.35), (0.68, 0.35)],),
    ([(0.6, -1), (-0.45, -1), (-0.52, -0.1), *_arc(-0.05, 0.36, 0.64, 0.64, -130, 145)],),
    ([(0.42, -1), (-0.2, -0.45), *_arc(0, 0.42, 0.58, 0.58, -160, 200)],),
    ([(-0.62, -1), (0.64, -1), (-0.15, 1)],),
    (_arc(0, -0.5, 0.48, 0.48, 90, 450), _arc(0, 0.5, 0.6, 0.5, -90, 270)),
    ([*_arc(0, -0.42, 0.56, 0.56, 20, 380), (0.5, 0.1), (0.1, 1)],),
)


def _draw(digit: int, random: np.random.Generator) -> np.ndarray:
    from PIL import Image as pillow
    from PIL import ImageDraw as pillow_draw

    slant, turn = random.uniform(-0.25, 0.35), random.uniform(-0.15, 0.15)
    width, height = random.uniform(0.75, 1.1), random.uniform(0.85, 1.05)
    x, y = random.uniform(-1, 1, 2)
    pen = round(random.uniform(2.2, 3.8) * _FINER)
    side = _SIDE * _FINER
    paper = pillow.new("L", (side, side))
    draw = pillow_draw.Draw(paper)
    for stroke in _STROKES[digit]:
        points = []
        for across, down in stroke:
            across, down = width * (across - slant * down), height * down
            turned = (
                across * math.cos(turn) - down * math.sin(turn),
                across * math.sin(turn) + down * math.cos(turn),
            )
            points.append(
                (side / 2 + _FINER * (x + 9.5 * turned[0]), side / 2 + _FINER * (y + 9.5 * turned[1]))
            )
        draw.line(points, fill=255, width=pen, joint="curve")
        for centre in (points[0], points[-1]):
            box = (centre[0] - pen / 2, centre[1] - pen / 2, centre[0] + pen / 2, centre[1] + pen / 2)
            draw.ellipse(box, fill=255)
    return np.asarray(paper.resize((_SIDE, _SIDE), pillow.Resampling.BOX))
