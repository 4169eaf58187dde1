"""Measures by step, a panel per setting and feature set on one common axis, as thesis Figure 6.7."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from diptych.core.table import Cell, Table
from diptych.report.drawing import BLUE, INK, ORANGE, draw
from diptych.report.intent_content import Legend, label, number, percent, series, signed
from diptych.report.intent_grid import Grid, Place, step_text
from diptych.report.page import shorten

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
    with draw(f"{measure}-{grid.places.index(place)}", size=(4.8, 3.5)) as drawing:
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
    with draw(f"{measure}-{grid.places.index(place)}", size=(4.8, 1.1 + 0.34 * len(found))) as drawing:
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
        with draw(f"gain-{measure}-{number_of}", size=(4.8, 3.1)) as drawing:
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


MOST_FEATURES = 15

KINDS: Mapping[str, str] = {
    "permutation": "average precision lost when a feature is permuted",
    "impurity": "share of the decrease of impurity",
}

IMPORTANCE_LEGEND = Legend(
    (("blue", "■", "dynamic: may change while the session runs"), ("orange", "■", "static"))
)


def feature_order(rows: Sequence[Row]) -> list[str]:
    """Features by their mean over steps: of permutation, where there is one, else of impurity."""
    kind = next((kind for kind in KINDS if any(row[kind] is not None for row in rows)), "")
    means = _means(rows, kind) if kind else {}
    names = dict.fromkeys(row["feature"] for row in rows)
    return sorted(names, key=lambda name: (-means.get(name, (0.0,))[0], name))


def _means(rows: Sequence[Row], kind: str) -> dict[str, tuple[float, float, float]]:
    """Feature → mean, least and greatest over steps."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row[kind] is not None:
            values[row["feature"]].append(row[kind])
    return {name: (fmean(found), min(found), max(found)) for name, found in values.items()}


