"""The figure of an exploration: how near each axis alone comes to what was printed."""

from __future__ import annotations

from textwrap import wrap

from diptych.evaluation.variants import Exploration
from diptych.report.drawing import BLUE, INK, ORANGE, draw

_ROW = 0.36  # inches of a bar
_LINE = 0.17  # inches of every further line of a label
_LONG = 40  # characters of such a line


def distance_figure(found: Exploration) -> str:
    """Bars of the mean relative distance of the default, of the best explanation, and of every axis's best choice
    alone, as ``<svg>``."""
    bars = [("default protocol", found.as_given.mean_error, INK)]
    singles = [one.best for one in found.single_changes]
    best = found.explanations[0] if found.explanations else found.as_given
    if best.changes and best not in singles:
        singles.insert(0, best)
    bars += [(one.line(), one.mean_error, ORANGE if one.explains else BLUE) for one in singles]
    labels = ["\n".join(wrap(label, _LONG, break_long_words=False)) for label, _, _ in bars]
    further = sum(label.count("\n") for label in labels)
    with draw("distances", size=(8.8, 0.9 + _ROW * len(bars) + _LINE * further)) as drawing:
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
        axes.set_yticks(range(len(bars)), labels)
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
