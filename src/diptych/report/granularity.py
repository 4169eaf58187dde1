"""The granularity of one collection, or of two side by side, as a page: numbers, distributions, captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.analysis.granularity import Effect, FeatureSummary, Granularity, GranularityComparison
from diptych.core.errors import UsageError
from diptych.core.files import write_bytes
from diptych.report.drawing import BLUE, ORANGE, draw
from diptych.report.page import DARK, LIGHT


def cell(value: float | None, decimals: int, sign: bool = False) -> str:
    """A number as tables print it; a dash for none."""
    if value is None:
        return "–"
    # Rounded first: what is as good as nothing is +0.00, not −0.00.
    return f"{round(value, decimals) + 0.0:{'+' if sign else ''}.{decimals}f}"


def interval_text(low: float | None, high: float | None, decimals: int, sign: bool = False) -> str:
    """An interval as tables print it; nothing for none."""
    if low is None or high is None:
        return ""
    return f"[{cell(low, decimals, sign)}, {cell(high, decimals, sign)}]"


def difference_cells(effect: Effect | None, decimals: int, scale: float = 1.0) -> tuple[str, str]:
    """A difference or effect size with its sign, and its interval; nothing for one that was not made."""
    if effect is None or effect.value is None:
        return "", ""
    low, high = (None if end is None else scale * end for end in (effect.low, effect.high))
    return cell(scale * effect.value, decimals, True), interval_text(low, high, decimals, True)


def render_granularity(
    measured: Sequence[Granularity], comparison: GranularityComparison | None = None
) -> str:
    """The text of one self-contained HTML page."""
    from markupsafe import Markup

    from diptych.report.page import templates

    if len(measured) not in (1, 2):
        raise UsageError(f"a page of {len(measured)} collections", "give one or two")
    names = [one.name for one in measured]
    return (
        templates()
        .get_template("granularity.html.j2")
        .render(
            names=names,
            measured=measured,
            features=measured[0].features,
            comparison=comparison,
            figure=Markup(distribution_figure(measured)),
            skipped=[line for one in measured for line in skipped_lines(one)],
            cell=cell,
            interval=interval_text,
            differences=difference_cells,
            light=LIGHT,
            dark=DARK,
        )
    )


def skipped_lines(measured: Granularity) -> list[str]:
    """Which captions have no value, feature by feature, and why."""
    return [f"{measured.name}, {one.name}: {_why(one)}" for one in measured.features if one.n_skipped]


def _why(feature: FeatureSummary) -> str:
    reasons = "; ".join(f"{reason} {count:,}" for reason, count in feature.skipped.items())
    have = "caption has" if feature.n_skipped == 1 else "captions have"
    return f"{feature.n_skipped:,} {have} no value ({reasons})"


def write_granularity_page(
    path: Path | str, measured: Sequence[Granularity], comparison: GranularityComparison | None = None
) -> Path:
    """Write the page as one HTML file, whole or not at all."""
    write_bytes(path, render_granularity(measured, comparison).encode("utf-8", "replace"))
    return Path(path)


_COLUMNS = 2
_PANEL = (4.4, 1.75)  # inches
_MOST_BINS = 40
_TAIL = 99.5  # per cent of captions that a panel shows one by one; its last bin has the rest
_COLOURS = ((BLUE, "-"), (ORANGE, "-"))


@dataclass(frozen=True)
class Bins:
    """Equal bins of one feature."""

    edges: np.ndarray
    whole: bool
    cut: bool


def bins_of(columns: Sequence[np.ndarray]) -> Bins:
    """Bins that suit values of all collections."""
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
