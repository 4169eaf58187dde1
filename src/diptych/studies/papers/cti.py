"""Hendriksen et al. (2022): the tables of every model that was evaluated, and charts, beside those of the chapter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.commerce.category_to_image.tables import evaluation_tables, percent, setting_name
from diptych.core.chart import Chart
from diptych.core.errors import DataError, StorageError
from diptych.core.table import Cell, Table
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.figures import series
from diptych.studies.published import document
from diptych.studies.study import Study

_LEVELS, _MODELS = (
    {one["key"]: one["title"] for one in document("cti")["lists"][name]} for name in ("levels", "models")
)
_MAP = "mAP@10"
_ERRORS = ("Errors of the first product", "Siblings", "Errors in the tree")

Bars = Mapping[str, Sequence[Figure | None]]  # what the legend calls bars, and a figure per label


def models(study: Study, evidence: Evidence) -> Further:
    """Return all measures with intervals over categories, and levels of the tree; a chart per setting."""
    charts = []
    for key, title in _LEVELS.items():
        figures = [evidence.figure(f"{model}-{key}", _MAP) for model in _MODELS]
        charts += _bars(title, _MODELS.values(), {"": figures}, x=f"{_MAP} in %", y="model", across=True)
    note = f"{_MAP} in per cent, divided by min(10, relevant products), with standard deviations over seeds. "
    note += "The settings ask different questions: numbers of one are not those of another."
    tables = _tables(evidence, "Which model finds products", "Levels of the tree")
    return Further(tables, charts, title="Models in three settings", note=note)


def unseen(study: Study, evidence: Evidence) -> Further:
    """Return seen and unseen categories of every model; a chart of those of CLIP-ITA."""
    bars = {one: [evidence.figure(f"{one}-{key}", _MAP) for key in _LEVELS] for one in ("seen", "unseen")}
    chart = _bars("Seen and unseen", _LEVELS.values(), bars, y=f"{_MAP} in %")
    note = (
        f"{_MAP} of CLIP-ITA with standard deviations over seeds; a setting without unseen categories has one bar. "
        "A model that is not trained has seen none of them: where unseen ones are harder for it too, they are harder "
        "categories, or have other numbers of products."
    )
    tables = _tables(evidence, "Seen and unseen categories")
    return Further(tables, chart, title="Seen and unseen categories", note=note)


def trees(study: Study, evidence: Evidence) -> Further:
    """Return errors of every model; a chart of those of CLIP-ITA by their tree."""
    bars: dict[str, list[Figure | None]] = {"same tree": [], "different tree": []}
    for key in _LEVELS:
        counts = {kind: evidence.figure(key, kind) for kind in bars}
        whole = sum(one.mean for one in counts.values() if one)
        for kind, one in counts.items():
            bars[kind].append(Figure(100 * one.mean / whole) if one and whole else None)
    chart = _bars("Errors by tree", _LEVELS.values(), bars, y="% of the errors")
    note = "Of the errors of each setting, the mean over seeds."
    return Further(_tables(evidence, *_ERRORS), chart, title="Errors by tree", note=note)


def depths(study: Study, evidence: Evidence) -> Further:
    """Return errors of every model; a chart per setting of how far up or down the tree those of CLIP-ITA are."""
    charts = []
    for key, title in _LEVELS.items():
        row = evidence.figures.get(key, {})
        found = sorted((int(name[4:]), name) for name in row if name.startswith("d = "))
        figures = [row[name] for _, name in found]
        charts += _bars(title, [str(d) for d, _ in found], {"": figures}, x="d", y="% of errors in the tree")
    title = "Figure 7.2: distance between the category that asked and that of a wrong first product"
    note = (
        "d = depth(c_p) − depth(c), of CLIP-ITA's errors within one tree, in per cent of them: below 0 a more general "
        "category was found, above 0 a more specific one. The most general setting has none: two roots are never in "
        "one tree."
    )
    return Further(_tables(evidence, *_ERRORS), charts, title=title, note=note)


def _tables(evidence: Evidence, *parts: str) -> list[Table]:
    """Return parts of the tables of the evaluation that rows were read from; nothing where it is gone."""
    folder = next((one for folders in evidence.kept.values() for one in folders), None)
    if folder is None:
        return []  # numbers are printed ones
    try:
        evaluation = ModelsEvaluation.open(folder.resolve().parents[1] / "evaluation")
    except (DataError, StorageError):
        return []  # begun anew, or moved: numbers are kept with the rows
    rows = []
    for setting, numbers in evaluation.numbers["settings"].items():
        for row in numbers["table"]:
            errors = numbers["errors"][row["model"]]
            wrong = Cell.number(errors["all"]["wrong"] / errors["runs"], 1)
            heads = Cell(row["label"], setting_name(setting))
            rows.append([heads, wrong, percent(errors["all"]["same_tree_share"])])
    after = (
        "First products of another category, the mean over seeds, and the share of them in the query's tree."
    )
    shares = Table("Errors in the tree", ("Model", "errors", "% in the tree"), rows, after=after)
    tables = {**evaluation_tables(evaluation), shares.caption: [shares]}
    return [table for part in parts for table in tables[part]]


def _bars(title: str, labels: Iterable[str], bars: Bars, **axes: Any) -> list[Chart]:
    """Return bars of what there is, one of each name per label; no chart of nothing."""
    there = [(label, *own) for label, *own in zip(labels, *bars.values(), strict=True) if any(own)]
    drawn = []
    for place, name in enumerate(bars, 1):
        figures = [one[place] for one in there]
        drawn.append(series(name, figures, "bar", [f"{one.mean:.1f}" if one else "" for one in figures]))
    return [Chart(title.capitalize(), drawn, categories=[one[0] for one in there], **axes)] if there else []