def importance_figure(name: str, title: str, rows: Sequence[Row], kind: str) -> str:
    """Bars of the mean over steps, lines from the least to the greatest, as ``<svg>``; empty for none."""
    means = _means(rows, kind)
    names = [one for one in feature_order(rows) if one in means][:MOST_FEATURES]
    if not names:
        return ""
    dynamic = {row["feature"]: row["dynamic"] for row in rows}
    shown = percent if kind == "impurity" else lambda value: number(value, 3)
    scale = 100 if kind == "impurity" else 1
    with draw(name, size=(4.8, 0.95 + 0.31 * len(names))) as drawing:
        axes = drawing.axes
        for place, one in enumerate(names):
            mean, low, high = (scale * value for value in means[one])
            axes.barh(place, mean, 0.66, color=BLUE if dynamic[one] else ORANGE, alpha=0.85)
            if high > low:
                axes.plot([low, high], [place, place], color=INK, linewidth=1.1, zorder=3)
            axes.annotate(shown(means[one][0]), (max(mean, high, 0.0), place), xytext=(4, 0),
                          textcoords="offset points", va="center", fontsize=9)  # fmt: skip
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(names)), [label(one, 26) for one in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.grid(True, axis="x")
        axes.margins(x=0.14)
        axes.set_title(title)
        axes.set_xlabel(f"{KINDS[kind]}{' (%)' if kind == 'impurity' else ''}", fontsize=9)
        drawing.summary = f"{title}, {KINDS[kind]}, mean over steps: " + "; ".join(
            f"{label(one, 26)} {shown(means[one][0])}" for one in names
        )
    return drawing.svg


def importance_table(title: str, rows: Sequence[Row], kind: str) -> Table:
    """Features × steps, the stronger the darker."""
    steps = sorted({row["step"] for row in rows})
    found = {(row["feature"], row["step"]): row for row in rows}
    greatest = max((row[kind] for row in rows if row[kind] is not None), default=0.0)
    lines = []
    for name in feature_order(rows):
        line = [Cell(shorten(name, 60))]
        for step in steps:
            row = found.get((name, step))
            if row is None or row[kind] is None:
                line.append(Cell(""))
                continue
            value, spread = row[kind], row.get("permutation_sd") if kind == "permutation" else None
            line.append(
                Cell(
                    percent(value) if kind == "impurity" else number(value, 3),
                    "" if spread is None else f"± {number(spread, 3)}",
                    max(0.0, value / greatest) if greatest > 0 else 0.0,
                    "blue" if row["dynamic"] else "orange",
                )
            )
        lines.append(tuple(line))
    unit = " in %" if kind == "impurity" else ", ± standard deviation over folds and repeats"
    return Table(
        f"{title}: {KINDS[kind]}, by step{unit}",
        ("Feature", *(step_text(step) for step in steps)),
        lines,
        folded=True,
    )


def static_shares(rows: Sequence[Row], kind: str) -> dict[int, float]:
    """Step → what static features have of the importance of all; what is lost by none is none."""
    shares = {}
    for step in sorted({row["step"] for row in rows}):
        mine = [
            (max(0.0, row[kind]), row["dynamic"])
            for row in rows
            if row["step"] == step and row[kind] is not None
        ]
        total = sum(value for value, _ in mine)
        if total > 0:
            shares[step] = sum(value for value, dynamic in mine if not dynamic) / total
    return shares


def static_legend(settings: Sequence[str]) -> Legend:
    """A colour per setting; dashes are permutation."""
    entries = [
        (series(place).name, f"{series(place).glyph}━", f"{setting}, by impurity")
        for place, setting in enumerate(settings)
    ]
    entries += [
        (series(place).name, f"{series(place).glyph}╌", f"{setting}, by permutation")
        for place, setting in enumerate(settings)
    ]
    return Legend(entries)


def static_figure(of_settings: Mapping[str, Sequence[Row]]) -> str:
    """What static features have of all importance, by step, as ``<svg>``; empty where there is one step."""
    lines = [
        (setting, kind, place, shares)
        for place, (setting, rows) in enumerate(of_settings.items())
        for kind in ("impurity", "permutation")
        if len(shares := static_shares(rows, kind)) > 1
    ]
    if not lines:
        return ""
    with draw("static", size=(4.8, 3.0)) as drawing:
        axes = drawing.axes
        for _, kind, place, shares in lines:
            way = series(place)
            axes.plot(list(shares), [100 * share for share in shares.values()], color=way.colour, marker=way.marker,
                      markersize=4.2, linewidth=1.6, linestyle="-" if kind == "impurity" else "--")  # fmt: skip
        axes.set_ylim(0, 104)
        axes.set_xticks(sorted({step for *_, shares in lines for step in shares}))
        axes.set(
            title="Static features", xlabel="pages opened before the prediction", ylabel="% of all importance"
        )
        drawing.summary = "Static features' share of all importance by step in per cent: " + "; ".join(
            f"{setting}, {kind} "
            + ", ".join(f"step {step} {percent(share)}" for step, share in shares.items())
            for setting, kind, _, shares in lines
        )
    return drawing.svg


RELIABILITY_LEGEND = Legend(
    (
        ("blue", "●", "calibrated"),
        ("orange", "■", "as the model gives them"),
        ("ink", "┄", "as many as are said"),
    )
)

_SAID = (("reliability", "raw", ORANGE, "s", "--"), ("reliability_calibrated", "calibrated", BLUE, "o", "-"))


def reliability_figure(name: str, title: str, cell: Row) -> str:
    """Mean probability and share of purchases of every bin, raw and calibrated, as ``<svg>``; empty for neither."""
    curves: list[tuple[Sequence[Row], str, str, str, str]] = [
        (cell[key], said, colour, marker, dash) for key, said, colour, marker, dash in _SAID if cell.get(key)
    ]
    if not curves:
        return ""
    most = max(value for bins, *_ in curves for one in bins for value in (one["mean_score"], one["share"]))
    top = 100 * min(1.0, 1.06 * most or 1.0)
    parts = []
    with draw(name, size=(4.8, 3.7)) as drawing:
        axes = drawing.axes
        axes.plot([0, top], [0, top], color=INK, linewidth=1.1, linestyle=":")
        for bins, said, colour, marker, dash in curves:
            axes.plot(
                [100 * one["mean_score"] for one in bins],
                [100 * one["share"] for one in bins],
                color=colour,
                marker=marker,
                markersize=4.5,
                linewidth=1.5,
                linestyle=dash,
                clip_on=False,
            )
            parts.append(
                f"{said} "
                + ", ".join(
                    f"{percent(one['mean_score'])} said {percent(one['share'])} bought" for one in bins
                )
            )
        axes.set_xlim(0, top)
        axes.set_ylim(0, top)
        axes.set_aspect("equal")
        axes.grid(True, axis="both")
        axes.set(title=title, xlabel="mean probability (%)", ylabel="purchases (%)")
        drawing.summary = f"Reliability, {title}, in per cent: {'; '.join(parts)}."
    return drawing.svg
