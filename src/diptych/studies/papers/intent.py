"""Formulas of Figure 6.7 of Hendriksen et al. (2020), of the steps that were measured."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diptych.studies.evidence import LOW, Evidence
from diptych.studies.formulas import Formula

_STEP = re.compile(r"(\d+)\]")  # ends a place


def measured(evidence: Evidence, formulas: Sequence[str]) -> Sequence[str]:
    """Return the formulas, or parts of one, of steps that were measured; all where none was."""
    columns = {column for row in evidence.figures.values() for column in row}
    return [text for text in formulas if columns.issuperset(_STEP.findall(text))] or formulas


def joined(evidence: Evidence, formula: str, **parts: Sequence[str]) -> list[str]:
    """Return a formula whose variables are the parts that were measured, as arguments."""
    return [formula.format(**{name: ", ".join(measured(evidence, part)) for name, part in parts.items()})]


def clear_gains(evidence: Evidence, formulas: Sequence[str]) -> list[str]:
    """Return the formulas that begin with a gain, but those whose interval holds 0."""
    found = []
    for text in measured(evidence, formulas):
        row, column = Formula.parse(text).places[0]
        low = evidence.figure(row, column + LOW)
        if low is None or low.mean > 0:
            found.append(text)
    return found
