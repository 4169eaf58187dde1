"""Numbers of chapter 5's retrieval tables as its checks and figures read them.

A collection called ``NAME-fg`` holds finer captions of the pictures of ``NAME``. The control is no model of the
paper: what is said of models is not said of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from diptych.studies.brittleness_rows import CONTROL, FINER, NONE
from diptych.studies.evidence import Evidence


def pairs_of(evidence: Evidence) -> list[tuple[str, str]]:
    """Collections with their finer ones."""
    names = {name.lower(): name for name in evidence.centric}
    return [(name, names[low + FINER]) for low, name in names.items() if low + FINER in names]


def models_of(evidence: Evidence) -> list[str]:
    """The rows that what is said of models is said of."""
    return [row for row in evidence.figures if row != CONTROL]


def relative_change(evidence: Evidence, row: str, collection: str, column: str) -> float | None:
    """How far a row's sum under a perturbation is from its sum without one; None with one missing or 0."""
    clean, changed = (evidence.figure(row, f"{collection} {name}") for name in (NONE, column))
    if clean is None or changed is None or clean.mean <= 0:
        return None
    return changed.mean / clean.mean - 1


def share_text(value: float) -> str:
    """``+1.5 %`` of 0.015."""
    return f"{100 * value:+.1f} %"


def listed(cases: Sequence[str], most: int = 6) -> str:
    """Some cases by name, the others counted."""
    more = len(cases) - most
    return "; ".join([*cases[:most], *([f"and {more} more"] if more > 0 else [])])
