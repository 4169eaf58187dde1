"""Measures by step, a panel per setting and feature set on one common axis, as thesis Figure 6.7."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diptych.report.drawing import INK
from diptych.report.intent_discretion import number, signed
from diptych.report.intent_grid import Grid, Place, step_text
from diptych.report.intent_page import Legend
from diptych.report.intent_series import label, panel, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
Reference = Callable[[Row], float | None]
"""What a cell's measure is held against."""


def model_legend(grid: Grid, reference: str = "") -> Legend:
    """Every model's colour and marker; ``reference`` is what the dotted line is called."""
    entries = [
        (series(place).name, series(place).glyph, grid.labels[model])
        for place, model in enumerate(grid.models)
    ]
    return Legend([*entries, *([("ink", "┄", reference)] if reference else [])])


def measure_figures(
    grid: Grid, measure: str, title: str, reference: Reference, places: Sequence[Place] | None = None
) -> list[str]:
    """A ``<svg>`` per place: a line per model, the chosen one with its intervals as a band.

    Of one step there are dots per model instead.
    """
    places = grid.places if places is None else places
    known = [
        cell
        for cell in grid.cells
        if cell.get(measure) is not None and (cell["setting"], cell["set"]) in places
    ]
    ends = [
        value
        for cell in known
        for value in (cell[measure], cell.get(f"{measure}_low"), cell.get(f"{measure}_high"), reference(cell))
        if value is not None
    ]
    if not ends:
        return []
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low) or 0.05
    limits = (max(0.0, low - room) if low >= 0 else low - room, high + room)
    draw_one = _by_step if len(grid.steps) > 1 else _by_model
    return [
        draw_one(grid, place, measure, title, reference, limits)
        for place in places
        if any((cell["setting"], cell["set"]) == place for cell in known)
    ]


def _by_step(
    grid: Grid, place: Place, measure: str, title: str, reference: Reference, limits: tuple[float, float]
) -> str:
    parts = []
    with panel(f"{measure}-{grid.places.index(place)}", size=(4.8, 3.5)) as drawing:
        axes = drawing.axes
        held: dict[int, float | None] = {}
        for order, model in enumerate(grid.models):
            cells = [cell for cell in grid.line(place, model) if cell.get(measure) is not None]
            if not cells:
                continue
            way, chosen = series(order), model == grid.chosen
            steps, values = [cell["step"] for cell in cells], [cell[measure] for cell in cells]
            sure = [cell for cell in cells if cell.get(f"{measure}_low") is not None]
            if chosen and sure:
                axes.fill_between(
                    [cell["step"] for cell in sure],
                    [cell[f"{measure}_low"] for cell in sure],
                    [cell[f"{measure}_high"] for cell in sure],
                    color=way.colour,
                    alpha=0.15,
                    linewidth=0,
                )
            axes.plot(steps, values, color=way.colour, linestyle=way.dash, marker=way.marker, markersize=3.8,
                      linewidth=1.9 if chosen else 1.2, zorder=3 if chosen else 2)  # fmt: skip
            held |= {cell["step"]: reference(cell) for cell in cells}
            parts.append(
                f"{grid.labels[model]} "
                + ", ".join(
                    f"step {step} {number(value, 2)}" for step, value in zip(steps, values, strict=True)
                )
            )
        _reference_line(axes, held)
        axes.set_xticks(grid.steps)
        axes.set_xlim(grid.steps[0] - 0.4, grid.steps[-1] + 0.4)
        axes.set_ylim(*limits)
        axes.set(title=place.text(), xlabel="pages opened before the prediction", ylabel=title)
        drawing.summary = f"{title} by step, {place.text()}: {'; '.join(parts)}."
    return drawing.svg


def _reference_line(axes: Axes, held: Mapping[int, float | None]) -> None:
    """What is held against, by step, dotted."""
    known = sorted((step, value) for step, value in held.items() if value is not None)
    axes.plot(
        [step for step, _ in known],
        [value for _, value in known],
        color=INK,
        linewidth=1.1,
        linestyle=":",
        zorder=1,
    )


