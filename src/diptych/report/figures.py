"""Figures: charts as SVG, or as PNG on white paper.

Words and axes are drawn in ``currentColor`` and data in ``var(--blue, …)``, so that one figure reads
on light and on dark paper and on its own.
"""

from __future__ import annotations

import io
import math
import re
import threading
import warnings
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

from diptych.core.chart import Chart, Series, short_number
from diptych.core.errors import MissingExtraError
from diptych.core.extras import require
from diptych.core.files import write_bytes
from diptych.report.style import LIGHT, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#0a0b0c"
"""A colour nothing else has; it becomes the colour of the words around the figure."""
PAPER = "#fdfefc"
"""A colour nothing else has; it becomes the paper behind the figure."""

_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "axes.titlesize": 11.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": INK,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "legend.handlelength": 1.6,
}
_rc_lock = threading.Lock()  # Matplotlib's settings belong to the process; a server draws in threads


def _to_svg(figure: Figure, name: str, summary: str) -> str:
    """Return the figure as an ``<svg>`` element that scales, is labelled and shares no id with another."""
    drawn = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(drawn, format="svg", metadata=nothing)
    text = drawn.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    label = escape(summary, {'"': "&quot;"})
    text = re.sub(r' (width|height)="[^"]*pt"', "", text, count=2)
    text = text.replace("<svg", f'<svg class="figure" role="img" aria-label="{label}"', 1)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r"font: ([^;\"]*?)(\d[\d.]*px)[^;\"]*", r"font: \1\2 system-ui, sans-serif", text)
    text = text.replace(INK, "currentColor")
    for colour in ("blue", "orange", "green", "purple", "olive"):
        text = text.replace(LIGHT[colour], f"var(--{colour}, {LIGHT[colour]})")
    return text.replace(PAPER, f"var(--paper, {LIGHT['paper']})")


_COLOURS = ("blue", "orange", "green", "purple", "olive", "ink")
_MARKERS = "os^Dvx"
_POINTS = 600  # of a line at most
_ROW = 0.42  # inches of a category that lies across
_MOST_WORDS = 12  # values of a series that its alternative text reads out


def svg(chart: Chart) -> str:
    """Return a chart as an ``<svg>`` element with its alternative text."""
    matplotlib = require("matplotlib", purpose="a figure")
    from matplotlib.figure import Figure

    name = f"chart-{zlib.crc32(repr(chart).encode('utf-8', 'replace')):08x}"  # ids must differ on a page
    with _rc_lock, matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        # The reader's browser draws letters that Matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = Figure(figsize=_size(chart), layout="constrained", facecolor="none")
        _draw_chart(chart, figure, figure.add_subplot(facecolor="none"))
        return _to_svg(figure, name, summary(chart))


def summary(chart: Chart) -> str:
    """Return the alternative text of a chart: every value of short series, the ends and extremes of long ones."""
    parts = [f"{one.name or chart.y} {words}" for one in chart.series if (words := _words(one, chart))]
    axis = f" ({chart.y})" if chart.y else ""
    return f"{chart.title}{axis}: {'; '.join(parts) or 'no values'}."


def _words(one: Series, chart: Chart) -> str:
    places = chart.categories if not one.x else [f"{value:,.6g}" for value in one.x]
    if one.mark == "level":
        at = one.x[0] if one.x else one.y[0]
        return "" if at is None else short_number(at)
    known = [
        (place, value)
        for place, value in zip(places, one.y, strict=False)
        if value is not None and not math.isnan(value)
    ]
    if len(known) <= _MOST_WORDS:
        return ", ".join(f"{place} {short_number(value)}" for place, value in known)
    values = [value for _, value in known]
    (first, start), (last, end) = known[0], known[-1]
    return (
        f"from {short_number(start)} at {first} to {short_number(end)} at {last},"
        f" between {short_number(min(values))} and {short_number(max(values))}"
    )


def figure(chart: Chart) -> str:
    """Return a chart as SVG; without Matplotlib the words for it, above the data that every chart unfolds."""
    try:
        return svg(chart)
    except MissingExtraError as error:
        return f"<p>{escape(summary(chart))} ({escape(str(error))})</p>"


