"""The checks of a leak audit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from diptych.commerce.purchase_intent.auditing.checks import (
    CHECKS,
    AuditInput,
    Check,
    Finding,
    Parts,
    best_column,
    column_aucs,
    mean_interval,
    model_steps,
    parts_of,
    permuted_by_person,
)
from diptych.commerce.purchase_intent.evaluation.measures import average_precision, roc_auc
from diptych.commerce.purchase_intent.features.fitting import FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.leak import shift_test
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.commerce.purchase_intent.models import fit_model
from diptych.core.context import track
from diptych.core.draws import Draws, draw_uniform

# Can later sessions be told from earlier ones? No leak, but why a number may not hold; never an alarm.
#
# A classifier is trained on half of all persons to say which part a session is from, and asked about the other half
# (adversarial validation).
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


CHECKS.add(
    Check(
        _NAME,
        "a classifier that tells later sessions from earlier ones; says what drifts, and is no alarm",
        4,
        _run,
    )
)


_KNOWN_COLUMNS_NAME = "known-columns"


def _known_columns_run(given: AuditInput) -> list[Finding]:
    about = given.features.about
    findings = [
        Finding(
            _KNOWN_COLUMNS_NAME, name, "this column is known to be computed from what was bought", alarm=True
        )
        for name in about.get("kept_leaking", ())
    ]
    findings += [
        Finding(_KNOWN_COLUMNS_NAME, left["column"], f"left out: {left['why']}")
        for left in about.get("left_out", ())
    ]
    return findings or [Finding(_KNOWN_COLUMNS_NAME, "", "no column is known to know the outcome")]


CHECKS.add(
    Check(
        _KNOWN_COLUMNS_NAME,
        "columns that a known table's description says are made of the outcome; an alarm when one is kept",
        1,
        _known_columns_run,
    )
)


# Is there anything to find once the labels say nothing? Then the answer reaches the test in another way.
#
# Labels of training sessions are laid on other people's sessions; features and model are fitted on them and measured
# on the true labels of later sessions. What was learned is noise: sometimes it fits, sometimes the opposite does, and
# over repeats the ROC AUC is 0.5. It is ROC AUC that is judged, for its mean is 0.5 whatever the noise; the mean
# average precision of scores that are right as often as wrong lies above the base rate where the features are
# strong, and is only reported. A leak, such as a feature that looks up the label of the session it is computed of,
# is right every time.
_PERMUTED_LABELS_NAME = "permuted-labels"
_CONFIDENCE = 0.999


def _permuted_labels_run(given: AuditInput) -> list[Finding]:
    all_parts = list(parts_of(given, model_steps(given)))
    return [
        finding
        for parts in track(all_parts, "permuting labels", unit="settings and steps")
        for finding in _permuted_labels_of_parts(given, parts)
    ] or [Finding(_PERMUTED_LABELS_NAME, "", "no session to look at")]


def _permuted_labels_of_parts(given: AuditInput, parts: Parts) -> list[Finding]:
    if parts.too_few:
        return [Finding(_PERMUTED_LABELS_NAME, parts.where, parts.too_few)]
    if not parts.features:
        return [Finding(_PERMUTED_LABELS_NAME, parts.where, "no feature is known at this step")]
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
    columns = {}
    both = zip(fitted.features, untouched.learned, fitted.learned, fitted.names_of, strict=True)
    for feature, before, after, names in both:
        if before == after:
            continue
        for name, values in zip(names, feature.matrix(test, after).T, strict=True):
            there = values[~np.isnan(values)]
            columns[name] = np.where(np.isnan(values), there.min(initial=0.0) - 1, values)
    return columns


def _finding(where: str, aucs: list[float], said: str, margin: float) -> Finding:
    low, high = mean_interval(aucs, _CONFIDENCE)
    limit = 0.5 + margin
    alarm = low > limit
    found = "finds what it was not told" if alarm else "finds nothing, as it should"
    return Finding(
        _PERMUTED_LABELS_NAME,
        where,
        f"{found}: {said}",
        alarm,
        "mean ROC AUC after permuting",
        float(np.mean(aucs)),
        max(0.0, low),
        min(1.0, high),
        limit,
    )


CHECKS.add(
    Check(
        _PERMUTED_LABELS_NAME,
        "models and features fitted on labels of other people, measured on true ones; an alarm when all of "
        "the 99.9 % interval of their ROC AUC lies above 0.55",
        3,
        _permuted_labels_run,
    )
)


_SHIFT_NAME = "shift"
_SHOWN = 5


def _shift_run(given: AuditInput) -> list[Finding]:
    if given.features.is_whole:
        return [Finding(_SHIFT_NAME, "", "not looked at: whole sessions have no later events")]
    if given.log is None:
        return [Finding(_SHIFT_NAME, "", "not looked at: it needs the log that the features were made of")]
    found = shift_test(given.log, features=given.features, seed=given.options.seed)
    findings = [
        Finding(
            _SHIFT_NAME,
            "",
            found.line(),
            alarm=bool(found.changed),
            statistic="values that moved",
            value=float(len(found.changed)),
            limit=0.0,
        )
    ]
    findings += [
        Finding(
            _SHIFT_NAME,
            f"{one.setting}, step {one.step}, {one.column}",
            f"session {one.session_id}: {one.before} became {one.after} when only later events had changed",
            alarm=True,
        )
        for one in found.changed[:_SHOWN]
    ]
    return findings


CHECKS.add(
    Check(
        _SHIFT_NAME,
        "everything after a page is altered in a sample of sessions; an alarm when a feature moves",
        0,
        _shift_run,
    )
)


_SINGLE_COLUMN_NAME = "single-column"


def _single_column_run(given: AuditInput) -> list[Finding]:
    return [
        finding
        for parts in parts_of(given, given.features.steps)
        for finding in _single_column_of_parts(given, parts)
    ] or [Finding(_SINGLE_COLUMN_NAME, "", "no session to look at")]


def _single_column_of_parts(given: AuditInput, parts: Parts) -> list[Finding]:
    if parts.too_few:
        return [Finding(_SINGLE_COLUMN_NAME, parts.where, parts.too_few)]
    features, highest = given.features, given.options.highest
    fitted = fit_features(parts.features, features.at(parts.train, parts.step))
    aucs = column_aucs(fitted.matrix(features.at(parts.test, parts.step)), features.labels[parts.test])
    if not len(aucs):
        return [Finding(_SINGLE_COLUMN_NAME, parts.where, "no column is known at this step")]
    name, best = best_column(fitted.names, aucs)
    suspects = [fitted.names[column] for column in np.flatnonzero(aucs > highest)]
    if not suspects:
        said = f"the best column is {name}"
        return [
            Finding(_SINGLE_COLUMN_NAME, parts.where, said, False, "highest ROC AUC", best, limit=highest)
        ]
    return [
        Finding(
            _SINGLE_COLUMN_NAME,
            f"{parts.where}, {column}",
            f"{column} alone tells who buys: see what it is computed from, and when",
            True,
            "ROC AUC",
            float(aucs[fitted.names.index(column)]),
            limit=highest,
        )
        for column in suspects
    ]


CHECKS.add(
    Check(
        _SINGLE_COLUMN_NAME,
        "the ROC AUC of every column alone, at every setting and step; an alarm above 0.95",
        2,
        _single_column_run,
    )
)
