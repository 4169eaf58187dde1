"""Hendriksen et al. (2022): the tables of every model that was evaluated, and charts, beside those of the chapter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from diptych.commerce.category_to_image.tables import evaluation_tables, percent, setting_name
from diptych.core.chart import Chart
from diptych.core.table import Cell, Table
from diptych.studies.catalogues import evaluation_of
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.figures import series
from diptych.studies.published import document
from diptych.studies.study import Study

_LEVELS, _MODELS = (
    {one["key"]: one["title"] for one in document("cti")["lists"][name]} for name in ("levels", "models")
)
_MAP = "mAP@10"

Bars = Mapping[str, Sequence[Figure | None]]
"""What a chart's legend calls bars, and a figure per label."""


def models(study: Study, evidence: Evidence) -> Further:
    """Return all measures with intervals over categories, and levels of the tree; a chart per setting."""
    charts = []
    for key, title in _LEVELS.items():
        figures = [evidence.figure(f"{model}-{key}", _MAP) for model in _MODELS]
        charts += _bars(title, _MODELS.values(), {"": figures}, f"{_MAP} in %", "model", across=True)
    return Further(
        _tables(evidence, "Which model finds products", "Levels of the tree"),
        charts,
        title="Models in three settings",
        note=f"{_MAP} in per cent, divided by min(10, relevant products), with standard deviations over seeds. "
        "The settings ask different questions: numbers of one are not those of another.",
    )


def unseen(study: Study, evidence: Evidence) -> Further:
    """Return seen and unseen categories of every model; a chart of those of CLIP-ITA."""
    bars = {one: [evidence.figure(f"{one}-{key}", _MAP) for key in _LEVELS] for one in ("seen", "unseen")}
    return Further(
        _tables(evidence, "Seen and unseen categories"),
        _bars("Seen and unseen", _LEVELS.values(), bars, "", f"{_MAP} in %"),
        title="Seen and unseen categories",
        note=f"{_MAP} of CLIP-ITA with standard deviations over seeds; a setting without unseen categories has one "
        "bar. A model that is not trained has seen none of them: where unseen ones are harder for it too, they are "
        "harder categories, or have other numbers of products.",
    )


def trees(study: Study, evidence: Evidence) -> Further:
    """Return errors of every model; a chart of those of CLIP-ITA by their tree."""
    bars: dict[str, list[Figure | None]] = {"same tree": [], "different tree": []}
    for key in _LEVELS:
        counts = {kind: evidence.figure(key, kind) for kind in bars}
        whole = sum(one.mean for one in counts.values() if one)
        for kind, one in counts.items():
            bars[kind].append(Figure(100 * one.mean / whole) if one and whole else None)
    return Further(
        _error_tables(evidence),
        _bars("Errors by tree", _LEVELS.values(), bars, "", "% of the errors"),
        title="Errors by tree",
        note="Of the errors of each setting, the mean over seeds.",
    )


def depths(study: Study, evidence: Evidence) -> Further:
    """Return errors of every model; a chart per setting of how far up or down the tree those of CLIP-ITA are."""
    charts = []
    for key, title in _LEVELS.items():
        row = evidence.figures.get(key, {})
        of = {int(name[4:]): figure for name, figure in row.items() if name.startswith("d = ")}
        labels, figures = map(str, sorted(of)), [of[d] for d in sorted(of)]
        charts += _bars(title, labels, {"": figures}, "d", "% of errors in the tree")
    return Further(
        _error_tables(evidence),
        charts,
        title="Figure 7.2: distance between the category that asked and that of a wrong first product",
        note="d = depth(c_p) − depth(c), of CLIP-ITA's errors within one tree, in per cent of them: below 0 a more "
        "general category was found, above 0 a more specific one. The most general setting has none: two roots are "
        "never in one tree.",
    )


def _tables(evidence: Evidence, *parts: str) -> list[Table]:
    """Return parts of the evaluation's own tables: every model in every setting."""
    found = evaluation_of(evidence)
    tables = {} if found is None else evaluation_tables(found)
    return [table for part in parts for table in tables.get(part, ())]


def _error_tables(evidence: Evidence) -> list[Table]:
    found, rows = evaluation_of(evidence), []
    for setting, of in () if found is None else found.numbers["settings"].items():
        for row in of["table"]:
            counts = of["errors"][row["model"]]
            wrong = Cell.number(counts["all"]["wrong"] / counts["runs"], 1)
            heads = Cell(row["label"], setting_name(setting))
            rows.append([heads, wrong, percent(counts["all"]["same_tree_share"])])
    after = (
        "First products of another category, the mean over seeds, and the share of them in the query's tree."
    )
    shares = Table("Errors in the tree", ("Model", "errors", "% in the tree"), rows, after=after)
    return [*_tables(evidence, "Errors of the first product", "Siblings"), *([shares] if rows else [])]


def _bars(title: str, labels: Iterable[str], bars: Bars, x: str, y: str, across: bool = False) -> list[Chart]:
    """Return bars of what there is, one of each name per label; no chart of nothing."""
    there = [(label, *own) for label, *own in zip(labels, *bars.values(), strict=True) if any(own)]
    drawn = []
    for place, name in enumerate(bars, 1):
        own = [one[place] for one in there]
        drawn.append(series(name, own, "bar", [f"{one.mean:.1f}" if one else "" for one in own]))
    return [Chart(title.capitalize(), drawn, x, y, [one[0] for one in there], across=across)] if there else []