def write_picture(path: Path | str, charts: Sequence[Chart], words: str = "", resolution: int = 150) -> Path:
    """Write charts below each other as a PNG on white paper, ``words`` above them."""
    matplotlib = require("matplotlib", purpose="a figure")
    from matplotlib.figure import Figure

    drawn = io.BytesIO()
    height = sum(_size(chart)[1] for chart in charts)
    with _rc_lock, matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.6, height + 0.8), layout="constrained", facecolor=LIGHT["paper"])
        figure.suptitle(words, fontsize=9, wrap=True)
        for place, chart in enumerate(charts, 1):
            _draw_chart(chart, figure, figure.add_subplot(len(charts), 1, place))
        figure.savefig(drawn, format="png", dpi=resolution)
    write_bytes(path, drawn.getvalue())
    return Path(path)


def _size(chart: Chart) -> tuple[float, float]:
    if chart.across:
        bars = sum(one.mark in ("bar", "point") for one in chart.series)
        rows = len(chart.categories) * (1.0 if chart.stacked or bars < 3 else bars / 2.5)
        return 4.8 if max(map(len, chart.categories), default=0) < 20 else 6.4, 1.1 + _ROW * rows
    return (4.8, 3.2) if len(chart.categories) < 12 else (8.8, 3.4)


def _draw_chart(chart: Chart, figure: Figure, axes: Axes) -> None:
    barred = [one for one in chart.series if one.mark == "bar"]
    width = 0.8 if chart.stacked else 0.8 / max(1, len(barred))
    base = np.zeros(len(chart.categories) or max((len(one.y) for one in chart.series), default=0))
    for place, one in enumerate(chart.series):
        colour = LIGHT.get(one.colour or _COLOURS[place % len(_COLOURS)], INK)
        colour = INK if colour == LIGHT["ink"] else colour
        look: dict[str, Any] = {
            "color": colour,
            "alpha": 0.35 if one.pale else 0.95,
            "label": one.name or None,
        }
        y = np.array([np.nan if value is None else value for value in one.y], dtype=np.float64)
        shift = 0.0
        if one.mark == "bar" and not chart.stacked:
            shift = (barred.index(one) - (len(barred) - 1) / 2) * width
        x = np.asarray(one.x, dtype=np.float64) if len(one.x) else np.arange(len(y)) + shift
        if one.mark == "level":
            upright = bool(len(one.x)) != chart.across
            (axes.axvline if upright else axes.axhline)(
                x[0] if len(one.x) else y[0],
                color=INK,
                linewidth=1.2,
                linestyle=(0, (4, 3)),
                label=one.name or None,
            )
        elif one.mark == "bar":
            _bars(chart, axes, x, y, base if chart.stacked else np.zeros(len(y)), width, look)
            base = base + np.nan_to_num(y) if chart.stacked else base
        elif one.mark == "dash":
            for left, value in zip(x, y, strict=True):
                axes.plot([left - 0.4, left + 0.4], [value] * 2, color=INK, linewidth=1.4,
                          linestyle=(0, (2, 1)), label=look.pop("label", None))  # fmt: skip
        else:
            if one.mark != "point":
                style = "--" if place >= len(_COLOURS) else "-"
                x_drawn, y_drawn = thin(x, y, _POINTS)
                few = len(x) <= 30 and one.mark == "line" and not one.pale
                axes.plot(x_drawn, y_drawn, linewidth=0.9 if one.pale else 1.7, linestyle=style,
                          marker=_MARKERS[place % 6] if few else None, markersize=4,
                          drawstyle="steps-pre" if one.mark == "step" else "default", **look)  # fmt: skip
            else:
                axes.plot(*((y, x) if chart.across else (x, y)), linestyle="none", marker=_MARKERS[place % 6],
                          markersize=6, zorder=3, **look)  # fmt: skip
        if len(one.low) and not one.quiet:
            _interval(chart, axes, one, x, y, colour)
        for left, value, text in zip(x, y, one.texts, strict=False):
            if not np.isnan(value):
                _text(chart, axes, one, left, value, text)
    _finish(chart, figure, axes)


