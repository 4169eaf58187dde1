"""Can later sessions be told from earlier ones? No leak, but why a number may not hold; never an alarm.

A classifier is trained on half of all persons to say which part a session is from, and asked about the other half
(adversarial validation).
"""

from __future__ import annotations

import numpy as np

from diptych.commerce.purchase_intent.auditing.columns import best_column, column_aucs
from diptych.commerce.purchase_intent.auditing.declaration import CHECKS, AuditInput, Check, Finding
from diptych.commerce.purchase_intent.auditing.parts import Parts, model_steps, parts_of
from diptych.commerce.purchase_intent.evaluation.measures import roc_auc
from diptych.commerce.purchase_intent.features.fitted import fit_features
from diptych.commerce.purchase_intent.models import fit_model
from diptych.core.draws import Draws, draw_uniform
from diptych.core.progress import track

__all__ = ["DRIFT"]

_NAME = "drift"
_MUCH = 0.7


def _run(given: AuditInput) -> list[Finding]:
    steps = model_steps(given)
    ends = tuple(dict.fromkeys((steps[0], steps[-1])))
    all_parts = list(parts_of(given, ends))
    return [
        _of_parts(given, parts) for parts in track(all_parts, "looking for drift", unit="settings and steps")
    ] or [Finding(_NAME, "", "no session to look at")]


def _of_parts(given: AuditInput, parts: Parts) -> Finding:
    if parts.too_few:
        return Finding(_NAME, parts.where, parts.too_few)
    features = given.features
    fitted = fit_features(parts.features, features.at(parts.train, parts.step))
    rows = np.concatenate([parts.train, parts.test])
    later = np.arange(len(rows)) >= len(parts.train)
    matrix = fitted.matrix(features.at(rows, parts.step))
    keyed = Draws(given.options.seed, _NAME).below(1 << 31)  # parts drawn by person are drawn by the seed
    second = draw_uniform(keyed, features.persons[rows]) < 0.5
    found = []
    for asked in (second, ~second):
        if min(later[asked].sum(), (~later[asked]).sum(), later[~asked].sum(), (~later[~asked]).sum()) == 0:
            return Finding(_NAME, parts.where, "too few persons to say anything")
        model = fit_model(given.options.model, matrix[~asked], later[~asked], seed=given.options.seed)
        found.append(float(roc_auc(model.scores(matrix[asked]), later[asked])))
    auc = float(np.mean(found))
    name, best = best_column(fitted.names, column_aucs(matrix, later))
    much = "can be told apart: expect other numbers on later sessions" if auc > _MUCH else "look alike"
    said = f"earlier and later sessions {much}; most by {name} ({best:.3f} alone)"
    return Finding(_NAME, parts.where, said, False, "ROC AUC", auc)


DRIFT = CHECKS.add(
    Check(
        name=_NAME,
        description="a classifier that tells later sessions from earlier ones; says what drifts, and is no alarm",
        order=4,
        run=_run,
    )
)
