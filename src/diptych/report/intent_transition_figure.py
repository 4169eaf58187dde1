"""Which device follows which before a purchase, as a drawn graph (thesis Figure 6.5)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.report.drawing import BLUE, INK, ORANGE
from diptych.report.intent_discretion import Discretion, percent
from diptych.report.intent_series import PAPER, label, panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NODES = 6
"""Devices that a graph shows; a matrix has more."""

MOST_ARROWS = 20
"""Switches that a graph shows, the most probable: as many as five devices can have."""

LINKS: Mapping[str, tuple[str, str, str]] = {
    "strong": ("blue", "━", "strong: likely both ways"),
    "one-sided": ("orange", "━", "one-sided: likely there, hardly ever back"),
    "weak": ("ink", "╌", "weak: hardly ever, either way"),
    "none": ("ink", "━", "neither, or nobody was seen on the way back"),
}
"""Kinds of links that are drawn: colour, glyph and meaning."""

_COLOURS = {"strong": BLUE, "one-sided": ORANGE, "weak": INK, "none": INK}
_NODE = 0.26  # radius, where the graph's is 1
_BEND = 0.16
_WIDEST = 7.0  # points
_WIDE = 0.25  # probability of the widest arrow, unless there is a greater one

Row = Mapping[str, Any]
Point = tuple[float, float]


def transition_order(rows: Sequence[Row]) -> list[str]:
    """Devices by how many transitions they have a part in."""
    parts: dict[str, int] = defaultdict(int)
    for row in rows:
        for end in ("from_device", "to_device"):
            parts[row[end]] += row["transitions"]
    return sorted(parts, key=lambda one: (-parts[one], one))


def places_of(n: int) -> list[tuple[float, float]]:
    """Where n nodes lie: one in the middle, two side by side, more on a circle from the top, clockwise."""
    if n == 1:
        return [(0.0, 0.0)]
    first = math.pi if n == 2 else math.pi / 2
    return [(math.cos(first - 2 * math.pi * k / n), math.sin(first - 2 * math.pi * k / n)) for k in range(n)]


def transition_figure(rows: Sequence[Row], discretion: Discretion) -> str:
    """Nodes are devices with the probability to stay; arrows are as thick as a switch is probable, as ``<svg>``."""
    devices = transition_order(rows)[:MOST_NODES]
    places = dict(zip(devices, places_of(len(devices)), strict=True))
    stays = {device: _stays(device, rows, discretion) for device in devices}
    switches = [
        row
        for row in rows
        if row["from_device"] in places
        and row["to_device"] in places
        and row["from_device"] != row["to_device"]
        and row["link"] in LINKS
        and row["transitions"]
        and not discretion.small(row["transitions"])
    ]
    probable = sorted(switches, key=lambda row: (row["share"], row["from_device"], row["to_device"]))
    arrows = probable[-MOST_ARROWS:]  # the thickest last, on top
    greatest = max([_WIDE, *(row["share"] for row in arrows)])
    flat = len(devices) <= 2
    with panel("transitions", size=(5.4, 1.8 if flat else 3.9)) as drawing:
        axes = drawing.axes
        curves = [_curve(places[row["from_device"]], places[row["to_device"]]) for row in arrows]
        for curve, row, at in zip(curves, arrows, label_places(curves), strict=True):
            _arrow(axes, curve, row, greatest)
            ground = {"boxstyle": "round,pad=0.12", "facecolor": PAPER, "edgecolor": "none"}
            number = percent(row["share"], 1 if row["share"] < 0.1 else 0)
            axes.text(at[0], at[1], number, ha="center", va="center", fontsize=9, bbox=ground, zorder=4)
        for device, place in places.items():
            _node(axes, device, place, stays[device], flat)
        axes.set_xlim(-2.1, 2.1)
        heights = [up for _, up in places.values()]
        axes.set_ylim(min(heights) - (0.6 if flat else 0.5), max(heights) + (0.4 if flat else 0.6))
        axes.set_aspect("equal")
        axes.axis("off")
        drawing.summary = "Probability of the next device before a purchase: " + "; ".join(
            f"{label(device)} stays {_percent(stays[device], 1)}"
            + "".join(
                f", to {label(row['to_device'])} {percent(row['share'])} % ({row['link']})"
                for row in arrows
                if row["from_device"] == device
            )
            for device in devices
        )
    return drawing.svg


def _stays(device: str, rows: Sequence[Row], discretion: Discretion) -> float | None:
    """The probability to stay; None where nobody knows, or so few did that it is not shown."""
    mine = [row for row in rows if row["from_device"] == device and row["transitions"]]
    own = next((row for row in mine if row["to_device"] == device), None)
    if own is None:
        return 0.0 if mine else None
    return None if discretion.small(own["transitions"]) else float(own["share"])


def _percent(share: float | None, decimals: int) -> str:
    return "–" if share is None else f"{percent(share, decimals)} %"


def _curve(start: Point, end: Point) -> np.ndarray:
    """(3, 2) the ends of an arrow and the point that it bends to; the way back bends to the other side."""
    begin, finish = np.array(start), np.array(end)
    across = finish - begin
    length = float(np.hypot(*across))
    side = np.array([-across[1], across[0]]) / length
    near = _NODE / length
    edges = [begin + part * across + 0.06 * side for part in (1.04 * near, 1 - 1.1 * near)]
    return np.stack(
        [
            edges[0],
            (edges[0] + edges[1]) / 2 + _BEND * float(np.hypot(*(edges[1] - edges[0]))) * side,
            edges[1],
        ]
    )


def _points(curve: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """(parts, 2) of a quadratic curve."""
    t = parts[:, None]
    points: np.ndarray = (1 - t) ** 2 * curve[0] + 2 * t * (1 - t) * curve[1] + t**2 * curve[2]
    return points


def label_places(curves: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Where the number of each arrow stands: on it, as far from all other arrows and numbers as can be."""
    taken: list[np.ndarray] = []
    lines = [_points(curve, np.linspace(0, 1, 25)) for curve in curves]
    for place, curve in enumerate(curves):
        own = _points(curve, np.linspace(0.25, 0.6, 15))
        others = [line for number, line in enumerate(lines) if number != place] + [one[None] for one in taken]
        if others:
            away = np.linalg.norm(own[:, None] - np.concatenate(others)[None], axis=2).min(axis=1)
            taken.append(own[int(np.argmax(away))])
        else:
            taken.append(own[len(own) // 2])
    return taken


def _arrow(axes: Axes, curve: np.ndarray, row: Row, greatest: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    width = 0.8 + _WIDEST * row["share"] / greatest
    weak = row["link"] == "weak"
    style: dict[str, Any] = (
        {"arrowstyle": "->,head_length=4,head_width=2.5", "linestyle": (0, (3, 2)), "linewidth": 1.0}
        if weak
        else {
            "arrowstyle": f"simple,head_length={6 + 0.7 * width},head_width={6 + 1.3 * width},"
            f"tail_width={width}",
            "linewidth": 0,
        }
    )
    axes.add_patch(
        FancyArrowPatch(
            curve[0],
            curve[2],
            connectionstyle=f"arc3,rad={-_BEND}",
            color=_COLOURS[row["link"]],
            alpha=0.55 if _COLOURS[row["link"]] == INK else 0.8,
            mutation_scale=1,
            shrinkA=0,
            shrinkB=0,
            **style,
        )
    )


def _node(axes: Axes, device: str, place: tuple[float, float], stays: float | None, flat: bool) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(
        Circle(place, _NODE, facecolor=PAPER, edgecolor=INK, linewidth=0.8 + 5 * (stays or 0.0), zorder=5)
    )
    axes.text(*place, _percent(stays, 0), ha="center", va="center", fontsize=10, zorder=6)
    if flat:
        at, sides = (place[0], place[1] - _NODE - 0.1), ("center", "top")
    else:
        level = abs(place[0]) < 0.2
        out = _NODE + (0.08 if not level else 0.1)
        at = (
            place[0] + (0 if level else math.copysign(out, place[0])),
            place[1] + (math.copysign(out, place[1]) if level else 0),
        )
        sides = (
            ("center", "bottom" if place[1] > 0 else "top")
            if level
            else ("left" if place[0] > 0 else "right", "center")
        )
    axes.text(*at, label(device, 12), ha=sides[0], va=sides[1], fontsize=10.5, fontweight="bold", zorder=6)
