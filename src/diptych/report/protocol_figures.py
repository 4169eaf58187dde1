"""The figure of an exploration: how near each axis alone comes to what was printed."""

from __future__ import annotations

from diptych.evaluation.variants import Exploration
from diptych.report.drawing import BLUE, INK, ORANGE, draw

__all__ = ["distance_figure"]

_ROW = 0.36  # inches of a bar
_LONG = 46  # characters of a label


def distance_figure(found: Exploration) -> str:
    """Bars of the mean relative distance of the default, of every axis's best choice alone, and of the
    simplest explanation, as ``<svg>``."""
    bars = [("default protocol", found.as_given.mean_error, INK)]
    bars += [
        (one.best.line(), one.best.mean_error, ORANGE if one.best.explains else BLUE)
        for one in found.single_changes
    ]
    told = {label for label, _, _ in bars}
    for one in found.explanations[:1]:
        if one.line() not in told and one.changes:
            bars.append((one.line(), one.mean_error, ORANGE))
    with draw("distances", size=(8.8, 0.9 + _ROW * len(bars))) as drawing:
        axes = drawing.axes
        for place, (_, error, colour) in enumerate(bars):
            axes.barh(place, 100 * error, 0.7, color=colour, alpha=0.85 if colour != INK else 0.4)
            axes.annotate(
                f"{100 * error:.1f} %",
                (100 * error, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9.5,
            )
        axes.axvline(100 * found.as_given.mean_error, color=INK, linewidth=0.8, linestyle=":")
        axes.set_yticks(range(len(bars)), [_short(label) for label, _, _ in bars])
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.set_xlim(0, 112 * max(max(error for _, error, _ in bars), found.tolerance))
        axes.set(xlabel="mean relative distance from what is printed (%)")
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        drawing.summary = "Mean relative distance in per cent: " + "; ".join(
            f"{label} {100 * error:.1f}" for label, error, _ in bars
        )
    return drawing.svg


def _short(label: str) -> str:
    return label if len(label) <= _LONG else f"{label[: _LONG - 1]}…"
