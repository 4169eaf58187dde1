"""The sections of an evaluation's page: measures by step, gains, probabilities, importance (thesis 6.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.report.intent_discretion import number, percent
from diptych.report.intent_evaluation_cells import cells_section
from diptych.report.intent_evaluation_findings import (
    best_findings,
    calibration_findings,
    gain_findings,
    importance_findings,
    step_findings,
)
from diptych.report.intent_grid import Grid, pages_text, step_text
from diptych.report.intent_importance_figures import (
    IMPORTANCE_LEGEND,
    KINDS,
    importance_figure,
    importance_table,
    static_figure,
    static_legend,
)
from diptych.report.intent_page import Block, Headline, Panels, Section
from diptych.report.intent_reliability_figures import RELIABILITY_LEGEND, reliability_figure
from diptych.report.intent_step_figures import Reference, gain_figures, measure_figures, model_legend

Row = Mapping[str, Any]


def evaluated_sections(
    cells: Sequence[Row],
    importance: Sequence[Row] = (),
    gains: Sequence[Row] = (),
    left_out: Sequence[Row] = (),
    models: Mapping[str, str] | None = None,
) -> list[Section]:
    """The sections that there are rows for."""
    grid = Grid(cells)
    if not cells:
        return [
            Section(
                "verdict", "Verdict", ["Nothing could be evaluated."], notes=[_left(row) for row in left_out]
            )
        ]
    found: list[Section | None] = [
        Section("verdict", "Verdict", best_findings(grid), notes=[_left(row) for row in left_out]),
        _by_step(grid),
        _gains(grid, gains),
        _probabilities(grid),
        _importance(importance),
        cells_section(grid, models or {}),
    ]
    return [section for section in found if section is not None]


def evaluated_headlines(cells: Sequence[Row]) -> list[Headline]:
    """The chosen model's average precision at the last step of every setting, beside the share of purchases."""
    grid = Grid(cells)
    found = []
    for place in grid.fullest:
        line = [cell for cell in grid.line(place, grid.chosen) if cell["average_precision"] is not None]
        if line:
            last = line[-1]
            found.append(
                Headline(
                    f"average precision of {grid.labels[grid.chosen]}, {place.text()}",
                    number(last["average_precision"], 2),
                    f"{pages_text(last['step'])}; purchases {percent(last['base_rate'])} %",
                )
            )
    return found


def _left(row: Row) -> str:
    return f"Left out: {row['setting']}, step {step_text(row['step'])}: {row['reason']}."


_HELD_AGAINST: tuple[tuple[str, str, str, Reference], ...] = (
    ("f1", "F1", "predicting a purchase always", lambda cell: cell["always_buy_f1"]),
    ("average_precision", "average precision", "share of purchases", lambda cell: cell["base_rate"]),
    ("lift_10", "lift of the top 10 %", "no lift", lambda cell: 1.0),
)


def _by_step(grid: Grid) -> Section:
    blocks: list[Block] = []
    several = len(grid.steps) > 1
    for measure, title, words, reference in _HELD_AGAINST:
        places = grid.fullest if measure == "lift_10" else grid.places
        figures = measure_figures(grid, measure, title, reference, places)
        if not figures:
            continue
        if several:
            blocks += [model_legend(grid, words), Panels(figures, 24.0)]
        elif blocks and isinstance(blocks[-1], Panels):  # names are beside the dots: all in one row
            blocks[-1] = Panels([*blocks[-1].figures, *figures], 19.0)
        else:
            blocks.append(Panels(figures, 19.0))
    protocol = [
        "F1 is of predictions from a probability of 0.5 on, as in the thesis: with classes that weigh the same "
        "it says as much about the weights as about the model, so hold it against the dotted line, that of "
        "predicting a purchase always. Average precision needs no threshold; its dotted line is the share of "
        "purchases, which changes with the population."
    ]
    if several:
        protocol.append(
            f"Bands are intervals of {grid.labels[grid.chosen]}, which has the greatest mean average "
            "precision. Thesis Figure 6.7."
        )
    return Section(
        "steps", "By step" if several else "By model", step_findings(grid), " ".join(protocol), blocks
    )


def _gains(grid: Grid, gains: Sequence[Row]) -> Section | None:
    figures = [
        figure
        for measure, title in (("f1", "gain in F1"), ("average_precision", "gain in average precision"))
        for figure in gain_figures(grid, gains, measure, title)
    ]
    if not figures:
        return None
    return Section(
        "gains",
        "What extended features add",
        gain_findings(grid, gains),
        "The extended set less the baseline, on the same sessions and folds. Whiskers are intervals of "
        f"{grid.labels[grid.chosen]}, of the differences of the same resamples.",
        [model_legend(grid), Panels(figures, 24.0)],
    )


def _probabilities(grid: Grid) -> Section | None:
    figures = []
    for number_of, place in enumerate(grid.fullest):
        line = [
            cell
            for cell in grid.line(place, grid.chosen)
            if cell.get("reliability") or cell.get("reliability_calibrated")
        ]
        ends = {cell["step"]: cell for cell in (line[:1] + line[-1:])}
        for step, cell in ends.items():
            title = f"{place.text()}, {pages_text(step)}"
            figures.append(reliability_figure(f"reliability-{number_of}-{step_text(step)}", title, cell))
    if not figures:
        return None
    return Section(
        "probabilities",
        "Probabilities",
        calibration_findings(grid),
        f"Test sessions of {grid.labels[grid.chosen]} in bins of equally many, by probability: the mean that "
        "is said and the share that buys. Calibrated ones are Platt's sigmoid, fitted inside every training "
        "part.",
        [RELIABILITY_LEGEND, Panels([figure for figure in figures if figure], 24.0)],
    )


def _importance(rows: Sequence[Row]) -> Section | None:
    if not rows:
        return None
    sets = list(dict.fromkeys(row["set"] for row in rows))
    of_settings: dict[str, list[Row]] = {}
    for setting in dict.fromkeys(row["setting"] for row in rows):
        own = [row for row in rows if row["setting"] == setting]
        fullest = max((row["set"] for row in own), key=sets.index)
        name = "all sessions" if setting == "all" else setting
        of_settings[name] = [row for row in own if row["set"] == fullest]
    figures = [
        figure
        for place, (setting, own) in enumerate(of_settings.items())
        for kind in KINDS
        if (figure := importance_figure(f"importance-{place}-{kind}", f"{setting}, by {kind}", own, kind))
    ]
    tables = [
        importance_table(setting, own, kind)
        for setting, own in of_settings.items()
        for kind in KINDS
        if any(row[kind] is not None for row in own)
    ]
    static = static_figure(of_settings)
    shares: list[Block] = [static_legend(list(of_settings)), Panels([static], 24.0)] if static else []
    several = (
        "Bars are means over steps, lines go from the least step to the greatest. "
        if len({row["step"] for row in rows}) > 1
        else ""
    )
    model = next((row["model"] for row in rows if row.get("model")), "")
    return Section(
        "importance",
        "What features are worth",
        importance_findings(of_settings),
        f"{f'Worth to {model}. ' if model else ''}{several}By impurity as the thesis has it, counted on "
        "training sessions, it favours features with "
        "many values; by permutation it is what average precision loses on test sessions when a feature says "
        "of each what is true of another. Features that say the same can stand in for each other. Thesis "
        "Figure 6.6.",
        [
            IMPORTANCE_LEGEND,
            Panels(figures, 24.0),
            *shares,
            *tables,
        ],
    )
