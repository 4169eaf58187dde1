"""Whether the answer has got into the question: a leak audit of a table of features."""

from diptych.commerce.purchase_intent.auditing.checks import (
    CHECKS,
    Check,
    Finding,
    LeakAudit,
    audit,
)
from diptych.commerce.purchase_intent.options import AuditOptions

__all__ = ["CHECKS", "AuditOptions", "Check", "Finding", "LeakAudit", "audit"]
