"""Bleeker et al. (2024): which row of each block of a table claims are judged on."""

from __future__ import annotations

from itertools import product

from diptych.studies.claims import chosen_of
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence
from diptych.studies.study import Study

_BY = "validation rsum"


def chosen(study: Study, evidence: Evidence) -> Further:
    """Return which of a block's bounds or budgets claims are judged on, and by what."""
    remarks = []
    for model, setup in product(("vse", "clip"), ("none", "unique")):
        block = [row.name for row in study.rows if row.name.startswith(f"{model}-{setup}-") and not row.extra]
        if judged := evidence.only(block, _BY):
            values = ", ".join(f"{row} {figure.mean:.1f}" for row, figure in judged.items())
            best = chosen_of(evidence, block, _BY)
            remarks.append(f"Chosen by {_BY} without shortcuts: {best}; of {values}.")
    return Further(remarks=remarks)
