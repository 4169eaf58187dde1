"""Leak audits: every check on a table of features and what it finds, kept as a folder.

::

    AUDIT/
      leak_audit.json     of what, how, all findings
      findings.csv        the same findings as a table
"""

from __future__ import annotations

import itertools
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
from diptych.core.registry import Registry
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.logs.log import Log
    from diptych.commerce.purchase_intent.features.table import FeatureTable

FOLDER = "audit"
"""Of an audit, in the folder of its features."""

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


Steps = Literal["table", "last", "every", "fitted", "ends"]
"""Where a check runs: once for the table; or at these of its steps."""

_NUMBERS = itertools.count()


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


class AuditInput(NamedTuple):
    """What a check of the whole table may look at."""

    features: FeatureTable
    log: Log | None  # that it was made of, where it is there
    options: AuditOptions


@dataclass(frozen=True)
class Check:
    """One check."""

    name: str  # e.g. single-column
    description: str  # one line: what it does, and when it raises an alarm
    run: Callable[[Any], Iterable[Finding]]  # of an AuditInput or of Parts; check and place are filled in
    at: Steps = "table"
    order: int = 99  # in a report


CHECKS: Registry[Check] = Registry("check", __name__)
"""All checks, in the order of a report: each registers itself."""


def _check(at: Steps, description: str) -> Callable[[Callable[[Any], Iterable[Finding]]], object]:
    """Declare a check by the function that makes its findings."""

    def add(run: Callable[[Any], Iterable[Finding]]) -> object:
        name = run.__name__.strip("_").replace("_", "-")
        return CHECKS.add(Check(name, description, run, at, next(_NUMBERS)))

    return add


@_check("table", "everything after a page is altered in a sample of sessions; an alarm when a feature moves")
def _shift(given: AuditInput) -> Iterator[Finding]:
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


@_check("table", "columns that a known table has computed from the outcome; an alarm when one is kept")
def _known_columns(given: AuditInput) -> Iterator[Finding]:
    kept, left_out = (given.features.about.get(name, ()) for name in ("kept_leaking", "left_out"))
    for name in kept:
        yield Finding("", name, "this column is known to be computed from what was bought", alarm=True)
    for one in left_out:
        yield Finding("", one["column"], f"left out: {one['why']}")
    if not kept and not left_out:
        yield Finding("", "", "no column is known to know the outcome")


@_check(
    "last",
    "later sessions with all values of an earlier one, at the last step; an alarm above 5 % of a log's",
)
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


@_check("every", "the ROC AUC of every column, at every setting and step; an alarm above 0.95")
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


@_check(
    "fitted",
    "models and features fitted on labels of other people, measured on true ones; an alarm when all of the 99.9 % "
    "interval of their ROC AUC lies above 0.55",
)
def _permuted_labels(parts: Parts) -> Iterator[Finding]:
    # What was learned is noise: sometimes it fits, sometimes the opposite does, and over repeats the ROC AUC is 0.5. It
    # is ROC AUC that is judged, for its mean is 0.5 whatever the noise; the mean average precision of scores that are
    # right as often as wrong lies above the base rate where the features are strong, and is only reported. A leak, such
    # as a feature that looks up the label of the session it is computed of, is right every time.
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
        precisions.append(_sklearn().average_precision_score(truth, p))
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


@_check("ends", "a classifier of later and earlier sessions; shows what drifts, and is no alarm")
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


def _sklearn() -> Any:
    return require("sklearn.metrics", "commerce", "an audit")


def _auc(labels: np.ndarray, scores: np.ndarray) -> float:
    return float(_sklearn().roc_auc_score(labels, scores))


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


@dataclass(frozen=True)
class LeakAudit(Artifact, kind="leak_audit", recreate="diptych intent audit FEATURES"):
    """What the checks found."""

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
    chosen = sorted(CHECKS if checks is None else map(CHECKS.get, checks), key=lambda one: one.order)
    slices = slices_of(features, holdout=_LATER, seed=options.seed)
    given = AuditInput(features, log, options)
    findings = [one for check in track(chosen, "checks", unit="checks") for one in _run(check, given, slices)]
    about = {
        "line": features.describe(),
        "log": None if log is None else log.name,
        "parts": slices.note,
        "options": options.model_dump(mode="json"),
    }
    described = {check.name: check.description for check in chosen}
    return LeakAudit(features.fingerprint, about, described, tuple(findings))


def _run(check: Check, given: AuditInput, slices: Slices) -> Iterator[Finding]:
    """Yield what a check finds, at least one finding."""
    table, options = given.features, given.options
    if check.at == "table":
        yield from (replace(one, check=check.name) for one in check.run(given))
        return
    fitted = options.steps or [step for step in table.steps if step in _STEPS] or table.steps[-1:]
    steps = {"last": table.steps[-1:], "every": table.steps, "fitted": fitted}
    steps["ends"] = sorted({fitted[0], fitted[-1]})
    cells = [(setting, step) for setting in table.settings for step in steps[check.at]]
    cells = [cell for cell in cells if len(table.population(*cell))]
    if not cells:
        yield Finding(check.name, "", "no session to look at")
    for setting, step in track(cells, check.name, unit="settings and steps"):
        where = f"{setting}, " + ("whole sessions" if step < 0 else f"step {step}")
        parts = _parts(given, slices, setting, step)
        for one in [Finding("", "", parts)] if isinstance(parts, str) else check.run(parts):
            yield replace(one, check=check.name, where=", ".join(filter(None, (where, one.where))))


def _parts(given: AuditInput, slices: Slices, setting: str, step: int) -> Parts | str:
    """Return the parts of a setting and step; or why they cannot be judged."""
    table, options, population = given.features, given.options, given.features.population(setting, step)
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
