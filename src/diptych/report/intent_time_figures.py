"""When sessions start: week days as bars (thesis Figure 6.3) and hours as lines (Figure 6.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.report.drawing import INK
from diptych.report.intent_discretion import WEEK_DAYS, Discretion, percent
from diptych.report.intent_series import OTHER, PURCHASE, panel

_CLASSES = ((True, "purchase", PURCHASE), (False, "no purchase", OTHER))

Row = Mapping[str, Any]


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
    with panel("week-days", size=(4.8, 3.0)) as drawing:
        axes = drawing.axes
        for purchase, name, way in _CLASSES:
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
    with panel("hours", size=(4.8, 3.0)) as drawing:
        axes = drawing.axes
        for purchase, name, way in _CLASSES:
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
