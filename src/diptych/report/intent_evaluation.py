"""An evaluation as a page: how well purchases are predicted, and by which protocol (thesis section 6.5)."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.table import Cell, Table
from diptych.report.intent_content import (
    Block,
    Page,
    Panels,
    Section,
    interval,
    listed,
    number,
    percent,
    sentence,
    signed,
    write_page,
)
from diptych.report.intent_grid import Grid, Place, pages_text, step_text
from diptych.report.intent_step_figures import (
    IMPORTANCE_LEGEND,
    KINDS,
    RELIABILITY_LEGEND,
    Reference,
    feature_order,
    gain_figures,
    importance_figure,
    importance_table,
    measure_figures,
    model_legend,
    reliability_figure,
    static_figure,
    static_legend,
    static_shares,
)
from diptych.report.page import Headline, shorten

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.commerce.purchase_intent.evaluation.plan import Protocol


Row = Mapping[str, Any]

_MEASURES: tuple[tuple[str, str, int], ...] = (
    ("best_f1", "Best F1", 3),
    ("average_precision", "AP", 3),
    ("roc_auc", "ROC AUC", 3),
    ("brier", "Brier", 4),
    ("brier_calibrated", "Brier, cal.", 4),
    ("lift_10", "Lift, top 10 %", 2),
    ("precision_at_recall_50", "P at R 50 %", 3),
)


def cells_section(grid: Grid, descriptions: Mapping[str, str]) -> Section:
    """The section of all cells."""
    models = Table(
        "Models",
        ("Model", "What it is", "Classes weighed by"),
        [
            (
                Cell(grid.labels[model], model if grid.labels[model] != model else ""),
                Cell(descriptions.get(model, ""), words=True),
                Cell(_weights(grid, model), words=True),
            )
            for model in grid.models
        ],
    )
    said: Counter[tuple[str, str]] = Counter()
    for cell in grid.cells:
        for remark, folds in (cell.get("remarks") or {}).items():
            said[grid.labels[cell["model"]], remark] += folds
    notes = [
        f"{name}: {shorten(remark, 160)} ({folds:,} {'fold' if folds == 1 else 'folds'})."
        for (name, remark), folds in sorted(said.items())
    ]
    return Section(
        "cells",
        "All numbers",
        protocol="Best F1: with the threshold that is best inside every training part. Brier, calibrated: the mean "
        "squared error of probabilities, raw and calibrated. Lift: purchases among the tenth with the highest "
        "scores, as a multiple of the base rate. P at R 50 %: the best precision that finds half of the "
        "purchases.",
        blocks=[models, *(_cells(grid, place) for place in grid.places)],
        notes=notes,
    )


def _weights(grid: Grid, model: str) -> str:
    """How a model weighs classes where it is one; a constant weighs nothing."""
    ways = dict.fromkeys(cell["weighting"] for cell in grid.cells if cell["model"] == model)
    real = [way for way in ways if way != "none"] or ["none"]
    return ", ".join(real).replace("_", " ")


def _cells(grid: Grid, place: Place) -> Table:
    rows = []
    for step in grid.steps:
        for model in grid.models:
            cell = grid.cell(place, step, model)
            if cell is None:
                continue
            rows.append(
                (
                    Cell(grid.labels[model], pages_text(step)),
                    Cell(number(cell["sessions"])),
                    Cell(percent(cell["base_rate"], 2)),
                    Cell(number(cell["always_buy_f1"], 3)),
                    _measured(cell, "f1", 3),
                    *(_measured(cell, measure, decimals) for measure, _, decimals in _MEASURES),
                )
            )
    heads = (
        "Model",
        "Sessions",
        "Purchases, %",
        "Always-buy F1",
        "F1",
        *(title for _, title, _ in _MEASURES),
    )
    return Table(
        f"{place.text().capitalize()}: {len(rows):,} {'cell' if len(rows) == 1 else 'cells'}",
        heads,
        rows,
        folded=True,
    )


def _measured(cell: Row, measure: str, decimals: int) -> Cell:
    value = cell.get(measure)
    ends = interval(cell.get(f"{measure}_low"), cell.get(f"{measure}_high"), decimals, 1.0)
    return Cell("–" if value is None else number(value, decimals), ends)


_FLAT = 0.02
"""F1 that moves less than this over all steps stays on a plateau."""


def best_findings(grid: Grid) -> list[str]:
    """Of every setting with the fullest set at the last step: the best model, and what it is held against."""
    return [said for place in grid.fullest for said in _best(grid, place)]


def _best(grid: Grid, place: Place) -> list[str]:
    for step in reversed(grid.steps):
        cells = [cell for model in grid.models if (cell := grid.cell(place, step, model)) is not None]
        cells = [cell for cell in cells if cell["average_precision"] is not None]
        if cells:
            break
    else:
        return []
    best = max(cells, key=lambda cell: cell["average_precision"])
    said = [
        f"{_capital(place.text())}, {pages_text(step)}: {grid.labels[best['model']]} has the best average "
        f"precision, {_with_ends(best, 'average_precision')}; the share of purchases, "
        f"{number(best['base_rate'], 3)}, is what knowing nothing gives."
    ]
    known = [cell for cell in cells if cell["f1"] is not None]
    if known:
        top = max(known, key=lambda cell: cell["f1"])
        always = top["always_buy_f1"]
        if top["f1"] > always:
            said.append(
                f"The best F1 there is {_with_ends(top, 'f1')} ({grid.labels[top['model']]}); predicting a "
                f"purchase always has {number(always, 3)}."
            )
        else:
            said.append(
                f"No F1 there reaches the {number(always, 3)} of predicting a purchase always: the best has "
                f"{_with_ends(top, 'f1')} ({grid.labels[top['model']]})."
            )
    return said


def step_findings(grid: Grid) -> list[str]:
    """How the chosen model's F1 moves over the steps."""
    said = []
    for place in grid.fullest:
        cells = [cell for cell in grid.line(place, grid.chosen) if cell["f1"] is not None]
        if len(cells) < 2:
            continue
        values = [cell["f1"] for cell in cells]
        who = f"{_capital(place.text())}: F1 of {grid.labels[grid.chosen]}"
        if max(values) - min(values) < _FLAT:
            said.append(
                f"{who} stays between {number(min(values), 3)} and {number(max(values), 3)} at all steps."
            )
            continue
        first, last = cells[0], cells[-1]
        said.append(
            f"{who} goes from {number(first['f1'], 3)} {pages_text(first['step'])} to {number(last['f1'], 3)} "
            f"{pages_text(last['step'])}; that of predicting a purchase always goes from "
            f"{number(first['always_buy_f1'], 3)} to {number(last['always_buy_f1'], 3)}, as the population "
            "changes."
        )
    return said


