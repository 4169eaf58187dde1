"""A leak audit: every check on a table of features, kept as a folder.

::

    AUDIT/
      leak_audit.json     of what, how, all findings
      findings.csv    the same findings as a table
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.auditing.checks import CHECKS, AuditInput, AuditOptions, Finding
from diptych.commerce.purchase_intent.evaluation.plan import split_input
from diptych.commerce.purchase_intent.scoring.fitting import slices_of
from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.errors import UnknownNameError
from diptych.core.files import write_csv

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.data.logs.log import Log

_TABLE = "findings.csv"


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
    given = AuditInput(features, log, slices_of(split_input(features), seed=options.seed), options)
    findings = [finding for check in track(chosen, "checks", unit="checks") for finding in check.run(given)]
    return LeakAudit(
        features.fingerprint,
        {
            "line": features.describe(),
            "log": None if log is None else log.name,
            "parts": given.slices.note,
            "options": {**asdict(options), "steps": None if options.steps is None else list(options.steps)},
        },
        {check.name: check.description for check in chosen},
        tuple(findings),
    )
