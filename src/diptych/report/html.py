"""The report: one HTML file that holds everything it shows and fetches nothing.

Captions, names and recipes are other people's text: the template escapes all of it, and the page
forbids scripts and foreign addresses to itself besides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.context import track
from diptych.core.errors import DataError
from diptych.core.files import write_bytes
from diptych.core.table import Cell, Table
from diptych.evaluation import Score
from diptych.metrics import GainMeasure, Measure, measure
from diptych.report.content import Curves, ReportContent, Retrieval, Retrieved
from diptych.report.drawing import BLUE, INK, ORANGE, draw
from diptych.report.page import DARK, LIGHT, judgement, shorten, templates
from diptych.report.pictures import PictureSource, Thumbnail, Thumbnails

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CAPTION_LIMIT = 400
"""Characters of a caption that a page shows; a longer one is cut and its length stated."""

THUMBNAIL_SIDE = 320
"""Longest side of a picture on the page, in pixels."""

_MARKS = {"right": "✓", "wrong": "✗", "unknown": "·"}


def write_report(content: ReportContent, path: Path | str, *, thumbnail_side: int = THUMBNAIL_SIDE) -> Path:
    """Write ``content`` as one self-contained HTML file, whole or not at all."""
    page = render_report(content, thumbnail_side=thumbnail_side)
    # a lone surrogate in a file name or caption cannot be UTF-8: it becomes "?"
    write_bytes(path, page.encode("utf-8", "replace"))
    return Path(path)


def render_report(content: ReportContent, *, thumbnail_side: int = THUMBNAIL_SIDE) -> str:
    """``content`` as the text of one HTML page.

    Pictures that cannot be read are shown as labelled placeholders and counted in the notes.
    """
    from markupsafe import Markup

    thumbnails = Thumbnails(thumbnail_side)
    groups = [
        _group(f"{name} {direction}", retrievals, thumbnails)
        for name, all_of_them in (("Best", content.best_retrievals), ("Worst", content.worst_retrievals))
        for direction, wanted in (("text → image", True), ("image → text", False))
        if (retrievals := [one for one in all_of_them if one.is_text_to_image == wanted])
    ]
    picture_note = thumbnails.note()
    return (
        templates()
        .get_template("run.html.j2")
        .render(
            content=content,
            light=LIGHT,
            dark=DARK,
            table=Markup(results_table(content.scores).html()) if content.scores else "",
            recall_figure=Markup(recall_figure(content.scores)) if charted(content.scores) else "",
            curve_figures=_curve_figures(content.curves),
            groups=groups,
            notes=[*content.notes, picture_note] if picture_note else list(content.notes),
        )
    )


DIRECTIONS = {"i2t": "image → text", "t2i": "text → image"}
CHARTED = ("R@1", "R@5", "R@10")


def results_table(scores: Mapping[str, Mapping[str, Score]]) -> Table:
    """Return the measures of an evaluation with their intervals and chance; shares in per cent."""

    def cells(score: Score | None, factor: float, decimals: int) -> list[Cell]:
        if score is None:
            return [Cell("–"), Cell("–")]
        interval = "" if score.low is None else f"{factor * score.low:,.{decimals}f}–"
        interval += "" if score.high is None else f"{factor * score.high:,.{decimals}f}"
        value, chance = factor * score.value, factor * score.chance
        return [
            Cell(f"{value:,.{decimals}f}", interval, value=value),
            Cell(f"{chance:,.{decimals}f}", value=chance),
        ]

    rows, described = [], []
    for name in dict.fromkeys(name for given in scores.values() for name in given):
        declared = measure(name)
        share = isinstance(declared, Measure) and declared.kind == "share"
        shown = (100.0 if share else 1.0, 3 if isinstance(declared, GainMeasure) else 1)
        described.append(f"{name}: {declared.description}")
        both = scores.get("both", {}).get(name)
        head = Cell(f"{name} %" if share else name, "" if both is None else "both directions")
        each = [scores.get(direction, {}).get(name) for direction in DIRECTIONS]
        apart = [cell for score in each for cell in cells(score, *shown)]
        rows.append([head, *(apart if both is None else [*cells(both, *shown), Cell(""), Cell("")])])
    columns = [column for words in DIRECTIONS.values() for column in (words.capitalize(), "Chance")]
    intervals = any(score.low is not None for given in scores.values() for score in given.values())
    caption = "Test scores" + (", below them 95 % intervals" if intervals else "")
    return Table(caption, ("Measure", *columns), rows, after="; ".join(described))


def charted(scores: Mapping[str, Mapping[str, Score]]) -> list[str]:
    """Return the measures that are drawn as bars."""
    return [name for name in CHARTED if any(name in scores.get(direction, {}) for direction in DIRECTIONS)]


def _curve_figures(curves: Curves | None) -> list[Any]:
    from markupsafe import Markup

    if curves is None:
        return []
    drawn = []
    if len(curves.loss):
        drawn.append(loss_figure(curves))
    if len(curves.validation_rsum):
        drawn.append(validation_figure(curves))
    if len(curves.learning_rate):
        drawn.append(learning_rate_figure(curves))
    return [Markup(figure) for figure in drawn]


def _group(title: str, retrievals: Sequence[Retrieval], thumbnails: Thumbnails) -> dict[str, Any]:
    shown = [_retrieval(one, thumbnails) for one in track(retrievals, title, unit="queries")]
    return {"title": title, "retrievals": shown, "is_text_to_image": retrievals[0].is_text_to_image}


def _retrieval(one: Retrieval, thumbnails: Thumbnails) -> dict[str, Any]:
    query = one.query
    return {
        "name": shorten(query.name, CAPTION_LIMIT),
        "caption": None if query.caption is None else shorten(query.caption, CAPTION_LIMIT),
        "picture": None if query.picture is None else _picture(query.picture, query.name, thumbnails),
        "right_rank": one.right_rank,
        "items": [_item(item, place, thumbnails) for place, item in enumerate(one.retrieved, 1)],
        "expected": None if one.expected is None else _item(one.expected, one.right_rank, thumbnails),
    }


def _item(item: Retrieved, place: int | None, thumbnails: Thumbnails) -> dict[str, Any]:
    state = judgement(item.is_right)
    return {
        "name": shorten(item.name, CAPTION_LIMIT),
        "rank": item.rank if item.rank is not None else place,
        "score": f"{item.score:.3f}",
        "state": state,
        "mark": _MARKS[state],
        "caption": shorten(item.caption, CAPTION_LIMIT),
        "picture": None if item.picture is None else _picture(item.picture, item.name, thumbnails),
    }


def _picture(source: PictureSource, name: str, thumbnails: Thumbnails) -> dict[str, Thumbnail | None]:
    """What the template draws: a thumbnail, or ``None`` inside for a placeholder."""
    return {"thumbnail": thumbnails.make(source, name)}


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """The mean of each value and its neighbours, ``window`` of them in all, centred.

    At the ends it is the mean of the neighbours there are.

    Args:
        values: (n,).

    Returns:
        (n,) float64.
    """
    values = np.asarray(values, dtype=np.float64)
    half = window // 2
    rows = np.arange(len(values))
    low, high = np.maximum(rows - half, 0), np.minimum(rows + half + 1, len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    result: np.ndarray = (sums[high] - sums[low]) / (high - low)
    return result


def thin(x: np.ndarray, y: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """At most about ``limit`` points of a curve: of each stretch its lowest and its highest, in order.

    A spike one step wide stays visible, which taking every k-th point would lose.

    Args:
        x: (n,) positions, rising.
        y: (n,) values.
    """
    x, y = np.asarray(x), np.asarray(y)
    if len(x) <= limit:
        return x, y
    edges = np.linspace(0, len(y), limit // 2, dtype=np.int64)
    kept = {0, len(y) - 1}
    for start, stop in pairwise(edges):
        kept.add(int(start + np.argmin(y[start:stop])))
        kept.add(int(start + np.argmax(y[start:stop])))
    rows = np.array(sorted(kept))
    return x[rows], y[rows]


_POINTS = 600
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def smoothing_window(n: int) -> int:
    """Over how many of ``n`` logged losses the smoothed line is a mean: about a thirtieth, odd."""
    return max(1, n // 30) // 2 * 2 + 1


def loss_figure(curves: Curves) -> str:
    """Training loss per step, raw and as a centred running mean, as an ``<svg>`` element."""
    x, raw = _logged("loss", curves.steps, curves.loss)
    window = smoothing_window(len(raw))
    smooth = running_mean(raw, window)
    summary = (
        f"Training loss per step: from {smooth[0]:.3g} at step {x[0]:,}"
        f" to {smooth[-1]:.3g} at step {x[-1]:,}."
    )
    with draw("loss", summary) as drawing:
        axes = drawing.axes
        if window > 1:
            axes.plot(*thin(x, raw, _POINTS), color=BLUE, alpha=0.35, linewidth=0.8, label="as logged")
        label = f"mean of {window}" if window > 1 else "as logged"
        axes.plot(*thin(x, smooth, _POINTS), color=BLUE, linewidth=1.8, label=label, **_dot(len(x)))
        axes.set(title="Training loss", xlabel="step", ylabel="loss")
        _whole_numbers(axes)
        axes.legend(loc="upper right")
    return drawing.svg


def validation_figure(curves: Curves) -> str:
    """Validation recall sum per epoch, the best epoch marked, chance as a dashed line."""
    x, y = _logged("validation rsum", curves.epochs, curves.validation_rsum)
    chance = curves.chance_rsum
    best = int(np.argmax(y)) if curves.best_epoch is None else list(curves.epochs).index(curves.best_epoch)
    summary = f"Validation rsum per epoch: best {y[best]:.1f} after epoch {x[best]:g}, last {y[-1]:.1f}" + (
        f", chance {chance:.1f}." if chance is not None else "."
    )
    with draw("validation", summary) as drawing:
        axes = drawing.axes
        axes.plot(x, y, color=BLUE, linewidth=1.8, marker="o", markersize=3.5, label="validation")
        axes.plot(
            x[best],
            y[best],
            linestyle="none",
            marker="D",
            markersize=8,
            markerfacecolor="none",
            markeredgecolor=ORANGE,
            markeredgewidth=2,
            label=f"best: {y[best]:.1f}, epoch {x[best]:g}",
        )
        if chance is not None:
            axes.axhline(
                chance, color=INK, linestyle=(0, (4, 3)), linewidth=1.2, label=f"chance: {chance:.1f}"
            )
        axes.set(title="Validation rsum", xlabel="epoch", ylabel="rsum (sum of R@k in %)")
        axes.set_ylim(0, max(float(y.max()), chance or 0.0, 1.0) * 1.12)
        _whole_numbers(axes)
        axes.legend(loc="best")
    return drawing.svg


def learning_rate_figure(curves: Curves) -> str:
    """Learning rate per step, in the power of ten of its highest."""
    x, y = _logged("learning rate", curves.steps, curves.learning_rate)
    summary = f"Learning rate per step: highest {y.max():.3g}, last {y[-1]:.3g}."
    with draw("rate", summary) as drawing:
        axes = drawing.axes
        power = math.floor(math.log10(y.max())) if y.max() > 0 else 0
        axes.plot(*thin(x, y / 10.0**power, _POINTS), color=BLUE, linewidth=1.8, **_dot(len(x)))
        unit = f" (× 10{str(power).translate(_RAISED)})" if power else ""
        axes.set(title="Learning rate", xlabel="step", ylabel=f"learning rate{unit}")
        axes.set_ylim(0, float(y.max()) / 10.0**power * 1.12 or 1.0)
        _whole_numbers(axes)
    return drawing.svg


def recall_figure(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """Bars of both directions with their 95 % intervals, chance as a line across each bar."""
    names = charted(scores)
    parts, highest = [], 1.0
    with draw("recall", size=(4.8, 3.4)) as drawing:
        axes = drawing.axes
        chance_label: str | None = "chance"
        for (direction, words), colour, shift in zip(
            DIRECTIONS.items(), (BLUE, ORANGE), (-0.21, 0.21), strict=True
        ):
            given = scores.get(direction, {})
            bars = [(place + shift, name, given[name]) for place, name in enumerate(names) if name in given]
            if not bars:
                continue
            heights = [100 * score.value for _, _, score in bars]
            parts += [
                f"{name} {words} {value:.1f}" for (_, name, _), value in zip(bars, heights, strict=True)
            ]
            axes.bar([place for place, *_ in bars], heights, 0.38, color=colour, label=words, alpha=0.9)
            for (middle, _, score), value in zip(bars, heights, strict=True):
                top, chance = max(value, 100 * score.chance), 100 * score.chance
                if score.low is not None and score.high is not None:
                    error = [[max(0.0, value - 100 * score.low)], [max(0.0, 100 * score.high - value)]]
                    axes.errorbar(middle, value, error, color=INK, capsize=3, linewidth=1.2)
                    top = max(top, 100 * score.high)
                dashed: Any = {
                    "color": INK,
                    "linewidth": 1.6,
                    "linestyle": (0, (2, 1)),
                    "label": chance_label,
                }
                axes.plot([middle - 0.19, middle + 0.19], [chance] * 2, **dashed)
                chance_label = None
                axes.annotate(
                    f"{value:.1f}", (middle, top), (0, 3), textcoords="offset points", ha="center", fontsize=9
                )
                highest = max(highest, top)
        axes.set(title="Recall against chance", ylabel="recall (% of queries)")
        axes.set_xticks(range(len(names)), names)
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.set_ylim(0, highest * 1.15)
        drawing.figure.legend(loc="outside lower left", ncols=3)
        drawing.summary = f"Bars against chance, in percent: {'; '.join(parts)}."
    return drawing.svg


def _logged(what: str, x: Sequence[float], y: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    if not len(y):
        raise DataError(f"no {what} was logged, so there is no curve of it", "leave the figure out")
    return np.asarray(x), np.asarray(y, dtype=np.float64)


def _dot(n: int) -> dict[str, Any]:
    """A single point makes no line: mark it."""
    return {"marker": "o"} if n == 1 else {}


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
