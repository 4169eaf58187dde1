"""Nguyen et al. (ECIR 2024), Multimodal Learned Sparse Retrieval: what formulas cannot say."""

from __future__ import annotations

from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula

_HEADS = tuple(f"d2s-{eta}-c+w" for eta in ("1e-2", "1e-3", "1e-4", "1e-5"))


def overlap(evidence: Evidence) -> list[Finding]:
    """Judge the mean overlap of the top 10: over heads, or as it is printed, in a row of its own."""
    printed = evidence.figure("overlap", "overlap@10") is not None
    rows = ["overlap"] if printed else list(_HEADS)
    numbers = ", ".join(f"[{row}]" for row in rows)
    return [Formula.parse(f"60 <= mean({numbers}) <= 80", "overlap@10").judge(evidence)]
