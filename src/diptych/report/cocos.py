"""COCOS as a figure, a page and a picture: the table of counts and where the weights lie."""

from __future__ import annotations

import io
import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.analysis import CocosReport, WeightHistogram
from diptych.analysis.cocos_report import UNITS
from diptych.core.errors import DataError
from diptych.core.files import write_bytes
from diptych.report.drawing import BLUE, INK, ORANGE, draw
from diptych.report.page import DARK, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIRECTIONS = {"i2t": "image → text", "t2i": "text → image"}
_KINDS: tuple[tuple[str, str, str, Any], ...] = (
    ("negatives", "negatives", BLUE, "-"),
    ("within", "in-modality negatives", INK, (0, (2, 1))),
    ("positives", "positives", ORANGE, "-"),
)
_ROWS = (("counts", "candidates per query"), ("sums", "summed weight per query"))
_NOTHING = "No candidate has any weight in any batch: there is no distribution to draw."


def cocos_figure(report: CocosReport) -> str:
    """Weight distributions per direction as one ``<svg>`` element.

    Above, how many candidates of each weight a query has (the negatives right of ε are C^q); below,
    what they add up to.
    """
    limits = _limits(report)
    if limits is None:
        raise DataError("no candidate has any weight, so there is no distribution", "leave the figure out")
    with draw("cocos", _summary(report), size=(8.8, 5.2)) as drawing:
        drawing.axes.remove()
        _panels(drawing.figure, drawing.figure.add_gridspec(2, len(report.weights)), 0, report, limits)
    return drawing.svg


def render_cocos(report: CocosReport) -> str:
    """The text of one self-contained HTML page."""
    from markupsafe import Markup

    from diptych.report.page import templates

    return (
        templates()
        .get_template("cocos.html.j2")
        .render(
            protocol=report.protocol,
            rows=[(_parts(symbol), description, cells) for symbol, description, cells in report.table()],
            directions={name: words for name, words in _DIRECTIONS.items() if name in report.counts},
            notes=report.notes(),
            figure=Markup(cocos_figure(report)) if _limits(report) else _NOTHING,
            light=LIGHT,
            dark=DARK,
        )
    )


def write_cocos_page(report: CocosReport, path: Path | str) -> Path:
    """Write table, figure and protocol as one HTML file, whole or not at all."""
    write_bytes(path, render_cocos(report).encode("utf-8", "replace"))
    return Path(path)


def write_cocos_picture(report: CocosReport, path: Path | str, *, resolution: int = 150) -> Path:
    """Write the same as a PNG on white paper."""
    limits = _limits(report)
    said = [report.protocol.line(), *report.notes(), *([] if limits else [_NOTHING])]
    words = [line for text in said for line in textwrap.wrap(text, 130)]
    height = 0.25 * (len(report.table()) + 1.6 + 0.8 * len(words))
    drawn = io.BytesIO()
    with draw("cocos-picture", size=(9.6, height + (5.4 if limits else 0.4))) as drawing:
        figure = drawing.figure
        drawing.axes.remove()
        if limits is None:
            _table(figure.add_subplot(), report, words, 4 * height)
        else:
            grid = figure.add_gridspec(3, len(report.weights), height_ratios=[height, 2.5, 2.5])
            _table(figure.add_subplot(grid[0, :]), report, words, 4 * height)
            _panels(figure, grid, 1, report, limits)
        figure.savefig(drawn, format="png", dpi=resolution, facecolor=LIGHT["paper"])
    write_bytes(path, drawn.getvalue())
    return Path(path)


def _parts(symbol: str) -> tuple[str, str, str]:
    """``C^q active`` as letter, what is raised, and the rest."""
    letter, _, rest = symbol.partition("^")
    raised, space, words = rest.partition(" ")
    return letter, raised.replace("-", "−"), space + words


def _summary(report: CocosReport) -> str:
    parts = [
        f"{_DIRECTIONS[direction]} C^q {given['per_query'].show()}, C^0 {given['without_gradient'].show()}"
        for direction, given in report.counts.items()
    ]
    return f"Distribution of gradient weights of {report.protocol.objective}: {'; '.join(parts)}."


def _limits(report: CocosReport) -> tuple[float, float] | None:
    """From the lowest to the highest bin that holds anything, ε always among them; None when none does."""
    held = [histogram.counts[1:-1] for kinds in report.weights.values() for histogram in kinds.values()]
    filled = np.flatnonzero(np.sum(held, axis=0))
    if not len(filled):
        return None
    edges = WeightHistogram().edges
    low, high = float(edges[filled[0]]), float(edges[filled[-1] + 1])
    epsilon = report.protocol.epsilon
    if epsilon > 0:
        low, high = min(low, epsilon), max(high, epsilon)
    return low / 1.6, high * 1.6


