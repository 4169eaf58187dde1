"""Whether the answer has got into the question: a leak audit of a table of features."""

from diptych.commerce.purchase_intent.auditing.checks import (
    CHECKS,
    AuditOptions,
    Check,
    Finding,
    LeakAudit,
    audit,
)

__all__ = ["CHECKS", "AuditOptions", "Check", "Finding", "LeakAudit", "audit"]
