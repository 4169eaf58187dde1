"""Which device follows which before a purchase, as a drawn graph (thesis Figure 6.5)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.report.drawing import BLUE, INK, ORANGE, PAPER, draw
from diptych.report.intent_content import (
    OTHER,
    PURCHASE,
    WEEK_DAYS,
    Discretion,
    Legend,
    Series,
    label,
    number,
    percent,
    signed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_GROUPS = 10
"""Groups that a figure shows; tables have more."""

CLASS_LEGEND = Legend(
    (
        (PURCHASE.name, PURCHASE.glyph, "purchase sessions"),
        (OTHER.name, OTHER.glyph, "other sessions"),
    )
)

_ROW = 0.42  # inches
_EDGES = 0.95  # inches above and below


def class_bars(
    name: str,
    title: str,
    values: Mapping[str, tuple[float | None, float | None]],
    texts: Mapping[str, tuple[str, str]],
    unit: str,
) -> str:
    """Two bars per group, purchase sessions above the others, as ``<svg>``."""
    largest = max((value for pair in values.values() for value in pair if value is not None), default=0.0)
    with draw(name, size=(4.8, _EDGES + _ROW * len(values))) as drawing:
        axes = drawing.axes
        for place, group in enumerate(values):
            for value, text, way, shift in zip(
                values[group], texts[group], (PURCHASE, OTHER), (-0.2, 0.2), strict=True
            ):
                if value is None:
                    continue
                axes.barh(
                    place + shift, value, 0.36, color=way.colour, alpha=0.9 if way is PURCHASE else 0.75
                )
                _behind(axes, value, place + shift, text)
        _finish(axes, list(values), title, unit)
        axes.set_xlim(0, 1.18 * largest or 1.0)
        drawing.summary = f"{title} ({unit}), purchase sessions and others: " + "; ".join(
            f"{label(group)} {' and '.join(_said(values[group], texts[group]))}" for group in values
        )
    return drawing.svg


def rate_figure(
    name: str, title: str, rates: Mapping[str, tuple[float, float, float]], overall: float | None
) -> str:
    """A dot per group with its interval; the rate of all as a dotted line; as ``<svg>``."""
    highest = max((high for _, _, high in rates.values()), default=0.0)
    with draw(name, size=(4.8, _EDGES + _ROW * len(rates))) as drawing:
        axes = drawing.axes
        for place, (rate, low, high) in enumerate(rates.values()):
            axes.errorbar(100 * rate, place, xerr=[[100 * max(0.0, rate - low)], [100 * max(0.0, high - rate)]],
                          color=INK, capsize=3, linewidth=1.1)  # fmt: skip
            axes.plot(100 * rate, place, marker="o", markersize=6, color=BLUE, zorder=3)
            _behind(axes, 100 * high, place, percent(rate))
        if overall is not None:
            axes.axvline(100 * overall, color=INK, linewidth=0.9, linestyle=":")
        _finish(axes, list(rates), title, "purchase sessions (% of the group's; dotted: of all)")
        axes.set_xlim(0, 118 * highest or 1.0)
        drawing.summary = f"{title} in per cent: " + "; ".join(
            f"{label(group)} {percent(rate)}" for group, (rate, _, _) in rates.items()
        )
    return drawing.svg


def standardised_figure(name: str, title: str, values: Mapping[str, float]) -> str:
    """Standardised rates as bars to either side of the groups' mean, as ``<svg>``."""
    furthest = max((abs(value) for value in values.values()), default=1.0) or 1.0
    with draw(name, size=(4.8, _EDGES + _ROW * len(values))) as drawing:
        axes = drawing.axes
        for place, value in enumerate(values.values()):
            axes.barh(place, value, 0.5, color=BLUE if value >= 0 else ORANGE, alpha=0.85)
            axes.annotate(signed(value), (value, place), xytext=(4 if value >= 0 else -4, 0),
                          textcoords="offset points", va="center", ha="left" if value >= 0 else "right",
                          fontsize=9.5)  # fmt: skip
        axes.axvline(0, color=INK, linewidth=0.9)
        _finish(axes, list(values), title, "standard deviations from the mean of the groups' rates")
        axes.set_xlim(-1.3 * furthest, 1.3 * furthest)
        drawing.summary = f"{title}: " + "; ".join(
            f"{label(group)} {signed(value)}" for group, value in values.items()
        )
    return drawing.svg


