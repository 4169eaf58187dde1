"""What Jain and Verma (2021) say that formulas cannot."""

from __future__ import annotations

from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding

_RECALLS = [f"{direction} R@{k}" for direction in ("i2t", "t2i") for k in (1, 5, 10)]


def stable(evidence: Evidence) -> list[Finding]:
    """Judge whether deviations over seeds are below half a point in almost all recalls: five of six."""
    return [_stable(evidence, row) for row in ("convse", "convse++")]


def _stable(evidence: Evidence, row: str) -> Finding:
    what = f"{row}: standard deviation over seeds below 0.5 in at least five of six recalls"
    figures = [evidence.figure(row, column) for column in _RECALLS]
    spreads = [figure.sd for figure in figures if figure is not None and figure.sd is not None]
    if len(spreads) < len(_RECALLS):
        return Finding.missing(what, f"two seeds of {row}")
    small = sum(spread < 0.5 for spread in spreads)
    return Finding.of(what, small >= 5, f"{small} of 6, the largest {max(spreads):.2f}", (small - 5) / 6)
