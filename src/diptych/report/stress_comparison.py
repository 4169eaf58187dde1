"""Models side by side under stress as a page: verdicts, heat maps of perturbations by models, tables, protocol."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.analysis.perturbations import GROUPS
from diptych.core.files import write_bytes
from diptych.evaluation.stress import ComparedRow, StressComparison, summarise_comparison
from diptych.evaluation.stress.summary_text import is_blind_to, left_out_text, shown, shown_lost, verdict_of
from diptych.report.drawing import BLUE, ORANGE, draw
from diptych.report.page import DARK, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from diptych.evaluation.drops import DropDifference


FIGURE_WIDTH = 8.8  # inches

_STRONGEST = 0.6  # opacity
_BEND = 0.6  # below 1: what is small beside the greatest can still be told apart
_ROW = 0.27  # inches
_GAP = 0.95  # rows above a group, in which its name stands
_LEAST = 5.0  # where the scale of colours ends at least


def add_cell(
    axes: Axes, column: float, row: float, share: float, colour: str, text: str, **font: object
) -> None:
    """One cell."""
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
    """Rows in groups × columns, as ``<svg>``; above 0 orange, below blue, the strongest the greatest of all."""
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


_DIRECTIONS = {"t2i": "captions ask for pictures", "i2t": "pictures ask for captions"}
_LABELS = 72  # characters that all columns of a heat map have together
_MINUS = "−"


def render_stress_comparison(found: StressComparison) -> str:
    """The text of one self-contained HTML page."""
    from markupsafe import Markup

    from diptych.report.page import templates

    return (
        templates()
        .get_template("stress_comparison.html.j2")
        .render(
            found=found,
            says=summarise_comparison(found),
            left_out=left_out_text(found),
            headlines=_headlines(found),
            figures=[(measure, Markup(beside_figure(found, measure))) for measure in found.measures],
            tables=[
                {
                    "model": model,
                    "measure": measure,
                    "groups": _groups(found, measure, model),
                }
                for model in found.others
                for measure in found.measures
            ],
            directions=_DIRECTIONS,
            light=LIGHT,
            dark=DARK,
        )
    )


def write_stress_comparison(found: StressComparison, path: Path | str) -> Path:
    """Write the page as one HTML file, whole or not at all; arguments as of :func:`render_stress_comparison`."""
    write_bytes(path, render_stress_comparison(found).encode("utf-8", "replace"))
    return Path(path)


def beside_figure(found: StressComparison, measure: str) -> str:
    """Perturbations × models: what each loses in per cent of its own clean value, and the difference.

    What is significant is bold. Orange is a loss, or a greater one than the baseline's; blue the opposite.
    """
    rows, others = found.of(measure), found.others
    columns = [*found.models, *(f"{model} {_MINUS} {found.baseline}" for model in others)]
    values, strong = [], []
    for row in rows:
        own = [row.own(model).relative for model in found.models]
        differences = [row.differences[model].relative for model in others]
        values.append([np.nan if part is None else 100 * part for part in (*own, *differences)])
        verdicts = [bool(row.differences[model].verdict) for model in others]
        strong.append([False] * len(found.models) + verdicts)
    room = max(6, _LABELS // len(columns))
    return heat_figure(
        f"beside-{found.measures.index(measure)}",
        [row.name for row in rows],
        [_shortened(name, room) for name in columns],
        -np.array(values),
        [[_percent(value) for value in line] for line in values],
        np.array(strong),
        [row.group for row in rows],
        f"Relative change of {measure} in per cent of each model's own clean value",
    )


def _headlines(found: StressComparison) -> list[dict[str, str]]:
    """Each model's clean value, and where each other one differs the most from the baseline."""
    measure = found.measures[0]
    rows = found.of(measure)
    heads = []
    for way, words in _DIRECTIONS.items():
        some = [row for row in rows if row.direction == way]
        for model in found.models if some else ():
            heads.append(
                {
                    "label": f"{model}, {words}",
                    "value": shown(measure, some[0].own(model).clean),
                    "note": f"{measure}, clean",
                }
            )
    for model in found.others:
        told = [row for row in rows if row.differences[model].verdict]
        if told:
            most = max(told, key=lambda row: abs(row.differences[model].difference))
            value = shown_lost(measure, most.differences[model].difference)
            heads.append(
                {
                    "label": most.name,
                    "value": value.replace("-", _MINUS),
                    "note": f"{verdict_of(most, model)}, by the most",
                }
            )
    return heads


def _groups(found: StressComparison, measure: str, model: str) -> list[dict[str, Any]]:
    """The rows of one table, group by group."""
    made = []
    for group, meaning in GROUPS.items():
        rows = [row for row in found.of(measure) if row.group == group]
        if rows:
            made.append(
                {
                    "name": group,
                    "meaning": meaning,
                    "direction": _DIRECTIONS[rows[0].direction],
                    "rows": [_table_row(found, row, model) for row in rows],
                }
            )
    return made


def _table_row(found: StressComparison, row: ComparedRow, model: str) -> dict[str, Any]:
    one, measure = row.differences[model], row.measure
    ends = relative_ends = ""
    if one.low is not None and one.high is not None:
        ends = f"{shown_lost(measure, one.low)} to {shown_lost(measure, one.high)}"
    if one.relative_low is not None and one.relative_high is not None:
        relative_ends = f"{_percent(100 * one.relative_low)} to {_percent(100 * one.relative_high)}"
    return {
        "name": row.name,
        "description": row.description,
        "options": ", ".join(f"{key} {value}" for key, value in row.options.items()),
        "models": [_own(row, name) for name in (found.baseline, model)],
        "difference": shown_lost(measure, one.difference),
        "ends": ends,
        "relative": "–" if one.relative is None else _percent(100 * one.relative),
        "relative_ends": relative_ends,
        "p": "<0.001" if one.corrected < 0.001 else f"{one.corrected:.3f}",
        "verdict": one.verdict,
        "mark": _mark(one),
    }


def _own(row: ComparedRow, model: str) -> dict[str, str]:
    own = row.own(model)
    return {
        "clean": shown(row.measure, own.clean),
        "lost": shown_lost(row.measure, own.difference),
        "share": "" if own.relative is None or own.difference == 0 else f"{_percent(100 * own.relative)} %",
        "blind": "not seen" if is_blind_to(row, model) else "",
    }


def _mark(one: DropDifference) -> str:
    return {"more robust": "better", "less robust": "worse"}.get(one.verdict, "")


def _percent(value: float) -> str:
    if np.isnan(value):
        return "–"
    return "0" if value == 0 else f"{value:+.1f}"


def _shortened(name: str, room: int) -> str:
    return name if len(name) <= room else f"{name[: room - 1]}…"
