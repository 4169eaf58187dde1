"""The checks of a leak audit, in the order of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from diptych.commerce.purchase_intent.auditing.checks import CHECKS, AuditInput, Check, Finding, Parts
from diptych.commerce.purchase_intent.features.fitting import FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.leak import shift_test
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.commerce.purchase_intent.models import fit_model
from diptych.core.draws import Draws, draw_uniform
from diptych.core.extras import require

_SHOWN = 5
_MANY = 0.05  # share of later sessions that are copies of earlier ones
_MUCH = 0.7  # ROC AUC of a classifier of earlier and later sessions that look different
_CONFIDENCE = 0.999


def shift(given: AuditInput) -> Iterator[Finding]:
    """Compare features of sessions with those of the same sessions with another end."""
    if given.features.is_whole:
        yield Finding("", "", "not looked at: whole sessions have no later events")
    elif given.log is None:
        yield Finding("", "", "not looked at: it needs the log that the features were made of")
    else:
        found = shift_test(given.log, given.features, seed=given.options.seed)
        n = len(found.changed)
        yield Finding("", "", found.line(), n > 0, "values that moved", float(n), limit=0.0)
        for one in found.changed[:_SHOWN]:
            where = f"{one.setting}, step {one.step}, {one.column}"
            moved = f"{one.before} became {one.after} when only later events had changed"
            yield Finding("", where, f"session {one.session_id}: {moved}", alarm=True)


def known_columns(given: AuditInput) -> Iterator[Finding]:
    """Read what the table's description has on its columns."""
    kept, left_out = (given.features.about.get(name, ()) for name in ("kept_leaking", "left_out"))
    for name in kept:
        yield Finding("", name, "this column is known to be computed from what was bought", alarm=True)
    for one in left_out:
        yield Finding("", one["column"], f"left out: {one['why']}")
    if not kept and not left_out:
        yield Finding("", "", "no column is known to know the outcome")


def duplicates(parts: Parts) -> Iterator[Finding]:
    """Look for copies of earlier sessions among later ones, and for the same persons."""
    train, test = parts.matrices
    earlier = {row.tobytes() for row in train}
    share = float(np.mean([row.tobytes() in earlier for row in test]))
    before, after = (parts.table.persons[rows] for rows in parts.rows)
    text = f"have all values of an earlier one; {np.isin(after, before).mean():.1%} are of a person with an earlier one"
    yield Finding("", "", text, share > _MANY, "share of later sessions", share, limit=_MANY)


def single_column(parts: Parts) -> Iterator[Finding]:
    """Measure each column as if it were the model."""
    highest, names = parts.options.highest, parts.fitted.names
    aucs = column_aucs(parts.matrices[1], parts.labels[1])
    best = int(np.argmax(aucs))
    if aucs[best] <= highest:
        text = f"the best column is {names[best]}"
        yield Finding("", "", text, False, "highest ROC AUC", float(aucs[best]), limit=highest)
    for place in np.flatnonzero(aucs > highest):
        text = f"{names[place]} says who buys: see what it is computed from, and when"
        yield Finding("", names[place], text, True, "ROC AUC", float(aucs[place]), limit=highest)


def permuted_labels(parts: Parts) -> Iterator[Finding]:
    """Fit on permuted labels: what can be found then reaches the test in another way.

    What was learned is noise: sometimes it fits, sometimes the opposite does, and over repeats the ROC AUC is 0.5. It
    is ROC AUC that is judged, for its mean is 0.5 whatever the noise; the mean average precision of scores that are
    right as often as wrong lies above the base rate where the features are strong, and is only reported. A leak, such
    as a feature that looks up the label of the session it is computed of, is right every time.
    """
    metrics = require("sklearn.metrics", "commerce", "an audit")
    options, (train, test), (labels, truth) = parts.options, parts.views, parts.labels

    def scores(fitted: FittedFeatures, train: SessionsView, labels: np.ndarray) -> np.ndarray:
        model = fit_model(options.model, fitted.matrix(train), labels, seed=options.seed)
        return model.scores(fitted.matrix(test))

    aucs: dict[str, list[float]] = {"": []}
    precisions = []
    for repeat in range(options.repeats):
        seed = (options.seed, repeat, parts.step + 1)
        permuted = permuted_by_person(labels, parts.table.persons[parts.rows[0]], seed)
        view = replace(train, labels=permuted, pages_before_purchase=None)
        fitted = fit_features(parts.features, view)
        p = scores(fitted, view, permuted)
        precisions.append(metrics.average_precision_score(truth, p))
        aucs[""].append(float(metrics.roc_auc_score(truth, p)))
        both = zip(fitted.features, parts.fitted.learned, fitted.learned, strict=True)
        for feature, before, after in both:
            if before != after:  # labels had a part in it
                column = _filled(feature.matrix(test, after)[:, 0])
                aucs.setdefault(feature.name, []).append(float(metrics.roc_auc_score(truth, column)))
    text = (
        f"the model, with its labels {metrics.roc_auc_score(truth, scores(parts.fitted, train, labels)):.3f}; average "
        f"precision {np.mean(precisions):.3f} after permuting, base rate {truth.mean():.3f}"
    )
    limit = 0.5 + options.margin
    for name, found in aucs.items():
        if len(found) == options.repeats:
            low, high = _interval(found)
            result = "finds what it cannot know" if low > limit else "finds nothing, as it should"
            text = "the column by itself, fitted on permuted labels" if name else text
            numbers = (float(np.mean(found)), max(0.0, low), min(1.0, high), limit)
            statistic = "mean ROC AUC after permuting"
            yield Finding("", name, f"{result}: {text}", low > limit, statistic, *numbers)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return Student's interval of the mean of a few independent values."""
    stats = require("scipy.stats", "commerce", "an audit")
    half = stats.t.ppf((1 + _CONFIDENCE) / 2, len(values) - 1) * stats.sem(values)
    return float(np.mean(values) - half), float(np.mean(values) + half)