def gain_findings(grid: Grid, gains: Sequence[Row]) -> list[str]:
    """Where the extended set helps the chosen model most."""
    said = []
    for measure, name in (("f1", "F1"), ("average_precision", "average precision")):
        rows = [
            row
            for row in gains
            if row["measure"] == measure and row["model"] == grid.chosen and row["difference"] is not None
        ]
        if not rows:
            continue
        best = max(rows, key=lambda row: row["difference"])
        sure = best["low"] is not None and best["low"] > 0
        ends = interval(best["low"], best["high"], 3, 1.0)
        if best["difference"] <= 0 or (best["low"] is not None and not sure):
            said.append(
                f"Nowhere do the extended features add to the {name} of {grid.labels[grid.chosen]} beyond "
                "doubt."
            )
            continue
        said.append(
            f"The extended features add most to the {name} of {grid.labels[grid.chosen]} in the "
            f"{best['setting']} setting {pages_text(best['step'])}: "
            f"{signed(best['difference'], 3)}{f' ({ends})' if ends else ''}."
        )
    return said


def calibration_findings(grid: Grid) -> list[str]:
    """Whether probabilities are better than the share of purchases said to everybody."""
    said = []
    for place in grid.fullest:
        cells = [cell for cell in grid.line(place, grid.chosen) if cell.get("brier_calibrated") is not None]
        if not cells:
            continue
        last = cells[-1]
        raw = "" if last["brier"] is None else f", as it gives them {number(last['brier'], 4)}"
        said.append(
            f"{_capital(place.text())}, {pages_text(last['step'])}: calibrated probabilities of "
            f"{grid.labels[grid.chosen]} have a Brier score of {number(last['brier_calibrated'], 4)}{raw}; "
            f"saying the share of purchases to everybody has {number(last['brier_prior'], 4)}. Lower is better."
        )
    return said


