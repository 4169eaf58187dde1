"""Leak audits: every check on a table of features and what it finds, kept as a folder.

::

    AUDIT/
      leak_audit.json     of what, how, all findings
      findings.csv        the same findings as a table
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from diptych.commerce.purchase_intent.features.fitting import Feature, FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.leak import shift_test
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.commerce.purchase_intent.models import FEWEST, fit_model
from diptych.commerce.purchase_intent.options import AuditOptions
from diptych.commerce.purchase_intent.scoring.training import Slices, slices_of
from diptych.core.artifact import Artifact, encode
from diptych.core.context import track
from diptych.core.draws import Draws, draw_uniform
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.files import write_csv
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.logs.log import Log
    from diptych.commerce.purchase_intent.features.table import FeatureTable

FOLDER = "audit"  # in the folder of its features
_TABLE = "findings.csv"
_STEPS = (0, 1, 5, 10)
_LATER = 0.4  # share of sessions that models and columns are tried on
_SHOWN = 5
_MANY = 0.05  # share of later sessions that are copies of earlier ones
_MUCH = 0.7  # ROC AUC of a classifier of earlier and later sessions that look different
_CONFIDENCE = 0.999


@dataclass(frozen=True)
class Finding:
    """What a check found in one place."""

    check: str  # its name
    where: str  # a setting and step, or a column; empty of the whole
    text: str  # what it means, in one sentence
    alarm: bool = False
    statistic: str = ""  # what ``value`` is; empty where there is no number
    value: float | None = None
    low: float | None = None  # low, high: ends of its interval, where it has one
    high: float | None = None
    limit: float | None = None  # from where on it is an alarm, where it can be one


class Parts(NamedTuple):
    """Earlier and later sessions of one setting and step, as pairs."""

    table: FeatureTable
    options: AuditOptions
    step: int
    features: list[Feature]  # that a model would look at
    persons: list[np.ndarray]  # (n,) and (m,)
    labels: list[np.ndarray]
    views: list[SessionsView]
    fitted: FittedFeatures  # on the earlier part
    matrices: list[np.ndarray]  # (n, columns) and (m, columns)


def _shift(features: FeatureTable, log: Log | None, options: AuditOptions) -> Iterator[Finding]:
    if features.is_whole:
        yield Finding("", "", "not looked at: whole sessions have no later events")
    elif log is None:
        yield Finding("", "", "not looked at: it needs the log that the features were made of")
    else:
        found = shift_test(log, features, seed=options.seed)
        n = len(found.changed)
        yield Finding("", "", found.line(), n > 0, "values that moved", float(n), limit=0.0)
        for one in found.changed[:_SHOWN]:
            where = f"{one.setting}, step {one.step}, {one.column}"
            moved = f"{one.before} became {one.after} when only later events had changed"
            yield Finding("", where, f"session {one.session_id}: {moved}", alarm=True)


def _known_columns(features: FeatureTable, *_: object) -> Iterator[Finding]:
    kept, left_out = (features.about.get(name, ()) for name in ("kept_leaking", "left_out"))
    for name in kept:
        yield Finding("", name, "this column is known to be computed from what was bought", alarm=True)
    for one in left_out:
        yield Finding("", one["column"], f"left out: {one['why']}")
    if not kept and not left_out:
        yield Finding("", "", "no column is known to know the outcome")


def _duplicates(parts: Parts) -> Iterator[Finding]:
    train, test = parts.matrices
    earlier = {row.tobytes() for row in train}
    share = float(np.mean([row.tobytes() in earlier for row in test]))
    before, after = parts.persons
    text = f"have all values of an earlier one; {np.isin(after, before).mean():.1%} are of a person with an earlier one"
    limit = None if parts.table.is_whole else _MANY  # without times of pages sessions may well look alike
    yield Finding(
        "", "", text, limit is not None and share > limit, "share of later sessions", share, limit=limit
    )


def _single_column(parts: Parts) -> Iterator[Finding]:
    highest, names = parts.options.highest, parts.fitted.names
    aucs = column_aucs(parts.matrices[1], parts.labels[1])
    best = int(np.argmax(aucs))
    if aucs[best] <= highest:
        text = f"the best column is {names[best]}"
        yield Finding("", "", text, False, "highest ROC AUC", float(aucs[best]), limit=highest)
    for place in np.flatnonzero(aucs > highest):
        text = f"{names[place]} says who buys: see what it is computed from, and when"
        yield Finding("", names[place], text, True, "ROC AUC", float(aucs[place]), limit=highest)


def _permuted_labels(parts: Parts) -> Iterator[Finding]:
    # What was learned is noise: sometimes it fits, sometimes the opposite does, and over repeats the ROC AUC is 0.5. It
    # is ROC AUC that is judged, for its mean is 0.5 whatever the noise; the mean average precision of scores that are
    # right as often as wrong lies above the base rate where the features are strong, and is only reported. A leak, such
    # as a feature that looks up the label of the session it is computed of, is right every time.
    metrics = require("sklearn.metrics", "commerce", "an audit")
    options, (train, test), (labels, truth) = parts.options, parts.views, parts.labels

    def scores(fitted: FittedFeatures, train: SessionsView, labels: np.ndarray) -> np.ndarray:
        model = fit_model(options.model, fitted.matrix(train), labels, seed=options.seed)
        return model.scores(fitted.matrix(test))

    aucs: dict[str, list[float]] = {"": []}
    precisions = []
    for repeat in range(options.repeats):
        seed = (options.seed, repeat, parts.step + 1)
        permuted = permuted_by_person(labels, parts.persons[0], seed)
        view = replace(train, labels=permuted, pages_before_purchase=None)
        fitted = fit_features(parts.features, view)
        p = scores(fitted, view, permuted)
        precisions.append(metrics.average_precision_score(truth, p))
        aucs[""].append(_auc(truth, p))
        both = zip(fitted.features, parts.fitted.learned, fitted.learned, strict=True)
        for feature, before, after in both:
            if before != after:  # labels had a part in it
                column = _filled(feature.matrix(test, after)[:, 0])
                aucs.setdefault(feature.name, []).append(_auc(truth, column))
    text = (
        f"the model, with its labels {_auc(truth, scores(parts.fitted, train, labels)):.3f}; average precision "
        f"{np.mean(precisions):.3f} after permuting, base rate {truth.mean():.3f}"
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


def _drift(parts: Parts) -> Iterator[Finding]:
    seed, (earlier, later) = parts.options.seed, parts.matrices
    matrix, labels = np.concatenate([earlier, later]), np.repeat([False, True], [len(earlier), len(later)])
    keyed = Draws(seed, "drift").below(1 << 31)  # parts drawn by person are drawn by the seed
    half = draw_uniform(keyed, np.concatenate(parts.persons)) < 0.5
    if any(labels[one].all() or not labels[one].any() for one in (half, ~half)):
        yield Finding("", "", "too few persons to say anything")
        return
    aucs = []
    for test in (half, ~half):
        model = fit_model(parts.options.model, matrix[~test], labels[~test], seed=seed)
        aucs.append(_auc(labels[test], model.scores(matrix[test])))
    columns, auc = column_aucs(matrix, labels), float(np.mean(aucs))
    best = int(np.argmax(columns))
    different = "can be told apart: expect other numbers on later sessions" if auc > _MUCH else "look alike"
    text = f"earlier and later sessions {different}; most by {parts.fitted.names[best]} ({columns[best]:.3f} by itself)"
    yield Finding("", "", text, False, "ROC AUC", auc)


def _auc(labels: np.ndarray, scores: np.ndarray) -> float:
    return float(require("sklearn.metrics", "commerce", "an audit").roc_auc_score(labels, scores))


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
    both = ([_auc(labels, one) for one in (_filled(of), np.isnan(of))] for of in matrix.T)
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


class Check(NamedTuple):
    """One check."""

    description: str  # one line: what it does, and when it raises an alarm
    run: Callable[
        ..., Iterable[Finding]
    ]  # of the table, log and options, or of Parts; check and place follow
    at: Literal["table", "last", "every", "fitted", "ends"]  # once for the table; or at these of its steps


CHECKS = {
    "shift": Check(
        "everything after a page is altered in a sample of sessions; an alarm when a feature moves",
        _shift,
        "table",
    ),
    "known-columns": Check(
        "columns that a known table has computed from the outcome; an alarm when one is kept",
        _known_columns,
        "table",
    ),
    "duplicates": Check(
        "later sessions with all values of an earlier one, at the last step; an alarm above 5 % of a log's",
        _duplicates,
        "last",
    ),
    "single-column": Check(
        "the ROC AUC of every column, at every setting and step; an alarm above 0.95", _single_column, "every"
    ),
    "permuted-labels": Check(
        "models and features fitted on labels of other people, measured on true ones; an alarm when all of the 99.9 % "
        "interval of their ROC AUC lies above 0.55",
        _permuted_labels,
        "fitted",
    ),
    "drift": Check(
        "a classifier of later and earlier sessions; shows what drifts, and is no alarm", _drift, "ends"
    ),
}
"""All checks, in the order of a report."""


@dataclass(frozen=True)
class LeakAudit(Artifact, kind="leak_audit", recreate="diptych intent audit FEATURES"):
    """The findings of checks on a table of features."""

    features: str  # fingerprint of the table
    about: dict[str, Any]  # one line about it, the parts, and the options
    checks: dict[str, str]  # name → description of those that ran
    findings: tuple[Finding, ...] = field(default=())  # of all of them, in order

    @classmethod
    def stored(cls, features: FeatureTable, folder: Path | None = None) -> dict[str, Any] | None:
        """Return the audit in ``folder``, or the one in the features' own, as a scorer keeps it; None for none."""
        own = features.folder / FOLDER
        if folder is None and not cls.is_at(own):
            return None
        found: dict[str, Any] = encode(cls.open(folder or own), {})
        if found["features"] != features.fingerprint:
            wrong = f"the audit is of other features than {features.folder}"
            raise UsageError(wrong, "audit these: diptych intent audit")
        return found

    @property
    def alarms(self) -> list[Finding]:
        """Findings to look at before any number is believed."""
        return [finding for finding in self.findings if finding.alarm]

    def line(self) -> str:
        """Return one line."""
        alarms = f"{len(self.alarms)} alarm{'s' * (len(self.alarms) != 1)}"
        return f"{self.about['line']}: {len(self.findings)} findings of {len(self.checks)} checks, {alarms}"

    def table(self, every: bool = True) -> Table:
        """Return all findings; or alarms, and of every check what comes nearest to one."""
        rows, hidden = [], 0
        for name in self.checks:
            mine = [one for one in self.findings if one.check == name]
            nearest = max(mine, key=lambda one: -1.0 if one.value is None else one.value, default=None)
            shown = mine if every else [one for one in mine if one.alarm] or [one for one in [nearest] if one]
            hidden += len(mine) - len(shown)
            for one in shown:
                value = Cell.number(one.value, 3, one.low, one.high)
                text = Cell(f"{one.statistic}: {one.text}" if one.statistic else one.text, words=True)
                rows.append([Cell(name), Cell(one.where), value, Cell("ALARM" if one.alarm else ""), text])
        after = f"{hidden:,} more findings below these; --all shows them" if hidden else ""
        return Table("Leak audit", ("check", "where", "value", "", "what"), rows, after=after)

    def write_files(self, folder: Path) -> None:
        """Write the findings as a table."""
        columns = [one.name for one in fields(Finding)]
        write_csv(folder / _TABLE, columns, (list(asdict(one).values()) for one in self.findings))


