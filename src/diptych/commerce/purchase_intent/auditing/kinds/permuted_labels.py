"""Is there anything to find once the labels say nothing? Then the answer reaches the test in another way.

Labels of training sessions are laid on other people's sessions; features and model are fitted on them and measured
on the true labels of later sessions. What was learned is noise: sometimes it fits, sometimes the opposite does, and
over repeats the ROC AUC is 0.5. It is ROC AUC that is judged, for its mean is 0.5 whatever the noise; the mean
average precision of scores that are right as often as wrong lies above the base rate where the features are
strong, and is only reported. A leak, such as a feature that looks up the label of the session it is computed of,
is right every time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from diptych.commerce.purchase_intent.auditing.declaration import CHECKS, AuditInput, Check, Finding
from diptych.commerce.purchase_intent.auditing.parts import Parts, model_steps, parts_of
from diptych.commerce.purchase_intent.auditing.permuting import mean_interval, permuted_by_person
from diptych.commerce.purchase_intent.evaluation.measures import average_precision, roc_auc
from diptych.commerce.purchase_intent.features.fitted import FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.commerce.purchase_intent.models import fit_model
from diptych.core.progress import track

__all__ = ["PERMUTED_LABELS"]

_NAME = "permuted-labels"
_CONFIDENCE = 0.999


def _run(given: AuditInput) -> list[Finding]:
    all_parts = list(parts_of(given, model_steps(given)))
    return [
        finding
        for parts in track(all_parts, "permuting labels", unit="settings and steps")
        for finding in _of_parts(given, parts)
    ] or [Finding(_NAME, "", "no session to look at")]


def _of_parts(given: AuditInput, parts: Parts) -> list[Finding]:
    if parts.too_few:
        return [Finding(_NAME, parts.where, parts.too_few)]
    if not parts.features:
        return [Finding(_NAME, parts.where, "no feature is known at this step")]
    features, options = given.features, given.options
    train, test = features.at(parts.train, parts.step), features.at(parts.test, parts.step)
    labels, persons = features.labels[parts.train], features.persons[parts.train]
    truth = features.labels[parts.test]
    untouched = fit_features(parts.features, train)
    seed = options.seed
    with_labels = _scores(options.model, untouched, train, labels, test, seed)
    aucs, precisions = [], []
    of_columns: dict[str, list[float]] = {}
    for repeat in range(options.repeats):
        permuted = permuted_by_person(labels, persons, (seed, repeat, parts.step + 1))
        view = replace(train, labels=permuted, pages_before_purchase=None)
        fitted = fit_features(parts.features, view)
        scores = _scores(options.model, fitted, view, permuted, test, seed)
        aucs.append(float(roc_auc(scores, truth)))
        precisions.append(float(average_precision(scores, truth)))
        for name, values in _fitted_on_labels(untouched, fitted, test).items():
            of_columns.setdefault(name, []).append(float(roc_auc(values, truth)))
    said = (
        f"the model, with its labels {float(roc_auc(with_labels, truth)):.3f}; average precision "
        f"{np.mean(precisions):.3f} after permuting, base rate {truth.mean():.3f}"
    )
    findings = [_finding(parts.where, aucs, said, options.margin)]
    findings += [
        _finding(
            f"{parts.where}, {name}", found, "the column alone, fitted on permuted labels", options.margin
        )
        for name, found in of_columns.items()
        if len(found) == options.repeats
    ]
    return findings


def _scores(
    model: str,
    fitted: FittedFeatures,
    train: SessionsView,
    labels: np.ndarray,
    test: SessionsView,
    seed: int,
) -> np.ndarray:
    return fit_model(model, fitted.matrix(train), labels, seed=seed).scores(fitted.matrix(test))


def _fitted_on_labels(
    untouched: FittedFeatures, fitted: FittedFeatures, test: SessionsView
) -> dict[str, np.ndarray]:
    """(m,) of every column whose parameters other labels have changed; one without a value is below all others."""
    pairs = zip(untouched.parts, fitted.parts, strict=True)
    changed = [after for before, after in pairs if before.to_dict() != after.to_dict()]
    columns = {}
    for part in changed:
        for name, values in zip(part.names, part.values(test).T, strict=True):
            there = values[~np.isnan(values)]
            columns[name] = np.where(np.isnan(values), there.min(initial=0.0) - 1, values)
    return columns


def _finding(where: str, aucs: list[float], said: str, margin: float) -> Finding:
    low, high = mean_interval(aucs, _CONFIDENCE)
    limit = 0.5 + margin
    alarm = low > limit
    found = "finds what it was not told" if alarm else "finds nothing, as it should"
    return Finding(
        _NAME,
        where,
        f"{found}: {said}",
        alarm,
        "mean ROC AUC after permuting",
        float(np.mean(aucs)),
        max(0.0, low),
        min(1.0, high),
        limit,
    )


PERMUTED_LABELS = CHECKS.add(
    Check(
        name=_NAME,
        description="models and features fitted on labels of other people, measured on true ones; an alarm when all of "
        "the 99.9 % interval of their ROC AUC lies above 0.55",
        order=3,
        run=_run,
    )
)
