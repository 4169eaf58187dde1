"""Leak audits: every check on a table of features and what it finds, kept as a folder.

::

    AUDIT/
      leak_audit.json     of what, how, all findings
      findings.csv        the same findings as a table
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diptych.commerce.purchase_intent.features.fitting import Feature, FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.view import SessionsView
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
    from diptych.commerce.purchase_intent.features.table import FeatureTable

FOLDER = "audit"
"""Of an audit, in the folder of its features."""

_TABLE = "findings.csv"
_STEPS = (0, 1, 5, 10)
_LATER = 0.4  # share of sessions that models and columns are tried on


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


@dataclass(frozen=True, eq=False)
class Parts:
    """Earlier and later sessions of one setting and step, as pairs."""

    table: FeatureTable
    options: AuditOptions
    setting: str
    step: int
    rows: tuple[np.ndarray, np.ndarray]

    @property
    def where(self) -> str:
        """The place in words."""
        return f"{self.setting}, " + ("whole sessions" if self.step < 0 else f"step {self.step}")

    @property
    def labels(self) -> list[np.ndarray]:
        """(n,) and (m,) bool."""
        return [self.table.labels[rows] for rows in self.rows]

    @cached_property
    def features(self) -> list[Feature]:
        """What a model would look at."""
        feature_set = self.table.sets[0] if self.table.is_whole else self.options.feature_set
        return self.table.features(self.setting, feature_set, self.step)

    @cached_property
    def views(self) -> list[SessionsView]:
        """What is known at the step."""
        return [self.table.at(rows, self.step) for rows in self.rows]

    @cached_property
    def fitted(self) -> FittedFeatures:
        """Features fitted on the earlier part."""
        return fit_features(self.features, self.views[0])

    @cached_property
    def matrices(self) -> list[np.ndarray]:
        """(n, columns) and (m, columns) of the fitted features."""
        return [self.fitted.matrix(view) for view in self.views]

    @property
    def problem(self) -> str:
        """Why nothing can be said; empty where it can."""
        least = (FEWEST, self.options.fewest)
        for name, labels, fewest in zip(("earlier", "later"), self.labels, least, strict=True):
            bought = int(labels.sum())
            if min(bought, len(labels) - bought) < fewest:
                return f"{bought:,} purchases among {len(labels):,} {name} sessions: too few to say anything"
        return "" if self.features else "no feature is known at this step"


class AuditInput(NamedTuple):
    """What a check of the whole table may look at."""

    features: FeatureTable
    log: Log | None  # that it was made of, where it is there
    options: AuditOptions


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: e.g. ``single-column``.
        description: one line: what it does, and when it raises an alarm.
        run: makes findings, of the input, or of the parts of a setting and step; their check and place are filled in.
        steps: the numbers of those at which it runs, among the table's and those of the options; None for the input.
    """

    name: str
    description: str
    run: Callable[[Any], Iterable[Finding]]
    steps: Callable[[Sequence[int], Sequence[int]], Iterable[int]] | None = None
    order: int = 99  # of a report


CHECKS: Registry[Check] = Registry("check", "diptych.commerce.purchase_intent.auditing.kinds")
"""All checks."""


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
            raise UsageError(
                f"the audit is of other features than {features.folder}",
                "audit these: diptych intent audit",
            )
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
                value = Cell.number(one.value, 3, one.low, one.high) if one.value is not None else Cell("")
                text = Cell(f"{one.statistic}: {one.text}" if one.statistic else one.text, words=True)
                rows.append([Cell(name), Cell(one.where), value, Cell("ALARM" if one.alarm else ""), text])
        after = f"{hidden:,} more findings below these; --all shows them" if hidden else ""
        return Table("Leak audit", ("check", "where", "value", "", "what"), rows, after=after)

    def write_files(self, folder: Path) -> None:
        """Write the findings as a table."""
        columns = [one.name for one in fields(Finding)]
        write_csv(folder / _TABLE, columns, (asdict(finding).values() for finding in self.findings))


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
    if check.steps is None:
        yield from (replace(one, check=check.name) for one in check.run(given))
        return
    fitted = options.steps or [one for one in table.steps if one in _STEPS] or table.steps[-1:]
    keyed = Draws(options.seed, "sessions of an audit").below(1 << 31)
    draws, found = draw_uniform(keyed, table.session_ids), False
    cells = [(setting, step) for setting in table.settings for step in check.steps(table.steps, fitted)]
    for setting, step in track(cells, check.name, unit="settings and steps"):
        population = table.population(setting, step)
        if not len(population):
            continue
        rows = (population[part[population]] for part in (slices.fit, slices.holdout))
        some = (np.sort(one[np.argsort(draws[one], kind="stable")[: options.most]]) for one in rows)
        parts, found = Parts(table, options, setting, step, (next(some), next(some))), True
        for one in [Finding("", "", parts.problem)] if parts.problem else check.run(parts):
            where = ", ".join(filter(None, (parts.where, one.where)))
            yield replace(one, check=check.name, where=where)
    if not found:
        yield Finding(check.name, "", "no session to look at")