def audit(
    features: FeatureTable,
    log: Log | None = None,
    *,
    options: AuditOptions | None = None,
    checks: Sequence[str] | None = None,
) -> LeakAudit:
    """Run checks on a table of features."""
    options = options or AuditOptions()
    for step in options.steps or ():
        if step not in features.steps:
            raise UnknownNameError("step", str(step), map(str, features.steps))
    if not features.is_whole and options.feature_set not in features.sets:
        raise UnknownNameError("feature set", options.feature_set, features.sets)
    for name in checks or ():
        if name not in CHECKS:
            raise UnknownNameError("check", name, CHECKS)
    chosen = [name for name in CHECKS if checks is None or name in checks]
    slices = slices_of(features, holdout=_LATER, seed=options.seed)
    findings: list[Finding] = []
    for name in track(chosen, "checks", unit="checks"):
        if CHECKS[name].at == "table":
            findings += (replace(one, check=name) for one in CHECKS[name].run(features, log, options))
        else:
            findings += _run(name, features, options, slices)
    about = {
        "line": features.describe(),
        "log": None if log is None else log.name,
        "parts": slices.note,
        "options": options.model_dump(mode="json"),
    }
    described = {name: CHECKS[name].description for name in chosen}
    return LeakAudit(features.fingerprint, about, described, tuple(findings))


