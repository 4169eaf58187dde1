"""Heat maps: cells of one colour, the stronger the more, with their numbers in them.

Neither the colour nor the paper is needed to read one: opacity is bounded, so that words stand out of every
cell on light and on dark paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from diptych.report.drawing import BLUE, ORANGE, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURE_WIDTH = 8.8  # inches

_STRONGEST = 0.6  # opacity
_BEND = 0.6  # below 1: what is small beside the greatest can still be told apart
_ROW = 0.27  # inches
_GAP = 0.95  # rows above a group, in which its name stands
_LEAST = 5.0  # where the scale of colours ends at least


def add_cell(
    axes: Axes, column: float, row: float, share: float, colour: str, text: str, **font: object
) -> None:
    """One cell.

    Args:
        share: in [0, 1]: how strong its colour is.
    """
    from matplotlib.patches import Rectangle

    ground = Rectangle(
        (column - 0.48, row - 0.46), 0.96, 0.92, facecolor=colour, alpha=_STRONGEST * share, linewidth=0
    )
    axes.add_patch(ground)
    axes.text(column, row, text, ha="center", va="center", **font)  # type: ignore[arg-type]


def heat_figure(
    name: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: np.ndarray,
    texts: Sequence[Sequence[str]],
    strong: np.ndarray,
    groups: Sequence[str],
    summary: str,
) -> str:
    """Rows in groups × columns, as ``<svg>``; above 0 orange, below blue, the strongest the greatest of all.

    Args:
        values: (rows, columns), NaN for none.
        strong: (rows, columns) booleans: cells whose text is bold.
    """
    greatest = max(_LEAST, float(np.nanmax(np.abs(values), initial=0.0)))
    places, at = [], 0.0
    titles = []
    for group, members in groupby(range(len(rows)), key=lambda row: groups[row]):
        at += _GAP
        titles.append((group, at - 0.9))
        for _ in members:
            places.append(at)
            at += 1
        at += 0.15
    height = 0.45 + _ROW * (at + 0.3)
    with draw(name, size=(FIGURE_WIDTH, height)) as drawing:
        axes = drawing.axes
        for row, place in enumerate(places):
            for column in range(len(columns)):
                value = float(values[row, column])
                add_cell(
                    axes,
                    column,
                    place,
                    0.0 if np.isnan(value) else min(1.0, abs(value) / greatest) ** _BEND,
                    BLUE if value < 0 else ORANGE,
                    texts[row][column],
                    fontsize=9,
                    fontweight="bold" if strong[row, column] else "normal",
                )
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_ylim(at - 0.3, -0.3)
        for group, place in titles:
            axes.annotate(
                group,
                (0, place),
                xycoords=("axes fraction", "data"),
                xytext=(-8, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=8.5,
                fontweight="bold",
                alpha=0.65,
            )
        axes.set_yticks(places, rows)
        axes.set_xticks(range(len(columns)), columns, fontsize=9.5)
        axes.xaxis.tick_top()
        bare(axes)
        drawing.summary = f"{summary}: " + "; ".join(
            f"{row} {', '.join(f'{column} {text}' for column, text in zip(columns, line, strict=True))}"
            for row, line in zip(rows, texts, strict=True)
        )
    return drawing.svg


def bare(axes: Axes) -> None:
    """Axes of a table: labels alone."""
    axes.grid(False)
    axes.tick_params(length=0)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)
