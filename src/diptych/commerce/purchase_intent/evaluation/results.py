"""Write ``results.json``: every cell's numbers, what the extended set gains, and the importance of features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.cells import FoldImportance, Unit
from diptych.commerce.purchase_intent.evaluation.opening import intervals_of
from diptych.commerce.purchase_intent.evaluation.plan import Place, Plan
from diptych.commerce.purchase_intent.evaluation.protocol import Protocol
from diptych.commerce.purchase_intent.evaluation.resampling import Persons
from diptych.commerce.purchase_intent.evaluation.result import FORMAT, RESULTS, Evaluation
from diptych.commerce.purchase_intent.evaluation.summary import (
    RESAMPLED,
    importance_rows,
    pool,
    summarise,
)
from diptych.core.context import task
from diptych.core.files import write_json
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable

_Samples = dict[tuple[Place, str], dict[str, np.ndarray]]


def write_results(
    folder: Path, features: FeatureTable, plan: Plan, protocol: Protocol, how: Bootstrap
) -> Evaluation:
    """Measure what is kept of every place and model."""
    persons = Persons.of(features.persons, how)
    cells: list[dict[str, Any]] = []
    samples: _Samples = {}
    with task("measuring", len(plan.places) * len(protocol.models), "cells") as bar:
        for place in plan.places:
            for model in protocol.models:
                pooled = pool(folder, place, plan.folds, model, features.labels)
                samples[place, model] = pooled.resampled(persons)
                cells.append(summarise(place, pooled, samples[place, model], persons))
                bar.advance(1, f"{place.setting} {place.feature_set}: {model}")
    importance = []
    if protocol.importance_model:
        for place in plan.places:
            parts = [
                FoldImportance.open(Unit(*place, fold).importance_file(folder)) for fold in range(plan.folds)
            ]
            importance += importance_rows(place, parts, protocol.importance_model)
    write_json(
        folder / RESULTS,
        {
            "format": FORMAT,
            "key": protocol.key,
            "intervals": intervals_of(how),
            "cells": cells,
            "gains": _gains(cells, samples, persons),
            "importance": importance,
            "left_out": [one._asdict() for one in plan.left_out],
            "notes": _notes(cells),
        },
    )
    return Evaluation.open(folder)


def _gains(cells: list[dict[str, Any]], samples: _Samples, persons: Persons) -> list[dict[str, Any]]:
    """What the extended set has more than the baseline, on the same sessions and the same resamples of persons."""
    found = []
    of_baseline = {
        (cell["setting"], cell["step"], cell["model"]): cell for cell in cells if cell["set"] == "baseline"
    }
    for cell in cells:
        other = of_baseline.get((cell["setting"], cell["step"], cell["model"]))
        if cell["set"] != "extended" or other is None:
            continue
        mine, theirs = (
            samples[Place(one["setting"], one["set"], one["step"]), one["model"]] for one in (cell, other)
        )
        for measure in RESAMPLED:
            if cell[measure] is None or other[measure] is None:
                continue
            low, high = (None, None)
            if measure in mine and measure in theirs:
                low, high = persons.interval(mine[measure] - theirs[measure])
            found.append(
                {
                    **{name: cell[name] for name in ("setting", "step", "model")},
                    "measure": measure,
                    "baseline": other[measure],
                    "extended": cell[measure],
                    "difference": cell[measure] - other[measure],
                    "low": low,
                    "high": high,
                }
            )
    return found


def _notes(cells: list[dict[str, Any]]) -> list[str]:
    """What went not as it should, counted over the grid."""
    notes = []
    for name, said in (
        ("constant_folds", "have folds in which the model is a constant"),
        ("uncalibrated_folds", "have folds whose probabilities could not be calibrated"),
    ):
        concerned = [cell for cell in cells if cell[name]]
        if concerned:
            reasons = sorted({reason for cell in concerned for reason in cell["remarks"]})
            notes.append(f"{len(concerned)} of {len(cells)} cells {said}: {'; '.join(reasons[:3])}")
    unconverged = sum(any("ConvergenceWarning" in one for one in cell["remarks"]) for cell in cells)
    if unconverged:
        notes.append(f"{unconverged} of {len(cells)} cells have models that stopped before they converged")
    return notes
