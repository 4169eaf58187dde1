"""How long sessions are: a panel per device, a line per class, as thesis Figure 6.2 in parts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diptych.report.drawing import INK
from diptych.report.intent_discretion import Discretion, number
from diptych.report.intent_series import OTHER, PURCHASE, Series, label, panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        with panel(f"length-{place}", _said(device, found, discretion), size=(4.4, 3.0)) as drawing:
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


def _said(device: str, found: Mapping[bool, Row], discretion: Discretion) -> str:
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
