"""Leak audits: every check on a table of features, what it may look at and what it finds, kept as a folder.

::

    AUDIT/
      leak_audit.json     of what, how, all findings
      findings.csv        the same findings as a table
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import roc_auc
from diptych.commerce.purchase_intent.models import FEWEST
from diptych.commerce.purchase_intent.options import AuditOptions
from diptych.commerce.purchase_intent.scoring.training import Slices, slices_of
from diptych.core.artifact import Artifact, encode
from diptych.core.context import track
from diptych.core.draws import Draws, draw_uniform
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import write_csv
from diptych.core.registry import Registry
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.logs.log import Log
    from diptych.commerce.purchase_intent.features.fitting import Feature
    from diptych.commerce.purchase_intent.features.table import FeatureTable


@dataclass(frozen=True)
class AuditInput:
    """What a check may look at."""

    features: FeatureTable  # the table of features
    log: Log | None  # that it was made of, where it is there
    slices: Slices  # earlier and later sessions
    options: AuditOptions  # how


@dataclass(frozen=True)
class Finding:
    """What a check found in one place.

    Attributes:
        check: its name.
        where: a setting and step, or a column; empty of the whole.
        statistic: what ``value`` is; empty where there is no number.
        value: it.
        low, high: ends of its interval, where it has one.
        limit: from where on it is an alarm, where it can be one.
        alarm: whether it is one.
        text: what it means, in one sentence.
    """

    check: str
    where: str
    text: str
    alarm: bool = False
    statistic: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: e.g. ``single-column``.
        description: one line: what it does, and when it raises an alarm.
        order: of the checks in a report, lowest first.
        run: its findings; none only where there is nothing to look at, which it says in one.
    """

    name: str
    description: str
    order: int
    run: Callable[[AuditInput], list[Finding]]


CHECKS: Registry[Check] = Registry("check", "diptych.commerce.purchase_intent.auditing.kinds")
"""All checks; each is declared in a file of its own."""


_STEPS = (0, 1, 5, 10)
_LATER = 0.4  # share of sessions that models and columns are tried on


@dataclass(frozen=True, eq=False)
class Parts:
    """One setting and step."""

    setting: str  # anonymous, identified or all
    step: int  # pages that are open, -1 for whole sessions
    features: list[Feature]  # that a model would look at
    train: np.ndarray  # (n,) rows of the first part
    test: np.ndarray  # (m,) rows of both later ones
    too_few: str  # why nothing can be said; empty where it can

    @property
    def where(self) -> str:
        """For people."""
        return f"{self.setting}, " + ("whole sessions" if self.step < 0 else f"step {self.step}")


def model_steps(given: AuditInput) -> tuple[int, ...]:
    """The steps at which models are fitted: those that were asked for, or a few."""
    asked = given.options.steps
    if asked is not None:
        return asked
    some = tuple(step for step in given.features.steps if step in _STEPS)
    return some or given.features.steps[-1:]


def parts_of(given: AuditInput, steps: Iterable[int]) -> Iterator[Parts]:
    """Every setting and step that has any sessions, with at most ``options.most`` drawn ones in a part."""
    features, options = given.features, given.options
    for setting in features.settings:
        for step in steps:
            population = features.population(setting, step)
            if not len(population):
                continue
            fit = given.slices.fit[population]
            later = given.slices.holdout[population]
            train, test = (_some(given, population[part]) for part in (fit, later))
            name = features.sets[0] if features.is_whole else options.feature_set
            yield Parts(
                setting,
                step,
                features.features(setting, name, step),
                train,
                test,
                _too_few(features.labels[train], features.labels[test], options.fewest),
            )


def _some(given: AuditInput, rows: np.ndarray) -> np.ndarray:
    if len(rows) <= given.options.most:
        return rows
    keyed = Draws(given.options.seed, "sessions of an audit").below(1 << 31)
    draws = draw_uniform(keyed, given.features.session_ids[rows])
    return np.sort(rows[np.argsort(draws, kind="stable")[: given.options.most]])


def _too_few(train: np.ndarray, test: np.ndarray, fewest: int) -> str:
    for name, labels, least in (("earlier", train, FEWEST), ("later", test, fewest)):
        bought = int(labels.sum())
        if min(bought, len(labels) - bought) < least:
            return f"{bought:,} purchases among {len(labels):,} {name} sessions: too few to say anything"
    return ""


