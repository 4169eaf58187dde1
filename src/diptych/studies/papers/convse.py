"""What Jain and Verma (2021) say that formulas cannot."""

from __future__ import annotations

from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding

_RECALLS = [f"{direction} R@{k}" for direction in ("i2t", "t2i") for k in (1, 5, 10)]


def stable(evidence: Evidence) -> list[Finding]:
    """Judge whether deviations over seeds are below half a point in almost all recalls: five of six."""
    findings = []
    for row in ("convse", "convse++"):
        what = f"{row}: standard deviation over seeds below 0.5 in at least five of six recalls"
        figures = [evidence.figure(row, column) for column in _RECALLS]
        spreads = [figure.sd for figure in figures if figure is not None and figure.sd is not None]
        small = sum(spread < 0.5 for spread in spreads)
        if len(spreads) < len(_RECALLS):
            findings.append(Finding.missing(what, f"two seeds of {row}"))
        else:
            detail = f"{small} of 6, the largest {max(spreads):.2f}"
            findings.append(Finding.of(what, small >= 5, detail, (small - 5) / 6))
    return findings
