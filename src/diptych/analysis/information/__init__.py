"""The information audit: how much of what images and captions say their embeddings hold.

``answers`` is what is true of them, ``questions`` codes it; ``probes`` are fitted by ``probing``, which runs them with
their controls and turns costs into shares with intervals; ``audit`` does all of it, ``audit_report`` is the result and
``gap_of`` reads Theorem 1's gap from it.
"""

from __future__ import annotations

from diptych.analysis.information.answers import GROUPS
from diptych.analysis.information.audit import Encoded, audit
from diptych.analysis.information.audit_report import (
    CONDITIONS,
    READING,
    SIDES,
    Audit,
    AuditProtocol,
    Gap,
    Held,
    gap_of,
)
from diptych.analysis.information.probing import MOST_ROWS, PROBES, ProbeName

__all__ = [
    "CONDITIONS",
    "GROUPS",
    "MOST_ROWS",
    "PROBES",
    "READING",
    "SIDES",
    "Audit",
    "AuditProtocol",
    "Encoded",
    "Gap",
    "Held",
    "ProbeName",
    "audit",
    "gap_of",
]
