"""``diptych intent audit``: whether features know what they must not know."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.intent.evaluate import Features
from diptych.cli.sources import OutOption
from diptych.commerce.purchase_intent.options import AuditOptions
from diptych.core.errors import DataError


class ChecksOptions(OutOption):
    """Which checks are run, and what is shown of them."""

    log: Path | None = Field(None, description="The log that they were made of; the shift test needs it.")
    check: list[str] = Field(
        [],
        description="shift, known-columns, single-column, permuted-labels, drift; all by default. Repeatable.",
        json_schema_extra={"names": "diptych.commerce.purchase_intent.auditing:CHECKS"},
    )
    all: bool = Field(False, description="Show every finding, not the foremost.")
    strict: bool = Field(False, description="Exit with 1 when there is an alarm.")


def audit(features: Features, options: AuditOptions, wanted: ChecksOptions) -> None:
    """Look for leaks: features that know the future or the label.

    Without --out the audit is written into the features' folder; a scorer trained on the features carries it in its
    model card.

    Examples:
        diptych intent audit features --log log
        diptych intent audit features --check single-column --strict --out audit
    """
    from diptych.commerce.purchase_intent.auditing import audit as run
    from diptych.commerce.purchase_intent.auditing.checks import FOLDER
    from diptych.commerce.purchase_intent.features import open_features
    from diptych.data.logs import Log

    target = wanted.out or features / FOLDER
    with progress():
        log = None if wanted.log is None else Log.open(wanted.log)
        found = run(open_features(features), log, options=options, checks=wanted.check or None)
        found.save(target)
    show(found.table(wanted.all))
    say(found.line())
    say(f"all findings in {target}")
    if found.alarms and wanted.strict:
        raise DataError(f"{len(found.alarms)} alarms", "see what the columns are computed from, and when")
    next_step(["diptych", "intent", "train", features, "--out", "scorer"])
