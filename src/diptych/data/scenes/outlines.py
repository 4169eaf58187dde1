"""Outlines of the shapes: closed contours in a unit frame, y downwards; pure geometry."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

__all__ = ["contours"]

Point = tuple[float, float]
Contour = tuple[Point, ...]

_STEPS = 40


def _polar(radius: float, turn: float, y: float = 0.0) -> Point:
    """A point at ``turn`` of a full circle, clockwise from straight up."""
    angle = 2 * math.pi * turn
    return radius * math.sin(angle), y - radius * math.cos(angle)


def _arc(radius: float, start: float, stop: float, x: float = 0.0) -> list[Point]:
    turns = (start + (stop - start) * step / _STEPS for step in range(_STEPS + 1))
    return [(x + px, py) for px, py in (_polar(radius, turn) for turn in turns)]


def _regular(corners: int, radius: float, y: float = 0.0) -> list[Point]:
    return [_polar(radius, corner / corners, y) for corner in range(corners)]


def _star() -> list[Point]:
    return [_polar(1.15 if corner % 2 == 0 else 0.48, corner / 10) for corner in range(10)]


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


def _arrow() -> list[Point]:
    return [(0, -1.1), (0.85, -0.1), (0.34, -0.1), (0.34, 1.0), (-0.34, 1.0), (-0.34, -0.1), (-0.85, -0.1)]


def _flower() -> list[Point]:
    turns = (step / (2 * _STEPS) for step in range(2 * _STEPS))
    return [_polar(0.52 + 0.53 * abs(math.cos(5 * math.pi * turn)), turn) for turn in turns]


def _drop() -> list[Point]:
    turns = (2 * math.pi * step / _STEPS for step in range(_STEPS))
    return [(0.8 * math.sin(t) * math.sin(t / 2) ** 1.2, -1.05 * math.cos(t)) for t in turns]


@cache
def contours(shape: str) -> tuple[Contour, ...]:
    """The contours of ``shape``: the first is filled, further ones are holes; about one unit in radius.

    Raises:
        KeyError: no such shape (``facts.SHAPES`` lists them).
    """
    side = 0.84
    outlines: dict[str, Callable[[], list[list[Point]]]] = {
        "circle": lambda: [_arc(0.95, 0, 1)[:-1]],
        "square": lambda: [[(-side, -side), (side, -side), (side, side), (-side, side)]],
        "triangle": lambda: [_regular(3, 1.15, y=0.1)],
        "star": lambda: [_star()],
        "heart": lambda: [_heart()],
        "cross": lambda: [_cross()],
        "ring": lambda: [_arc(1.0, 0, 1)[:-1], _arc(0.52, 0, 1)[:-1]],
        "crescent": lambda: [_crescent()],
        "arrow": lambda: [_arrow()],
        "flower": lambda: [_flower()],
        "drop": lambda: [_drop()],
        "hexagon": lambda: [_regular(6, 1.0)],
    }
    return tuple(tuple(contour) for contour in outlines[shape]())