def importance_findings(of_settings: Mapping[str, Sequence[Row]]) -> list[str]:
    """The features that matter most, and what becomes of static ones."""
    said = []
    for setting, rows in of_settings.items():
        names = feature_order(rows)[:3]
        if names:
            said.append(
                f"{_capital(setting)}: {listed(names)} {'matters' if len(names) == 1 else 'matter'} most."
            )
        shares = static_shares(rows, "impurity")
        if len(shares) > 1:
            first, last = min(shares), max(shares)
            said.append(
                f"{_capital(setting)}: static features have {percent(shares[first])} % of the importance by "
                f"impurity {pages_text(first)} and {percent(shares[last])} % {pages_text(last)}."
            )
    return said


def _with_ends(cell: Row, measure: str) -> str:
    ends = interval(cell.get(f"{measure}_low"), cell.get(f"{measure}_high"), 3, 1.0)
    return f"{number(cell[measure], 3)}{f' ({ends})' if ends else ''}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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


_POPULATIONS = {
    "none": "sessions of at least 12 pages; at step k those whose purchase, if any, comes after k + 2 pages at "
    "least; identified are those whose visitor is known by then",
    "published": "sessions of at least 12 pages, also where the purchase lies before the step; identified are "
    "those whose visitor is known at any time (as published)",
}


def evaluation_page(evaluation: Evaluation) -> Page:
    """The page of an evaluation."""
    about, protocol = evaluation.about, evaluation.protocol
    features, name = about["features"], shorten(str(about["features"]["name"]), 80)
    sections = evaluated_sections(
        evaluation.cells,
        evaluation.importance,
        evaluation.gains,
        evaluation.left_out,
        {model: said["description"] for model, said in about["models"].items()},
    )
    how, folds = evaluation.results.intervals, about["split"]["folds"]
    facts = {
        "sessions": str(features["line"]),
        "population": "whole sessions, when they are over"
        if features["kind"] == "whole"
        else _POPULATIONS.get(features["compat"], str(features["compat"])),
        "split": f"{about['split']['name']}: {about['split']['description']}",
        **({"folds": _folds_line(folds)} if folds else {}),
        "protocol": protocol.line(),
        "F1": "of predictions from a probability of 0.5 on, or a decision of 0",
        "intervals": f"{100 * how['confidence']:g} %, {how['samples']:,} resamples of persons, seed "
        f"{how['seed']}"
        if how["samples"]
        else "none",
        "fingerprints": f"features {features['fingerprint']}, evaluation {protocol.key}",
        "made with": f"diptych {about['diptych']}",
    }
    notes = [sentence(note) for note in evaluation.notes]
    return Page(
        f"Predicting purchases: {name}",
        f"{len(evaluation.cells):,} cells of settings, feature sets, steps and models",
        evaluated_headlines(evaluation.cells),
        sections,
        facts,
        [note for note in notes if not note.startswith("Split ")],
        [] if protocol.scorer else [_command(protocol)],
    )


def write_evaluation_page(path: Path | str, evaluation: Evaluation) -> Path:
    """Write the page as one HTML file, whole or not at all."""
    return write_page(path, evaluation_page(evaluation))


def _folds_line(folds: Sequence[Row]) -> str:
    trained, tested = (
        " to ".join(dict.fromkeys((f"{min(sizes):,}", f"{max(sizes):,}")))
        for sizes in ([fold["train"] for fold in folds], [fold["test"] for fold in folds])
    )
    shared = sum(fold["test_of_persons_in_training"] for fold in folds) / max(
        1, sum(fold["test"] for fold in folds)
    )
    said = f"{len(folds)}; trained on {trained} sessions, tested on {tested}"
    return f"{said}; {percent(shared)} % of test sessions are of persons with a session in training"


def _command(protocol: Protocol) -> str:
    """The evaluation again."""
    words = ["diptych", "intent", "evaluate", "FEATURES", "--out", "EVALUATION"]
    for option, values in (
        ("--model", protocol.models),
        ("--setting", protocol.settings),
        ("--set", protocol.sets),
        ("--step", protocol.steps),
    ):
        for value in values:
            # a step of whole sessions would read as an option
            words += [f"{option}={value}"] if str(value).startswith("-") else [option, str(value)]
    words += ["--split", protocol.split, "--folds", str(protocol.folds), "--seed", str(protocol.seed)]
    words += [] if protocol.balanced else ["--no-balance"]
    words += [] if protocol.inner else ["--no-inner"]
    words += [] if protocol.importance else ["--no-importance"]
    return shlex.join(words)
