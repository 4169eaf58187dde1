"""Papers: what they print and what is run of it, as data; and in Python what formulas cannot say."""

from collections.abc import Iterable

from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula


def judged(evidence: Evidence, texts: Iterable[str], column: str = "") -> list[Finding]:
    """Decide formulas as the comparisons of one claim."""
    formulas = [Formula.parse(text, column) for text in texts]
    return [one.judge(evidence, len(formulas)) for one in formulas]