def _said(values: tuple[float | None, float | None], texts: tuple[str, str]) -> list[str]:
    """What is drawn; what is not is not said either."""
    return ["–" if value is None else text for value, text in zip(values, texts, strict=True)]


def _behind(axes: Axes, value: float, place: float, text: str) -> None:
    ground = {"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none"}
    axes.annotate(text, (value, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9,
                  bbox=ground)  # fmt: skip


def _finish(axes: Axes, groups: Sequence[str], title: str, unit: str) -> None:
    axes.set_yticks(range(len(groups)), [label(group, 16) for group in groups])
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.grid(True, axis="x")
    axes.set_title(title)
    axes.set_xlabel(unit, fontsize=9)


ALL = "all"
"""What rows of all devices together are called."""

MOST_PANELS = 9

_NEAR = 0.006  # of an axis: points of a line that are nearer than this are one
_CLASSES: tuple[tuple[bool, str, Series], ...] = (
    (True, "purchase", PURCHASE),
    (False, "no purchase", OTHER),
)

_QUANTILES = (("p50", 0.5), ("p90", 0.1))
"""And the share of sessions that lie beyond."""

Row = Mapping[str, Any]
Curve = tuple[list[float], list[float]]
"""Lengths, rising, and the share of sessions that are at least so long."""


def shown_devices(rows: Sequence[Row]) -> list[str]:
    """Devices of ``session-length`` by their number of sessions, all together first; as many as are drawn."""
    sessions: dict[str, int] = defaultdict(int)
    for row in rows:
        sessions[row["device"]] += row["sessions"]
    devices = sorted(sessions, key=lambda one: (one != ALL, -sessions[one], one))
    if len(devices) == 2 and ALL in devices:  # one device is all there is
        devices = [ALL]
    return devices[:MOST_PANELS]


def curve_of(rows: Sequence[Row], device: str, purchase: bool, discretion: Discretion) -> Curve:
    """One line, thinned; lengths of 0, which have no place on a log axis, are left out."""
    mine = sorted(
        (row["length"], row["share"])
        for row in rows
        if row["device"] == device
        and row["purchase"] == purchase
        and row["length"] >= 1
        and row["at_least"] >= discretion.least
        and row["share"] >= discretion.floor
    )
    if not mine:
        return [], []
    width = math.log(max(2.0, mine[-1][0] / mine[0][0]))
    height = math.log(max(2.0, mine[0][1] / mine[-1][1]))
    kept = [mine[0]]
    for point in mine[1:]:
        far = math.log(point[0] / kept[-1][0]) > _NEAR * width
        if far or math.log(kept[-1][1] / point[1]) > _NEAR * height or point == mine[-1]:
            kept.append(point)
    return [length for length, _ in kept], [share for _, share in kept]


def length_figures(rows: Sequence[Row], quantiles: Sequence[Row], discretion: Discretion) -> list[str]:
    """A ``<svg>`` per device on common log axes: the share of sessions that are at least so long.

    Dots are P50 and P90. Pale lines are all devices together.
    """
    devices = shown_devices(rows)
    curves = {
        (device, purchase): curve_of(rows, device, purchase, discretion)
        for device in dict.fromkeys([*devices, ALL])
        for purchase, _, _ in _CLASSES
    }
    longest = max((curve[0][-1] for curve in curves.values() if curve[0]), default=10)
    smallest = min((curve[1][-1] for curve in curves.values() if curve[0]), default=0.1)
    drawn = []
    for place, device in enumerate(devices):
        if not any(curves[device, purchase][0] for purchase, _, _ in _CLASSES):
            continue
        found = {row["purchase"]: row for row in quantiles if row["device"] == device}
        with draw(
            f"length-{place}", _intent_length_figures_said(device, found, discretion), size=(4.4, 3.0)
        ) as drawing:
            axes = drawing.axes
            for purchase, _, way in _CLASSES:
                if device != ALL:
                    axes.plot(*_from_one(curves[ALL, purchase]), color=way.colour, alpha=0.25, linewidth=1.0,
                              linestyle=way.dash, drawstyle="steps-pre")  # fmt: skip
                axes.plot(*_from_one(curves[device, purchase]), color=way.colour, linewidth=1.8,
                          linestyle=way.dash, drawstyle="steps-pre")  # fmt: skip
            _marks(axes, found, discretion)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlim(0.9, 2.0 * max(longest, 10))
            axes.set_ylim(0.7 * min(smallest, 0.1), 1.4)
            _plain_ticks(axes)
            axes.set_title("all devices" if device == ALL else label(device))
            axes.set(xlabel="actions", ylabel="sessions at least so long (%)")
        drawn.append(drawing.svg)
    return drawn


def _from_one(curve: Curve) -> Curve:
    """A line as it is drawn: what is at least as long as the shortest is at least as long as anything below."""
    lengths, shares = curve
    return ([0.9, *lengths], [shares[0], *shares]) if lengths else curve


def _marks(axes: Axes, found: Mapping[bool, Row], discretion: Discretion) -> None:
    """P50 and P90 of each class: the longer to the right above its line, the shorter to the left below."""
    for name, level in _QUANTILES:
        shown = {
            purchase: row
            for purchase, row in found.items()
            if not discretion.few_beyond(1 - level, row["sessions"])
        }
        axes.axhline(level, color=INK, linewidth=0.8, linestyle=(0, (1, 2)), alpha=0.6)
        axes.annotate(name.upper(), (1.0, level), xycoords=("axes fraction", "data"), xytext=(-2, 2),
                      textcoords="offset points", ha="right", va="bottom", fontsize=8.5, alpha=0.8)  # fmt: skip
        longer = max(shown, key=lambda one: (shown[one][name], one)) if len(shown) == 2 else True
        for purchase, _, way in _CLASSES:
            if purchase not in shown or shown[purchase][name] < 1:
                continue
            length, right = shown[purchase][name], purchase == longer
            axes.plot(length, level, marker=way.marker, markersize=5, color=way.colour, zorder=3)
            axes.annotate(
                f"{length:,}",
                (length, level),
                xytext=(6, 4) if right else (-5, -5),
                textcoords="offset points",
                ha="left" if right else "right",
                va="bottom" if right else "top",
                fontsize=9.5,
                color=way.colour,
                fontweight="bold",
            )


def _plain_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(base=10))
    axes.xaxis.set_minor_locator(LogLocator(base=10, subs=(2, 5)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}"))


def _intent_length_figures_said(device: str, found: Mapping[bool, Row], discretion: Discretion) -> str:
    parts = []
    for purchase, title, _ in _CLASSES:
        numbers = [
            f"{name.upper()} {number(found[purchase][name])}"
            for name, level in _QUANTILES
            if purchase in found and not discretion.few_beyond(1 - level, found[purchase]["sessions"])
        ]
        if numbers:
            parts.append(f"{title} {', '.join(numbers)}")
    whose = "all devices" if device == ALL else label(device)
    return f"Session length of {whose}, share of sessions at least so long: {'; '.join(parts) or 'few'}."


_INTENT_TIME_FIGURES_CLASSES = ((True, "purchase", PURCHASE), (False, "no purchase", OTHER))


def by_class(
    rows: Sequence[Row], key: str, places: int, purchase: bool, discretion: Discretion
) -> np.ndarray:
    """(places, 3) share, low and high in per cent; NaN for what is not there or not shown."""
    values = np.full((places, 3), np.nan)
    mine = [row for row in rows if row["purchase"] == purchase]
    if discretion.small(sum(row["sessions"] for row in mine)):
        return values
    for row in mine:
        if not discretion.small(row["sessions"]):
            ends = (None, None) if discretion.hide_rates else (row["low"], row["high"])
            values[row[key]] = [np.nan if one is None else 100 * one for one in (row["share"], *ends)]
    return values


def week_day_figure(rows: Sequence[Row], discretion: Discretion) -> str:
    """Shares of both classes by week day with intervals, beside a seventh, as ``<svg>``."""
    parts = []
    with draw("week-days", size=(4.8, 3.0)) as drawing:
        axes = drawing.axes
        for purchase, name, way in _INTENT_TIME_FIGURES_CLASSES:
            values = by_class(rows, "week_day", 7, purchase, discretion)
            if np.isnan(values[:, 0]).all():
                continue
            places = np.arange(7) + (-0.2 if purchase else 0.2)
            axes.bar(places, values[:, 0], 0.38, color=way.colour, alpha=0.9 if purchase else 0.75)
            seen = ~np.isnan(values).any(axis=1)
            axes.errorbar(places[seen], values[seen, 0], _whiskers(values[seen]), color=INK, capsize=2.5,
                          linewidth=1.1, linestyle="none")  # fmt: skip
            parts.append(f"{name} " + ", ".join(_named(WEEK_DAYS, values[:, 0])))
        axes.axhline(100 / 7, color=INK, linewidth=0.9, linestyle=":")
        axes.set_xticks(range(7), [day[:3] for day in WEEK_DAYS])
        axes.tick_params(axis="x", length=0)
        axes.set(title="Week day of the start", ylabel="% of the class's sessions")
        drawing.summary = f"Sessions by week day in per cent of their class: {'; '.join(parts)}."
    return drawing.svg


def hour_figure(rows: Sequence[Row], discretion: Discretion) -> str:
    """Shares of both classes by hour with intervals as bands, as ``<svg>``."""
    parts = []
    hours = np.arange(24)
    with draw("hours", size=(4.8, 3.0)) as drawing:
        axes = drawing.axes
        for purchase, name, way in _INTENT_TIME_FIGURES_CLASSES:
            values = by_class(rows, "hour", 24, purchase, discretion)
            if np.isnan(values[:, 0]).all():
                continue
            axes.fill_between(hours, values[:, 1], values[:, 2], color=way.colour, alpha=0.15, linewidth=0)
            axes.plot(hours, values[:, 0], color=way.colour, linestyle=way.dash, marker=way.marker,
                      markersize=3.2, linewidth=1.6)  # fmt: skip
            parts.append(f"{name} " + ", ".join(_named([f"{hour} h" for hour in hours], values[:, 0])))
        axes.axhline(100 / 24, color=INK, linewidth=0.9, linestyle=":")
        axes.set_xlim(-0.6, 23.6)
        axes.set_xticks(range(0, 24, 3), [str(hour) for hour in range(0, 24, 3)])
        axes.set_ylim(bottom=0)
        axes.set(title="Hour of the start", ylabel="% of the class's sessions")
        drawing.summary = f"Sessions by hour in per cent of their class: {'; '.join(parts)}."
    return drawing.svg


def _whiskers(values: np.ndarray) -> np.ndarray:
    """(2, n) how far intervals go to either side."""
    whiskers: np.ndarray = np.maximum(
        0.0, np.stack([values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]])
    )
    return whiskers


def _named(names: Sequence[str], values: np.ndarray) -> list[str]:
    return [
        f"{name} {percent(value / 100)}"
        for name, value in zip(names, values, strict=True)
        if not np.isnan(value)
    ]


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
    with draw("transitions", size=(5.4, 1.8 if flat else 3.9)) as drawing:
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
