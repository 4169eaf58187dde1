"""One figure as SVG text: Matplotlib's Figure without pyplot, letters as letters, colours from the page.

Words and axes are drawn in ``currentColor`` and data in ``var(--blue, …)``, so that one figure reads
on light and on dark paper and on its own.
"""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from diptych.report.page import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE = LIGHT["blue"], LIGHT["orange"]
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


@dataclass
class Drawing:
    """One figure being drawn; ``svg`` is there when its block has ended."""

    figure: Figure
    axes: Axes
    summary: str
    svg: str = ""


@contextmanager
def draw(name: str, summary: str = "", size: tuple[float, float] = (4.4, 2.9)) -> Iterator[Drawing]:
    """Draw inside the block on ``axes``; afterwards the result's ``svg`` is the figure.

    Letters that Matplotlib's font lacks are no matter: the reader's browser draws them.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with _rc_lock, matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = Figure(figsize=size, layout="constrained", facecolor="none")
        drawing = Drawing(figure, figure.add_subplot(facecolor="none"), summary)
        yield drawing
        drawing.svg = _to_svg(figure, name, drawing.summary)


def _to_svg(figure: Figure, name: str, summary: str) -> str:
    """The figure as an ``<svg>`` element that scales, is labelled and shares no id with another."""
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
