"""The colours of reports: one table for the page, its figures and contact sheets.

Right and wrong are green and red because the figures of the field are (ConVSE, thesis ch. 3); they
never stand alone, a tick or a cross is beside them. Lines and bars use blue and orange of the
Okabe–Ito set, which people who see no difference between red and green can tell apart, each in a
shade that reads on the page's paper (contrast at least 2.9 : 1 for shapes, 4.5 : 1 for words).
"""

from __future__ import annotations

LIGHT = {
    "paper": "#ffffff",
    "soft": "#f5f7f9",
    "line": "#d9dee4",
    "ink": "#1b1f24",
    "muted": "#5b6470",
    "right": "#1a7f37",
    "wrong": "#cf222e",
    "unknown": "#8a929c",
    "blue": "#0072b2",
    "orange": "#d55e00",
}

DARK = {
    "paper": "#14171b",
    "soft": "#1c2126",
    "line": "#2f363e",
    "ink": "#e4e8ec",
    "muted": "#9aa4af",
    "right": "#3fb950",
    "wrong": "#f85149",
    "unknown": "#6e7681",
    "blue": "#56b4e9",
    "orange": "#e69f00",
}


def judgement(is_right: bool | None) -> str:
    """``"right"``, ``"wrong"``, or ``"unknown"`` where nobody has said."""
    return "unknown" if is_right is None else "right" if is_right else "wrong"


def frame_colour(is_right: bool | None) -> str:
    """The frame of a retrieved item on light paper: green, red or grey, as ``#rrggbb``."""
    return LIGHT[judgement(is_right)]
