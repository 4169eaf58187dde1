"""What a reader takes away from an evaluation, in sentences made of its rows alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.report.intent_discretion import interval, listed, number, percent, signed
from diptych.report.intent_grid import Grid, Place, pages_text
from diptych.report.intent_importance_figures import feature_order, static_shares

Row = Mapping[str, Any]

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
