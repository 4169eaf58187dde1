"""What our own studies say that formulas cannot."""

from __future__ import annotations

from diptych.studies.evidence import Evidence
from diptych.studies.formulas import LEVEL, Finding, Status

_LEAST = 5  # rows below which a rank correlation says nothing


def more_is_worse(evidence: Evidence) -> list[Finding]:
    """Judge whether the rank correlation of effective negatives and recall sum is below 0, over finished rows."""
    from scipy.stats import spearmanr

    findings = []
    finished = [row for row in evidence.figures if "-after-" not in row]
    scores = evidence.only(finished, "rsum")
    for way in ("i2t", "t2i"):
        what = f"{way}: rank correlation of C^eff and rsum is below 0"
        negatives = evidence.only(list(scores), f"{way} C^eff")
        if len(negatives) < _LEAST:
            findings.append(Finding.missing(what, f"{_LEAST} rows, of which {len(negatives)} are there"))
            continue
        pairs = [(figure.mean, scores[row].mean) for row, figure in negatives.items()]
        rho, p = (float(one) for one in spearmanr(*zip(*pairs, strict=True)))
        detail = f"ρ = {rho:+.2f} over {len(pairs)} losses, p = {p:.2g}"
        status: Status = "undecided" if p >= LEVEL else "holds" if rho < 0 else "fails"
        findings.append(Finding(what, status, detail, -rho))
    return findings
