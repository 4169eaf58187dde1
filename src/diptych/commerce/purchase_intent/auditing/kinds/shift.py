"""Does a feature know what comes later? Later events are altered, and nothing may move."""

from __future__ import annotations

from diptych.commerce.purchase_intent.auditing.declaration import CHECKS, AuditInput, Check, Finding
from diptych.commerce.purchase_intent.features.leak import shift_test

__all__ = ["SHIFT"]

_NAME = "shift"
_SHOWN = 5


def _run(given: AuditInput) -> list[Finding]:
    if given.features.is_whole:
        return [Finding(_NAME, "", "not looked at: whole sessions have no later events")]
    if given.log is None:
        return [Finding(_NAME, "", "not looked at: it needs the log that the features were made of")]
    found = shift_test(given.log, features=given.features, seed=given.options.seed)
    findings = [
        Finding(
            _NAME,
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
            _NAME,
            f"{one.setting}, step {one.step}, {one.column}",
            f"session {one.session_id}: {one.before} became {one.after} when only later events had changed",
            alarm=True,
        )
        for one in found.changed[:_SHOWN]
    ]
    return findings


SHIFT = CHECKS.add(
    Check(
        name=_NAME,
        description="everything after a page is altered in a sample of sessions; an alarm when a feature moves",
        order=0,
        run=_run,
    )
)