def _by_model(
    grid: Grid, place: Place, measure: str, title: str, reference: Reference, limits: tuple[float, float]
) -> str:
    """Of one step: a dot per model with its interval."""
    step, parts = grid.steps[0], []
    found = [
        (order, cell)
        for order, model in enumerate(grid.models)
        if (cell := grid.cell(place, step, model)) is not None and cell.get(measure) is not None
    ]
    with panel(f"{measure}-{grid.places.index(place)}", size=(4.8, 1.1 + 0.34 * len(found))) as drawing:
        axes = drawing.axes
        for at, (order, cell) in enumerate(found):
            value, low, high = cell[measure], cell.get(f"{measure}_low"), cell.get(f"{measure}_high")
            if low is not None and high is not None:
                whiskers = [[max(0.0, value - low)], [max(0.0, high - value)]]
                axes.errorbar(value, at, xerr=whiskers, color=INK, capsize=3, linewidth=1.1)
            axes.plot(
                value, at, marker=series(order).marker, markersize=6, color=series(order).colour, zorder=3
            )
            axes.annotate(number(value, 2), (1.0, at), xycoords=("axes fraction", "data"), xytext=(6, 0),
                          textcoords="offset points", va="center", fontsize=9.5, annotation_clip=False)  # fmt: skip
            parts.append(f"{grid.labels[cell['model']]} {number(value, 2)}")
        for held in {reference(cell) for _, cell in found}:
            if held is not None:
                axes.axvline(held, color=INK, linewidth=1.1, linestyle=":", zorder=1)
        axes.set_yticks(range(len(found)), [label(grid.labels[cell["model"]]) for _, cell in found])
        axes.set_ylim(len(found) - 0.4, -0.6)
        axes.set_xlim(*limits)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        axes.set(title=f"{place.text()}{'' if step < 0 else f', step {step}'}", xlabel=title)
        drawing.summary = f"{title}, {place.text()}, step {step_text(step)}: {'; '.join(parts)}."
    return drawing.svg


def gain_figures(grid: Grid, gains: Sequence[Row], measure: str, title: str) -> list[str]:
    """Draw per setting what the extended set adds to the baseline, by step, with intervals."""
    rows = [row for row in gains if row["measure"] == measure and row["difference"] is not None]
    if not rows:
        return []
    ends = [
        value
        for row in rows
        for value in (row["difference"], row["low"], row["high"], 0.0)
        if value is not None
    ]
    room = 0.06 * (max(ends) - min(ends)) or 0.05
    drawn = []
    for number_of, setting in enumerate(grid.settings):
        mine = [row for row in rows if row["setting"] == setting]
        if not mine:
            continue
        parts = []
        with panel(f"gain-{measure}-{number_of}", size=(4.8, 3.1)) as drawing:
            axes = drawing.axes
            for order, model in enumerate(grid.models):
                of_model = sorted((row for row in mine if row["model"] == model), key=lambda row: row["step"])
                if not of_model:
                    continue
                way, chosen = series(order), model == grid.chosen
                steps, values = [row["step"] for row in of_model], [row["difference"] for row in of_model]
                sure = [row for row in of_model if row["low"] is not None and row["high"] is not None]
                if chosen and sure:
                    whiskers = [
                        [max(0.0, row["difference"] - row["low"]) for row in sure],
                        [max(0.0, row["high"] - row["difference"]) for row in sure],
                    ]
                    axes.errorbar([row["step"] for row in sure], [row["difference"] for row in sure], whiskers,
                                  color=way.colour, capsize=3, linewidth=1.1, linestyle="none")  # fmt: skip
                axes.plot(steps, values, color=way.colour, linestyle=way.dash, marker=way.marker, markersize=3.8,
                          linewidth=1.9 if chosen else 1.2, zorder=3 if chosen else 2)  # fmt: skip
                parts.append(
                    f"{grid.labels[model]} "
                    + ", ".join(
                        f"step {step} {signed(value)}" for step, value in zip(steps, values, strict=True)
                    )
                )
            axes.axhline(0, color=INK, linewidth=1.0)
            axes.set_xticks(grid.steps, [step_text(step) for step in grid.steps])
            axes.set_ylim(min(ends) - room, max(ends) + room)
            axes.set(title=setting, xlabel="pages opened before the prediction", ylabel=title)
            drawing.summary = f"{title}, {setting}: {'; '.join(parts)}."
        drawn.append(drawing.svg)
    return drawn
