"""Hendriksen et al. (2022): tables of every model that was evaluated, and charts, with those of the chapter."""

from collections.abc import Mapping, Sequence
from typing import Any

from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.commerce.category_to_image.results import model_name, percent, setting_name
from diptych.core.chart import Chart
from diptych.core.errors import StorageError
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
_TREES = ("same tree", "different tree")


def further(study: Study, evidence: Evidence) -> Further:
    """Return tables of every model, and charts: of models, or of CLIP-ITA's categories or errors."""
    charts: list[Chart] = []
    match study.measure["table"]:
        case "retrieved":
            for level, title in _LEVELS.items():
                of_model = {name: evidence.figure(f"{key}-{level}", _MAP) for key, name in _MODELS.items()}
                charts += _bars(title, {"": of_model}, x=f"{_MAP} in %", y="model", across=True)
        case "seen":
            bars = {
                group: {title: evidence.figure(f"{group}-{level}", _MAP) for level, title in _LEVELS.items()}
                for group in ("seen", "unseen")
            }
            charts += _bars("Seen and unseen", bars, y=f"{_MAP} in %")
        case "error-trees":
            shares: dict[str, dict[str, Figure | None]] = {tree: {} for tree in _TREES}
            for level, title in _LEVELS.items():
                counts = [evidence.figure(level, tree) for tree in _TREES]
                whole = sum(one.mean for one in counts if one)
                for tree, one in zip(_TREES, counts, strict=True):
                    shares[tree][title] = Figure(100 * one.mean / whole) if one and whole else None
            charts += _bars("Errors by tree", shares, y="% of the errors")
        case "error-depths":
            for level, title in _LEVELS.items():
                row = evidence.figures.get(level, {})
                depths = sorted((int(name[4:]), figure) for name, figure in row.items() if name[:4] == "d = ")
                of_depth = {str(depth): figure for depth, figure in depths}
                charts += _bars(title, {"": of_depth}, x="d", y="% of errors in the tree")
    given = dict(study.figures)
    return Further(_tables(evidence, given.pop("tables")), charts, **given)


def _bars(title: str, bars: Mapping[str, Mapping[str, Figure | None]], **axes: Any) -> list[Chart]:
    labels = [label for label in next(iter(bars.values())) if any(of[label] for of in bars.values())]
    drawn = []
    for name, of in bars.items():
        figures = [of[label] for label in labels]
        drawn.append(series(name, figures, "bar", [f"{one.mean:.1f}" if one else "" for one in figures]))
    return [Chart(title.capitalize(), drawn, categories=labels, **axes)] if labels else []


def _tables(evidence: Evidence, parts: Sequence[str]) -> list[Table]:
    folder = next((one for folders in evidence.kept.values() for one in folders), None)
    if folder is None:
        return []  # numbers are printed ones
    try:
        evaluation = ModelsEvaluation.open(folder.resolve().parents[1] / "evaluation")
    except StorageError:
        return []  # begun anew, or moved: numbers are kept with the rows
    rows = []
    for setting, numbers in evaluation.numbers["settings"].items():
        for model, errors in numbers["errors"].items():
            wrong = Cell.number(errors["all"]["wrong"] / errors["runs"])
            head = Cell(model_name(model), setting_name(setting))
            rows.append([head, wrong, percent(errors["all"]["same_tree_share"])])
    after = (
        "First products of another category, the mean over seeds, and the share of them in the query's tree."
    )
    shares = Table("Errors in the tree", ("Model", "errors", "% in the tree"), rows, after=after)
    sections: dict[str, list[Any]] = {**evaluation.sections(), shares.caption: [shares]}
    return [one for part in parts for one in sections[part] if isinstance(one, Table)]
