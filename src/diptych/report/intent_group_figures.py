"""Groups of sessions, channels or devices, as horizontal bars and as rates with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from diptych.report.drawing import BLUE, INK, ORANGE
from diptych.report.intent_discretion import percent, signed
from diptych.report.intent_page import Legend
from diptych.report.intent_series import OTHER, PAPER, PURCHASE, label, panel

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
    with panel(name, size=(4.8, _EDGES + _ROW * len(values))) as drawing:
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
    """A dot per group with its interval; the rate of all as a dotted line; as ``<svg>``.

    Args:
        rates: by group: rate, low and high, in [0, 1].
    """
    highest = max((high for _, _, high in rates.values()), default=0.0)
    with panel(name, size=(4.8, _EDGES + _ROW * len(rates))) as drawing:
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
    with panel(name, size=(4.8, _EDGES + _ROW * len(values))) as drawing:
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
