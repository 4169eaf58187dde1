"""What our own studies say that formulas cannot, and their figures."""

from __future__ import annotations

import re

from diptych.core.chart import Chart, Series
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence
from diptych.studies.figures import grouped_bars
from diptych.studies.formulas import LEVEL, Finding, Status
from diptych.studies.study import Study

_FAMILIES = {"top": "triplet loss, k hardest", "tau": "NT-Xent over τ", "after": "after epochs 1 and 3"}
_LEAST = 5  # rows below which a rank correlation says nothing


def _points(evidence: Evidence, study_rows: list[str], way: str) -> list[tuple[float, float]]:
    found = [(evidence.figure(row, f"{way} C^eff"), evidence.figure(row, "rsum")) for row in study_rows]
    return [(one.mean, two.mean) for one, two in found if one is not None and two is not None]


def more_is_worse(evidence: Evidence) -> list[Finding]:
    """Judge whether the rank correlation of effective negatives and recall sum is below 0, over finished rows."""
    from scipy.stats import spearmanr

    findings = []
    finished = [row for row in evidence.figures if "-after-" not in row]
    for way in ("i2t", "t2i"):
        what = f"{way}: rank correlation of C^eff and rsum is below 0"
        points = _points(evidence, finished, way)
        if len(points) < _LEAST:
            findings.append(Finding.missing(what, f"{_LEAST} rows, of which {len(points)} are there"))
            continue
        found = spearmanr(*zip(*points, strict=True), alternative="two-sided")
        rho, p = float(found.statistic), float(found.pvalue)
        detail = f"ρ = {rho:+.2f} over {len(points)} losses, p = {p:.2g}"
        status: Status = "undecided" if p >= LEVEL else "holds" if rho < 0 else "fails"
        findings.append(Finding(what, status, detail, -rho))
    return findings


def scatter(study: Study, evidence: Evidence) -> Further:
    """Draw recall sums against effective numbers of negatives, a point per loss."""
    charts = []
    for way in ("i2t", "t2i"):
        drawn = []
        for key, name in _FAMILIES.items():
            rows = [row.name for row in study.rows if ("after" in row.name) == (key == "after")]
            points = sorted(_points(evidence, [row for row in rows if key in row], way))
            if points:
                x, y = zip(*points, strict=True)
                drawn.append(Series(name, y, x, mark="point"))
        if drawn:
            charts.append(Chart(f"{way}: rsum against C^eff", drawn, "effective negatives", "rsum", log="x"))
    note = "A point per loss; those after epochs 1 and 3 are the same losses before they are trained."
    return Further(charts=charts, title="The central claim as a scatter", note=note)


def sizes(study: Study, evidence: Evidence) -> Further:
    """Draw recall sums over numbers of training images, with LTD and without."""
    drawn = []
    for kind, name in (("none", "contrastive alone"), ("minilm", "LTD, MiniLM")):
        points = []
        for row in study.rows:
            size = re.fullmatch(rf"ltd-{kind}-(\d+)", row.name)
            figure = evidence.figure(row.name, "rsum")
            if size is not None and figure is not None:
                points.append((float(size[1]), figure.mean))
        if points:
            x, y = zip(*sorted(points), strict=True)
            drawn.append(Series(name, y, x))
    charts = [Chart("rsum over training images", drawn, "images", "rsum", log="x")] if drawn else []
    return Further(charts=charts, title="Fewer images", note="Nested sets of images, the same recipe.")


def left(study: Study, evidence: Evidence) -> Further:
    """Draw what is left without shortcuts, and what there is with them, by how was trained."""
    rows = {row.name: row.label for row in study.rows}
    bars = {"rsum": "evaluated without", "with rsum": "evaluated with shortcuts"}
    chance = {
        f"chance: {one.mean:.1f}": one.mean for one in evidence.only(list(rows), "chance rsum").values()
    }
    chart = grouped_bars("rsum by what was trained", evidence, rows, bars, chance)
    note = "Recall sum on the test split, evaluated without and with shortcuts; dotted: chance."
    return Further(charts=[chart] if chart else [], title="What is left", note=note)