def _bars(
    chart: Chart,
    axes: Axes,
    x: np.ndarray,
    y: np.ndarray,
    base: np.ndarray,
    width: float,
    look: dict[str, Any],
) -> None:
    step = float(np.diff(x).min()) if not chart.categories and len(x) > 1 and not chart.across else 1.0
    look = {**look, "left" if chart.across else "bottom": base}
    (axes.barh if chart.across else axes.bar)(x, y, width * step, **look)


def _interval(chart: Chart, axes: Axes, one: Series, x: np.ndarray, y: np.ndarray, colour: str) -> None:
    low, high = (
        np.array([np.nan if end is None else end for end in ends], dtype=np.float64)
        for ends in (one.low, one.high)
    )
    if one.mark in ("line", "step"):
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        return
    ends = np.maximum(0.0, np.stack([y - low, high - y]))
    whiskers: dict[str, Any] = {"color": INK, "capsize": 2.5, "linewidth": 1.1, "linestyle": "none"}
    whiskers["xerr" if chart.across else "yerr"] = ends
    axes.errorbar(*((y, x) if chart.across else (x, y)), **whiskers)


def _text(chart: Chart, axes: Axes, one: Series, x: float, y: float, text: str) -> None:
    high = y
    if len(one.high):
        found = one.high[list(one.x).index(x) if len(one.x) else round(x)]
        high = y if found is None else max(y, found)
    if chart.across:
        place, shift, align = (
            (high if y >= 0 else y, x),
            (4 if y >= 0 else -4, 0),
            "left" if y >= 0 else "right",
        )
        how = {"ha": align, "va": "center"}
    else:
        place, shift, how = (x, high), (0, 3), {"ha": "center", "va": "bottom"}
    ground = {"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none"}
    axes.annotate(text, place, shift, textcoords="offset points", fontsize=9, bbox=ground, **how)  # type: ignore[arg-type]


def _finish(chart: Chart, figure: Figure, axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    if chart.diagonal:
        axes.axline((0, 0), slope=1, color=INK, linewidth=0.9, linestyle=":")
    for letter, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if letter in chart.log:
            (axes.set_xscale if letter == "x" else axes.set_yscale)("log")
            low, high = axis.get_view_interval()
            subs = (1,) if high > 1000 * low else (1, 2, 5)
            axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=8 if len(subs) == 1 else 12))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
            axis.set_minor_formatter(NullFormatter())
    names = [label(name, 36 if chart.across else 18) for name in chart.categories]
    if chart.across:
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        axes.margins(x=0.18)
        axes.axvline(0, color=INK, linewidth=0.9)
    elif names:
        long = len(names) > 6 and max(map(len, names)) > 6
        axes.set_xticks(
            range(len(names)), names, rotation=45 if long else 0, ha="right" if long else "center"
        )
        axes.tick_params(axis="x", length=0)
        axes.margins(y=0.15)
    elif "x" not in chart.log and all(float(x).is_integer() for one in chart.series for x in one.x):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
    if not chart.across and "y" not in chart.log:
        low = min((v for one in chart.series for v in (*one.y, *one.low) if v is not None), default=0.0)
        if any(one.mark == "bar" for one in chart.series) and low >= 0:
            axes.set_ylim(bottom=0)
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        columns = int(_size(chart)[0] * 11) // (max(map(len, names)) + 6)
        figure.legend(handles, names, loc="outside lower left", ncols=min(3, max(1, columns)))


def thin(x: np.ndarray, y: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most about ``limit`` points of a curve: of each stretch its lowest and its highest, in order.

    A spike one step wide stays visible, which taking every k-th point would lose.
    """
    x, y = np.asarray(x), np.asarray(y)
    if len(x) <= limit:
        return x, y
    kept = {0, len(y) - 1}
    for start, stop in pairwise(np.linspace(0, len(y), limit // 2, dtype=np.int64)):
        kept.update((int(start + np.argmin(y[start:stop])), int(start + np.argmax(y[start:stop]))))
    rows = np.array(sorted(kept))
    return x[rows], y[rows]
