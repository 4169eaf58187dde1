"""Evaluate scores that somebody else gives, e.g. a trained scorer's on a later log: measured alike, nothing fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diptych.commerce.purchase_intent.evaluation.cells import FoldScores, Unit
from diptych.commerce.purchase_intent.evaluation.opening import begin
from diptych.commerce.purchase_intent.evaluation.plan import Plan, plan_of
from diptych.commerce.purchase_intent.evaluation.protocol import Protocol
from diptych.commerce.purchase_intent.evaluation.result import MARKER, Evaluation
from diptych.commerce.purchase_intent.evaluation.results import write_results
from diptych.commerce.purchase_intent.models import MODELS
from diptych.commerce.purchase_intent.splits import Fold
from diptych.core.errors import DataError, MismatchError, NumericalError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.locking import exclusive_folder
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


@dataclass(frozen=True, eq=False)
class GivenScores:
    """Probabilities of one setting and step.

    Attributes:
        probabilities: (m,) in [0, 1], of the rows of ``features.population(setting, step)``.
        threshold: from which on a purchase is predicted, where one was chosen on other sessions; NaN for none.
    """

    probabilities: np.ndarray
    threshold: float = float("nan")


def evaluate_scores(
    features: FeatureTable,
    scores: Mapping[tuple[str, int], GivenScores],
    folder: Path | str,
    *,
    model: str,
    name: str,
    trained_on: str = "",
    feature_set: str | None = None,
    bootstrap: Bootstrap | None = None,
) -> Evaluation:
    """Measure given probabilities against what happened; the folder is one of an evaluation."""
    folder, how = Path(folder), bootstrap or Bootstrap()
    if not scores:
        raise DataError(f"{name} gives no scores", "train it on a log with these settings")
    for (setting, step), given in scores.items():
        _check(features, setting, step, given)
    settings = [one for one in features.settings if any(setting == one for setting, _ in scores)]
    steps = [one for one in features.steps if any(step == one for _, step in scores)]
    content = fingerprint_arrays(
        {f"{setting}/{step}": given.probabilities for (setting, step), given in scores.items()}
        | {
            f"{setting}/{step}/threshold": np.float64(given.threshold)
            for (setting, step), given in scores.items()
        }
    )
    protocol = Protocol(
        features=features.fingerprint,
        models=(MODELS.get(model).name,),
        settings=tuple(settings),
        sets=(feature_set or features.sets[-1],),
        steps=tuple(steps),
        split="given",
        folds=1,
        balanced=False,
        inner=True,
        importance=False,
        seed=0,
        scikit_learn="",
        scorer=f"{name} ({content})",
    )
    everything = np.arange(len(features))
    grid = plan_of(features, [Fold(everything, everything)], protocol)
    plan = Plan(
        places=tuple(place for place in grid.places if (place.setting, place.step) in scores),
        folds=1,
        left_out=tuple(one for one in grid.left_out if (one.setting, one.step) in scores),
    )
    if not plan.places:
        raise DataError(f"no setting and step that {name} scores has purchases", "score a log that has some")
    with exclusive_folder(folder, MARKER):
        begin(folder, features, protocol, _about(features, protocol, trained_on))
        for place in plan.places:
            given = scores[place.setting, place.step]
            rows = features.population(place.setting, place.step)
            FoldScores(
                rows, given.probabilities, given.probabilities, given.threshold, "none", "probability"
            ).save(Unit(*place, 0).file(folder, model))
        return write_results(folder, features, plan, protocol, how)


def _check(features: FeatureTable, setting: str, step: int, given: GivenScores) -> None:
    rows = len(features.population(setting, step))
    p = given.probabilities
    if p.shape != (rows,):
        raise MismatchError(f"{setting}, step {step}: {rows:,} sessions and scores of shape {p.shape}")
    wrong = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if len(wrong):
        raise NumericalError(
            f"{setting}, step {step}: the score of row {int(wrong[0])} is {p[wrong[0]]}, no probability"
        )


def _about(features: FeatureTable, protocol: Protocol, trained_on: str) -> dict[str, object]:
    notes = []
    if trained_on == features.fingerprint:
        notes.append("the scorer was trained on these very sessions: these numbers are no test of it")
    model = MODELS.get(protocol.models[0])
    return {
        "split": {"name": "given", "description": "all sessions of the table", "folds": []},
        "models": {model.name: {"label": model.label, "description": model.description}},
        "notes": notes,
    }
