"""All numbers of an evaluation: what the models are, and a table per setting and feature set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from diptych.report.intent_discretion import interval, number, percent
from diptych.report.intent_grid import Grid, Place, pages_text
from diptych.report.intent_page import Cell, Section, Table
from diptych.report.words import shorten

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