def column_aucs(matrix: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(c,) ROC AUC of every column, in the direction in which it is better, or of whether it has a value.

    Args:
        matrix: (n, c) with NaN where there is no value.
        labels: (n,) bool with both kinds.
    """
    return np.array([_auc(matrix[:, column], labels) for column in range(matrix.shape[1])])


def best_column(names: Sequence[str], aucs: np.ndarray) -> tuple[str, float]:
    """The name and ROC AUC of the best; an empty name and 0.5 where there is no column."""
    if not len(aucs):
        return "", 0.5
    best = int(np.argmax(aucs))
    return names[best], float(aucs[best])


def _auc(values: np.ndarray, labels: np.ndarray) -> float:
    missing = np.isnan(values)
    if not missing.any():
        return _either_way(values, labels)
    there = values[~missing]
    # A missing value is below all others here, and its being missing a column of its own.
    filled = np.where(missing, there.min() - 1 if len(there) else 0.0, values)
    return max(_either_way(filled, labels), _either_way(missing.astype(np.float64), labels))


def _either_way(values: np.ndarray, labels: np.ndarray) -> float:
    auc = float(roc_auc(values, labels))
    return max(auc, 1 - auc)


def permuted_by_person(labels: np.ndarray, persons: np.ndarray, seed: Sequence[int]) -> np.ndarray:
    """Lay the labels of people on other people's sessions.

    The labels of all sessions, person after person in one random order, become those of the sessions in another:
    as many purchases as before, mostly together where they were one person's, and independent of who it is.

    Args:
        labels: (n,) bool.
        persons: (n,) int64.

    Returns:
        (n,) bool.
    """
    people, place = np.unique(persons, return_inverse=True)
    random = np.random.default_rng(list(seed))
    taken, laid = (np.argsort(random.permutation(len(people))[place], kind="stable") for _ in range(2))
    permuted = np.empty_like(labels)
    permuted[laid] = labels[taken]
    return permuted


def mean_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Student's interval of the mean of a few independent values."""
    from scipy import stats

    given = np.asarray(values, dtype=np.float64)
    half = stats.t.ppf((1 + confidence) / 2, len(given) - 1) * given.std(ddof=1) / np.sqrt(len(given))
    return float(given.mean() - half), float(given.mean() + half)


_TABLE = "findings.csv"
FOLDER = "audit"
"""Of an audit, in the folder of its features."""


@dataclass(frozen=True)
class LeakAudit(Artifact, kind="leak_audit", recreate="diptych intent audit FEATURES"):
    """What the checks found.

    Attributes:
        features: fingerprint of the table.
        about: one line about it, the parts, and the options.
        checks: name → description of those that ran.
        findings: of all of them, in order.
    """

    features: str
    about: dict[str, Any]
    checks: dict[str, str]
    findings: tuple[Finding, ...] = field(default=())

    @classmethod
    def beside(cls, features: FeatureTable, folder: Path | None = None) -> dict[str, Any] | None:
        """Return the audit in ``folder``, or the one in the features' own, as a scorer keeps it; None for none."""
        own = features.folder / FOLDER
        if folder is None and not cls.is_at(own):
            return None
        found: dict[str, Any] = encode(cls.open(folder or own), {})
        if found["features"] != features.fingerprint:
            raise UsageError(
                f"the audit is of other features than {features.folder}",
                "audit these: diptych intent audit",
            )
        return found

    @property
    def alarms(self) -> list[Finding]:
        """Findings that somebody has to look at before any number is believed."""
        return [finding for finding in self.findings if finding.alarm]

    def line(self) -> str:
        """One line."""
        return (
            f"{self.about['line']}: {len(self.findings)} findings of {len(self.checks)} checks, "
            f"{len(self.alarms)} alarm{'s' * (len(self.alarms) != 1)}"
        )

    def table(self, every: bool = True) -> Table:
        """Return all findings; or alarms, and of every check what comes nearest to one."""
        shown = [one for one in self.findings if every or one.alarm]
        for name in self.checks:
            mine = [one for one in self.findings if one.check == name]
            if mine and not any(one.check == name for one in shown):
                shown.append(max(mine, key=lambda one: -1.0 if one.value is None else one.value))
        rows = []
        for one in sorted(shown, key=lambda one: list(self.checks).index(one.check)):
            ends = "" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}"
            value = Cell("" if one.value is None else f"{one.value:.3f}", ends, value=one.value)
            what = Cell(f"{one.statistic}: {one.text}" if one.statistic else one.text, words=True)
            rows.append([Cell(one.check), Cell(one.where), value, Cell("ALARM" if one.alarm else ""), what])
        hidden = len(self.findings) - len(shown)
        after = f"{hidden:,} more findings below these; --all shows them" if hidden else ""
        return Table("Leak audit", ("check", "where", "value", "", "what"), rows, after=after)

    def write_files(self, folder: Path) -> None:
        """Write the findings as a table."""
        columns = [one.name for one in fields(Finding)]
        rows = ([getattr(finding, name) for name in columns] for finding in self.findings)
        write_csv(folder / _TABLE, columns, rows)


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
    chosen = sorted(CHECKS if checks is None else map(CHECKS.get, checks), key=lambda check: check.order)
    given = AuditInput(features, log, slices_of(features, holdout=_LATER, seed=options.seed), options)
    findings = [finding for check in track(chosen, "checks", unit="checks") for finding in check.run(given)]
    return LeakAudit(
        features.fingerprint,
        {
            "line": features.describe(),
            "log": None if log is None else log.name,
            "parts": given.slices.note,
            "options": options.model_dump(mode="json"),
        },
        {check.name: check.description for check in chosen},
        tuple(findings),
    )