def _run(name: str, table: FeatureTable, options: AuditOptions, slices: Slices) -> Iterator[Finding]:
    """Yield what a check of parts finds, at least one finding."""
    fitted = options.steps or [step for step in table.steps if step in _STEPS] or table.steps[-1:]
    steps = {"last": table.steps[-1:], "every": table.steps, "fitted": fitted}
    steps["ends"] = sorted({fitted[0], fitted[-1]})
    cells = [(setting, step) for setting in table.settings for step in steps[CHECKS[name].at]]
    cells = [cell for cell in cells if len(table.population(*cell))]
    if not cells:
        yield Finding(name, "", "no session to look at")
    for setting, step in track(cells, name, unit="settings and steps"):
        where = f"{setting}, " + ("whole sessions" if step < 0 else f"step {step}")
        parts = _parts(table, options, slices, setting, step)
        for one in [Finding("", "", parts)] if isinstance(parts, str) else CHECKS[name].run(parts):
            yield replace(one, check=name, where=", ".join(filter(None, (where, one.where))))


def _parts(
    table: FeatureTable, options: AuditOptions, slices: Slices, setting: str, step: int
) -> Parts | str:
    """Return the parts of a setting and step; or why they cannot be judged."""
    population = table.population(setting, step)
    keyed = Draws(options.seed, "sessions of an audit").below(1 << 31)
    order = population[np.argsort(draw_uniform(keyed, table.session_ids[population]), kind="stable")]
    rows = [np.sort(order[part[order]][: options.most]) for part in (slices.fit, slices.holdout)]
    labels = [table.labels[one] for one in rows]
    for name, one, least in zip(("earlier", "later"), labels, (FEWEST, options.fewest), strict=True):
        bought = int(one.sum())
        if min(bought, len(one) - bought) < least:
            return f"{bought:,} purchases among {len(one):,} {name} sessions: too few to say anything"
    features = table.features(setting, table.sets[0] if table.is_whole else options.feature_set, step)
    if not features:
        return "no feature is known at this step"
    views = [table.at(one, step) for one in rows]
    fitted, persons = fit_features(features, views[0]), [table.persons[one] for one in rows]
    matrices = [fitted.matrix(view) for view in views]
    return Parts(table, options, step, features, persons, labels, views, fitted, matrices)
