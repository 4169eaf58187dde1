"""Is there a column that alone tells who buys? Nothing honest does that."""

from __future__ import annotations

import numpy as np

from diptych.commerce.purchase_intent.auditing.columns import best_column, column_aucs
from diptych.commerce.purchase_intent.auditing.declaration import CHECKS, AuditInput, Check, Finding
from diptych.commerce.purchase_intent.auditing.parts import Parts, parts_of
from diptych.commerce.purchase_intent.features.fitted import fit_features

__all__ = ["SINGLE_COLUMN"]

_NAME = "single-column"


def _run(given: AuditInput) -> list[Finding]:
    return [
        finding for parts in parts_of(given, given.features.steps) for finding in _of_parts(given, parts)
    ] or [Finding(_NAME, "", "no session to look at")]


def _of_parts(given: AuditInput, parts: Parts) -> list[Finding]:
    if parts.too_few:
        return [Finding(_NAME, parts.where, parts.too_few)]
    features, highest = given.features, given.options.highest
    fitted = fit_features(parts.features, features.at(parts.train, parts.step))
    aucs = column_aucs(fitted.matrix(features.at(parts.test, parts.step)), features.labels[parts.test])
    if not len(aucs):
        return [Finding(_NAME, parts.where, "no column is known at this step")]
    name, best = best_column(fitted.names, aucs)
    suspects = [fitted.names[column] for column in np.flatnonzero(aucs > highest)]
    if not suspects:
        said = f"the best column is {name}"
        return [Finding(_NAME, parts.where, said, False, "highest ROC AUC", best, limit=highest)]
    return [
        Finding(
            _NAME,
            f"{parts.where}, {column}",
            f"{column} alone tells who buys: see what it is computed from, and when",
            True,
            "ROC AUC",
            float(aucs[fitted.names.index(column)]),
            limit=highest,
        )
        for column in suspects
    ]


SINGLE_COLUMN = CHECKS.add(
    Check(
        name=_NAME,
        description="the ROC AUC of every column alone, at every setting and step; an alarm above 0.95",
        order=2,
        run=_run,
    )
)
