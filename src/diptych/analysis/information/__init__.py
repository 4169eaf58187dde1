"""The information audit: how much of what images and captions say their embeddings hold.

``answers`` is what is true of them, ``questions`` codes it; ``probes`` are fitted by ``probing``, which runs them with
their controls; ``audit`` does all of it and turns costs into shares with intervals; ``gap_of`` reads Theorem 1's gap.
"""

from __future__ import annotations

from diptych.analysis.information.audit import (
    CONDITIONS,
    SIDES,
    Audit,
    AuditProtocol,
    Encoded,
    Gap,
    Held,
    audit,
    gap_of,
)
from diptych.analysis.information.probing import MOST_ROWS, PROBES, ProbeName
from diptych.analysis.information.questions import GROUPS, READING

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