def drift(parts: Parts) -> Iterator[Finding]:
    """Train a classifier of earlier and later sessions on half of all persons, and try it on the other half."""
    roc_auc_score = require("sklearn.metrics", "commerce", "an audit").roc_auc_score
    seed, (earlier, later) = parts.options.seed, parts.matrices
    matrix, labels = np.concatenate([earlier, later]), np.repeat([False, True], [len(earlier), len(later)])
    keyed = Draws(seed, "drift").below(1 << 31)  # parts drawn by person are drawn by the seed
    half = draw_uniform(keyed, parts.table.persons[np.concatenate(parts.rows)]) < 0.5
    if any(labels[one].all() or not labels[one].any() for one in (half, ~half)):
        yield Finding("", "", "too few persons to say anything")
        return
    aucs = []
    for test in (half, ~half):
        model = fit_model(parts.options.model, matrix[~test], labels[~test], seed=seed)
        aucs.append(float(roc_auc_score(labels[test], model.scores(matrix[test]))))
    columns, auc = column_aucs(matrix, labels), float(np.mean(aucs))
    best = int(np.argmax(columns))
    different = "can be told apart: expect other numbers on later sessions" if auc > _MUCH else "look alike"
    text = f"earlier and later sessions {different}; most by {parts.fitted.names[best]} ({columns[best]:.3f} by itself)"
    yield Finding("", "", text, False, "ROC AUC", auc)


def _filled(values: np.ndarray) -> np.ndarray:
    """Return a column in which a missing value is below all others."""
    missing = np.isnan(values)
    return np.where(missing, values[~missing].min(initial=0.0) - 1, values)


def column_aucs(matrix: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return (c,) ROC AUC of every column, in the direction in which it is better, or of its having a value.

    Args:
        matrix: (n, c) with NaN where there is no value.
        labels: (n,) bool with both kinds.
    """
    roc_auc_score = require("sklearn.metrics", "commerce", "an audit").roc_auc_score
    both = ([roc_auc_score(labels, one) for one in (_filled(of), np.isnan(of))] for of in matrix.T)
    return np.array([max(max(auc, 1 - auc) for auc in aucs) for aucs in both])


def permuted_by_person(labels: np.ndarray, persons: np.ndarray, seed: Sequence[int]) -> np.ndarray:
    """Return (n,) labels of people on other people's sessions.

    The labels of all sessions, person after person in one random order, become those of the sessions in another:
    as many purchases as before, mostly together where they were one person's, and independent of who it is.
    """
    people, place = np.unique(persons, return_inverse=True)
    random = np.random.default_rng(list(seed))
    taken, laid = (np.argsort(random.permutation(len(people))[place], kind="stable") for _ in range(2))
    permuted = np.empty_like(labels)
    permuted[laid] = labels[taken]
    return permuted


_EVERY, _FITTED = (lambda steps, fitted: steps), (lambda steps, fitted: fitted)
_LAST, _ENDS = (
    (lambda steps, fitted: steps[-1:]),
    (lambda steps, fitted: dict.fromkeys((fitted[0], fitted[-1]))),
)

for _order, (_run, _steps, _description) in enumerate(
    (
        (
            shift,
            None,
            "everything after a page is altered in a sample of sessions; an alarm when a feature moves",
        ),
        (
            known_columns,
            None,
            "columns that a known table has computed from the outcome; an alarm when one is kept",
        ),
        (
            duplicates,
            _LAST,
            "later sessions with all values of an earlier one at the last step; an alarm above 5 %",
        ),
        (
            single_column,
            _EVERY,
            "the ROC AUC of every column, at every setting and step; an alarm above 0.95",
        ),
        (
            permuted_labels,
            _FITTED,
            "models and features fitted on labels of other people, measured on true ones; an alarm when all of the "
            "99.9 % interval of their ROC AUC lies above 0.55",
        ),
        (drift, _ENDS, "a classifier of later and earlier sessions; shows what drifts, and is no alarm"),
    )
):
    CHECKS.add(Check(_run.__name__.replace("_", "-"), _description, _run, _steps, _order))
