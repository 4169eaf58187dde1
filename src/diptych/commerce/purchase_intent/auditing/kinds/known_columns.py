"""Columns of known tables that know the outcome."""

from __future__ import annotations

from diptych.commerce.purchase_intent.auditing.declaration import CHECKS, AuditInput, Check, Finding

__all__ = ["KNOWN_COLUMNS"]

_NAME = "known-columns"


def _run(given: AuditInput) -> list[Finding]:
    about = given.features.about
    findings = [
        Finding(_NAME, name, "this column is known to be computed from what was bought", alarm=True)
        for name in about.get("kept_leaking", ())
    ]
    findings += [
        Finding(_NAME, left["column"], f"left out: {left['why']}") for left in about.get("left_out", ())
    ]
    return findings or [Finding(_NAME, "", "no column is known to know the outcome")]


KNOWN_COLUMNS = CHECKS.add(
    Check(
        name=_NAME,
        description="columns that a known table's description says are made of the outcome; an alarm when one is kept",
        order=1,
        run=_run,
    )
)