def _panels(figure: Figure, grid: Any, first: int, report: CocosReport, limits: tuple[float, float]) -> None:
    """A column per direction: how many candidates have a weight, and below what they add up to."""
    for row, (what, label) in enumerate(_ROWS):
        shared: Axes | None = None
        for column, (direction, kinds) in enumerate(report.weights.items()):
            axes = figure.add_subplot(grid[first + row, column], facecolor="none", sharey=shared)
            shared = shared or axes
            _panel(axes, kinds, what, report.protocol.epsilon, limits)
            if row == 0:
                axes.set_title(_DIRECTIONS[direction])
                axes.set_title(_unseen(kinds["negatives"]), loc="right", fontsize=9, fontweight="normal")
            else:
                axes.set_xlabel(f"weight {UNITS[report.protocol.unit]}")
            if column == 0:
                axes.set_ylabel(label)
    handles, labels = figure.axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=len(labels))


def _panel(
    axes: Axes, kinds: dict[str, WeightHistogram], what: str, epsilon: float, limits: tuple[float, float]
) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter

    for name, words, colour, line in _KINDS:
        if name not in kinds or not kinds[name].candidates:
            continue
        values = np.asarray(getattr(kinds[name], what))[1:-1] / max(1, kinds[name].queries)
        edges = kinds[name].edges
        axes.stairs(values, edges, color=colour, linestyle=line, linewidth=1.6, label=words)
        if colour != INK:
            axes.stairs(values, edges, color=colour, fill=True, alpha=0.18)
    if epsilon > 0:
        axes.axvline(epsilon, color=INK, linestyle=(0, (4, 3)), linewidth=1.2, label=f"ε = {epsilon:g}")
    axes.set(xscale="log", xlim=limits)
    low, high = math.log10(limits[0]), math.log10(limits[1])
    step = max(1, math.ceil((high - low) / 7))
    powers = range(math.ceil(low), math.floor(high) + 1)
    axes.xaxis.set_major_locator(FixedLocator([10.0**power for power in powers if power % step == 0]))
    axes.xaxis.set_major_formatter(FuncFormatter(_power))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    if what == "counts":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(_power))
        axes.yaxis.set_minor_locator(FixedLocator([]))
    else:
        axes.set_ylim(bottom=0)


def _power(value: float, place: int) -> str:
    """10⁻³, and 0.1, 1, 10 as they are."""
    if 0.1 <= value <= 100:
        return f"{value:g}"
    return f"10{str(round(math.log10(value))).translate(_RAISED)}" if value > 0 else "0"


def _unseen(negatives: WeightHistogram) -> str:
    """Which share of the negatives has no place on a logarithmic scale, where it is worth saying."""
    below = int(negatives.counts[0])
    share = 100 * (negatives.zeros + below) / max(1, negatives.candidates)
    if share < 0.1:
        return ""
    return f"{share:.1f} % of negatives weigh {'< 10⁻⁸' if below else '0'}"


def _table(axes: Axes, report: CocosReport, words: list[str], lines: float) -> None:
    """The table of counts as text: symbol, description, one column per direction, and below ``words``."""
    axes.axis("off")
    axes.set(xlim=(0, 1), ylim=(lines, 0), title=f"COCOS of {report.protocol.objective}")
    columns = dict(zip(report.counts, (0.82, 1.0)[-len(report.counts) :], strict=True))
    for direction, place in columns.items():
        axes.text(place, 0.6, _DIRECTIONS[direction], ha="right", weight="bold")
    table = report.table()
    for row, (symbol, description, cells) in enumerate(table, 1):
        letter, raised, rest = _parts(symbol)
        axes.text(0.0, row + 0.6, letter, weight="bold")
        axes.text(0.019 if letter == "W" else 0.013, row + 0.35, raised, weight="bold", fontsize=7.5)
        axes.text(0.02, row + 0.6, rest)
        axes.text(0.13, row + 0.6, description, fontsize=9.5)
        for direction, cell in cells.items():
            axes.text(columns[direction], row + 0.6, cell, ha="right")
    for number, line in enumerate(words):
        axes.text(0.0, len(table) + 1.7 + 0.8 * number, line, fontsize=8, color=LIGHT["muted"])
