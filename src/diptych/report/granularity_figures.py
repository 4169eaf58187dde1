"""How the features of captions are distributed: a panel per feature, a line per collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.analysis.granularity import Granularity
from diptych.report.drawing import BLUE, ORANGE, draw

_COLUMNS = 2
_PANEL = (4.4, 1.75)  # inches
_MOST_BINS = 40
_TAIL = 99.5  # per cent of captions that a panel shows one by one; its last bin has the rest
_COLOURS = ((BLUE, "-"), (ORANGE, "-"))


@dataclass(frozen=True)
class Bins:
    """Equal bins of one feature.

    Attributes:
        edges: (bins + 1,) rising; the last bin holds everything above its lower edge.
        whole: whether values are whole numbers, each in the middle of a bin.
        cut: whether values lie above the last edge.
    """

    edges: np.ndarray
    whole: bool
    cut: bool


def bins_of(columns: Sequence[np.ndarray]) -> Bins:
    """Bins that suit values of all collections.

    Args:
        columns: per collection (captions,) values; NaN is left out.
    """
    values = np.concatenate([np.asarray(column)[~np.isnan(column)] for column in columns])
    if not len(values):
        return Bins(np.array([-0.5, 0.5]), True, False)
    low, high, top = float(values.min()), float(np.percentile(values, _TAIL)), float(values.max())
    whole = bool(np.all(values == np.floor(values)))
    if whole:
        high = float(np.ceil(high))
        width = max(1.0, np.ceil((high - low + 1) / _MOST_BINS))
        edges = np.arange(low - 0.5, high + 0.5 + width, width)
    else:
        # Values that are all but equal still need edges that floats can tell apart.
        edges = np.linspace(low, max(high, low + 1e-6 * max(1.0, abs(low))), _MOST_BINS + 1)
    return Bins(edges, whole, bool(top > edges[-1]))


def shares(values: np.ndarray, bins: Bins) -> np.ndarray:
    """(bins,) the share of captions in each bin, the last with all above; of none, zeros."""
    known = np.asarray(values)[~np.isnan(values)]
    counts, _ = np.histogram(np.minimum(known, bins.edges[-1]), bins.edges)
    return counts / max(1, len(known))


def distribution_figure(measured: Sequence[Granularity]) -> str:
    """A panel per feature with the share of captions per value, as ``<svg>``."""
    from matplotlib.ticker import MaxNLocator

    features = measured[0].features
    rows = -(-len(features) // _COLUMNS)
    with draw("granularity", size=(_COLUMNS * _PANEL[0], rows * _PANEL[1] + 0.35)) as drawing:
        drawing.axes.remove()
        grid = drawing.figure.add_gridspec(rows, _COLUMNS)
        handles: list[Any] = []
        for number, feature in enumerate(features):
            axes = drawing.figure.add_subplot(grid[number // _COLUMNS, number % _COLUMNS], facecolor="none")
            columns = [one.column(feature.name) for one in measured]
            bins = bins_of(columns)
            drawn = []
            for column, (colour, style) in zip(columns, _COLOURS, strict=False):
                stairs = axes.stairs(
                    100 * shares(column, bins), bins.edges, color=colour, linestyle=style, linewidth=1.6
                )
                axes.stairs(100 * shares(column, bins), bins.edges, color=colour, alpha=0.15, fill=True)
                drawn.append(stairs)
            handles = handles or drawn
            title = f"{feature.name} ({feature.unit}{', last: and more' if bins.cut else ''})"
            axes.set_title(title, fontsize=9.5)
            axes.set_ylim(bottom=0)
            if bins.whole:
                axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
            axes.tick_params(labelsize=8.5)
            axes.set_ylabel("% of captions" if number % _COLUMNS == 0 else "", fontsize=8.5)
        drawing.figure.legend(
            handles, [one.name for one in measured], loc="outside lower left", ncols=len(measured)
        )
        drawing.summary = "Distributions over captions. Means: " + "; ".join(
            f"{feature.name} {', '.join(_mean(one, feature.name) for one in measured)}"
            for feature in features
        )
    return drawing.svg


def _mean(measured: Granularity, name: str) -> str:
    mean = measured.feature(name).mean
    return f"{measured.name} {'none' if mean is None else f'{mean:.2f}'}"
