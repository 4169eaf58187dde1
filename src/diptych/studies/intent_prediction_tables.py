"""Tables beside Figure 6.7: average precision, what the extended set gains, and what a model without skill has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.studies.evidence import Evidence
from diptych.studies.intent_gain_checks import AP, GAIN
from diptych.studies.intent_predicting import ALWAYS, BASE
from diptych.studies.intent_rows import MODELS, SETS, SETTINGS, prediction_row
from diptych.studies.log_checks import known, shown
from diptych.studies.study import FurtherTable

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation


def evaluations_of(evidence: Evidence) -> list[Evaluation]:
    """The evaluations that rows were measured from, each once; those that are gone are left out."""
    from diptych.commerce.purchase_intent.evaluation import Evaluation

    folders = dict.fromkeys(folder.resolve() for folders in evidence.kept.values() for folder in folders)
    return [Evaluation.open(folder) for folder in folders if folder.is_dir()]


def prediction_tables(evidence: Evidence) -> list[FurtherTable]:
    """Average precision, gains of the extended set, and what a model without skill would have."""
    rows = {
        prediction_row(model, feature_set, setting): f"{MODELS[model]}, {feature_set}, {setting}"
        for setting in SETTINGS
        for feature_set in SETS
        for model in MODELS
    }
    there = [row for row in rows if row in evidence.figures]
    steps = [str(step) for step in range(11) if any(known(evidence, [(row, str(step))]) for row in there)]
    if not there or not steps:
        return []
    gained = [row for row in there if f"-{SETS[1]}-" in row]
    tables = [
        ("Average precision", "In per cent, with 95 % intervals of resampled persons.", there, AP, 1),
        (
            "What the extended set gains, F1",
            "In points, with 95 % intervals of the same resampled persons. The anonymous baseline has no feature at "
            "step 0.",
            gained,
            GAIN,
            1,
        ),
        ("What the extended set gains, average precision", "As above.", gained, f"{GAIN}{AP}", 1),
    ]
    found = [
        FurtherTable(
            title,
            note,
            ("row", *steps),
            tuple(
                (rows[row], *(_cell(evidence, row, f"{column}{step}", digits) for step in steps))
                for row in shown_rows
            ),
        )
        for title, note, shown_rows, column, digits in tables
        if shown_rows
    ]
    return [*found, _without_skill(evidence, there, steps)]


def _without_skill(evidence: Evidence, rows: Sequence[str], steps: Sequence[str]) -> FurtherTable:
    lines = []
    for setting in SETTINGS:
        row = next((one for one in rows if one.endswith(f"-{setting}")), None)
        if row is not None:
            for column, title in (
                (BASE, "purchase sessions, %"),
                (ALWAYS, "F1 of calling each a purchase, %"),
            ):
                cells = (_cell(evidence, row, f"{column}{step}", 1) for step in steps)
                lines.append((f"{setting}: {title}", *cells))
    return FurtherTable(
        "Without skill",
        "An F1 of a sample rich in purchases is high whatever the model; average precision without skill is the "
        "share of purchase sessions.",
        ("", *steps),
        tuple(lines),
    )


def _cell(evidence: Evidence, row: str, column: str, decimals: int) -> str:
    return shown(evidence, (row, column), decimals) if known(evidence, [(row, column)]) else "–"
