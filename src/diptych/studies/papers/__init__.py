"""Papers: what they print and what is run of it, as data; and in Python what formulas cannot say."""

from collections.abc import Iterable
from dataclasses import replace

from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula


def judged(evidence: Evidence, texts: Iterable[str], column: str = "") -> list[Finding]:
    """Decide formulas as the comparisons of one claim."""
    formulas = [Formula.parse(text, column) for text in texts]
    return [one.judge(evidence, len(formulas)) for one in formulas]


def worded(evidence: Evidence, what: str, formula: str) -> list[Finding]:
    """Decide a formula that is shown in words."""
    return [replace(Formula.parse(formula), text=what).judge(evidence)]
