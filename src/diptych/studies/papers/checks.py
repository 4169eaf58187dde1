"""Checks of claims that formulas cannot say: of Jain and Verma (2021), Hendriksen et al. (2020) and our own studies."""

import re
from collections.abc import Sequence

from diptych.studies.evidence import LEVEL, LOW, Evidence, Finding, Formula, Status

_RECALLS = [f"{direction} R@{k}" for direction in ("i2t", "t2i") for k in (1, 5, 10)]
_STEP = re.compile(r"(\d+)\]")  # ends a place of Figure 6.7
_LEAST = 5  # rows below which a rank correlation says nothing


def stable(evidence: Evidence) -> list[Finding]:
    """Judge whether deviations over seeds are below half a point in almost all recalls: five of six."""
    findings = []
    for row in ("convse", "convse++"):
        what = f"{row}: standard deviation over seeds below 0.5 in at least five of six recalls"
        figures = [evidence.figure(row, column) for column in _RECALLS]
        spreads = [figure.sd for figure in figures if figure is not None and figure.sd is not None]
        if len(spreads) < len(_RECALLS):
            findings.append(Finding.missing(what, f"two seeds of {row}"))
            continue
        small = sum(spread < 0.5 for spread in spreads)
        detail = f"{small} of 6, the largest {max(spreads):.2f}"
        findings.append(Finding.of(what, small >= 5, detail, (small - 5) / 6))
    return findings


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
