"""Figures of category-to-image retrieval: a measure by level of the tree, and how far off first products are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.report.drawing import BLUE, INK, ORANGE
from diptych.report.intent_page import Legend
from diptych.report.intent_series import panel, series

__all__ = ["bars_figure", "level_figure", "model_legend"]

Groups = Sequence[Mapping[str, Any]]


def model_legend(labels: Sequence[str]) -> Legend:
    """What the lines of :func:`level_figure` are."""
    return Legend([(series(place).name, series(place).glyph, label) for place, label in enumerate(labels)])


def level_figure(
    name: str,
    title: str,
    levels: Mapping[str, Groups],
    measure: str,
) -> str:
    """A line per model over the levels of the tree, as ``<svg>``.

    Args:
        name: unique on a page.
        title: of the figure.
        levels: per model's label its groups, as ``results.json`` has them.
        measure: which one is drawn, in per cent.
    """
    depths = sorted({int(one["group"]) for groups in levels.values() for one in groups})
    highest, said = 0.0, []
    with panel(name) as drawing:
        axes = drawing.axes
        for place, (label, groups) in enumerate(levels.items()):
            way = series(place)
            x = [int(one["group"]) for one in groups]
            y = [100 * float(one["values"][measure]["mean"]) for one in groups]
            highest = max([highest, *y])
            axes.plot(
                x, y, color=way.colour, marker=way.marker, markersize=5.5, linestyle=way.dash, linewidth=1.6
            )
            said.append(
                f"{label} "
                + ", ".join(f"{value:.1f} at level {depth}" for depth, value in zip(x, y, strict=True))
            )
        counts = {int(one["group"]): one["categories"] for groups in levels.values() for one in groups}
        axes.set_xticks(depths, [f"{depth}\n{counts[depth]:,.0f}" for depth in depths])
        axes.set_xlim(depths[0] - 0.3, depths[-1] + 0.3)
        axes.set_ylim(0, 1.1 * highest or 1.0)
        axes.set_title(title)
        axes.set_xlabel("level of the category, and how many ask", fontsize=9)
        axes.set_ylabel(f"{measure} (%)")
        drawing.summary = f"{title}: {measure} in per cent by level of the tree: {'; '.join(said)}."
    return drawing.svg


def bars_figure(
    name: str, title: str, counts: Mapping[int, int], xlabel: str, *, zero: bool = False, runs: int = 1
) -> str:
    """Bars of counts by whole numbers, as ``<svg>``; shares are written above.

    Args:
        name: unique on a page.
        title: of the figure.
        counts: per value, how many; none is an error of the caller.
        xlabel: of the axis.
        zero: whether values have a sign: below 0 and above have colours of their own, as in thesis Figure 7.2.
        runs: over how many trainings counts were summed; bars are the mean.
    """
    from matplotlib.ticker import MaxNLocator

    total = sum(counts.values())
    low, high = (-1, 1) if zero else (1, 3)
    values = list(range(min(low, *counts), max(high, *counts) + 1))
    with panel(name) as drawing:
        axes = drawing.axes
        for value in values:
            count = counts.get(value, 0)
            colour = BLUE if not zero or value < 0 else ORANGE if value > 0 else INK
            axes.bar(value, count / runs, 0.7, color=colour, alpha=0.88 if value or not zero else 0.55)
            if count:
                axes.annotate(
                    f"{100 * count / total:.0f} %" if 200 * count >= total else "<1 %",
                    (value, count / runs),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    fontsize=9 if len(values) < 10 else 7.5,
                )
        axes.set_xticks(values, [f"{value:+d}" if zero and value else str(value) for value in values])
        axes.set_xlim(values[0] - 0.7, values[-1] + 0.7)
        axes.set_ylim(0, 1.18 * max(counts.values()) / runs)
        axes.tick_params(axis="x", length=0)
        axes.set_title(title)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.set_xlabel(xlabel, fontsize=9)
        axes.set_ylabel("categories")
        shares = ", ".join(
            f"{100 * count / total:.0f} % at {value:+d}" for value, count in sorted(counts.items())
        )
        drawing.summary = f"{title}, {total:,} errors: {shares}."
    return drawing.svg
