"""Hendriksen et al. (2022): tables of every model that was evaluated, and charts, beside those of the chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from diptych.core.chart import Chart, Series
from diptych.core.table import Table
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
_BEST = ("P@1", _MAP, "R-precision")
_DIVIDED = ("P@5", "mAP@5", "mAP-hits@5", "P@10", _MAP, "mAP-hits@10")
_KINDS = ("ancestor", "descendant", "sibling", "same tree", "other tree")
_SEEN = ("seen", "P@1 seen", f"{_MAP} seen", "unseen", "P@1 unseen", f"{_MAP} unseen")


def models(study: Study, evidence: Evidence) -> Further:
    """Return intervals over categories, mAP by both denominators, numbers level by level; a chart per setting."""
    charts = []
    for key, title in _LEVELS.items():
        figures = {label: evidence.figure(f"{model}-{key}", _MAP) for model, label in _MODELS.items()}
        charts += _bars(title, figures, f"{_MAP} in %", "model", across=True)
    intervals = (
        "Intervals, chance, and products that ask for their category",
        "Per cent, with 95 % intervals over categories (of the mean over seeds). “Products put right” asks the other "
        "way: the share of test products whose own category is the first of all that ask.",
        (*_BEST, "P@1 by chance", "products put right"),
        _intervals,
    )
    divided = (
        "What mAP@k is divided by",
        "mAP@k is divided by min(k, relevant products), mAP-hits@k by the relevant ones among the first k, as the "
        "printed numbers seem to be. The first is at most P@k where a category has k products and more.",
        _DIVIDED,
        lambda row, of: [_percent(row["values"][name]["mean"]) for name in _DIVIDED],
    )
    return Further(
        [*_tables(evidence, intervals, divided), *_levels(evidence)],
        charts,
        title="Models in three settings",
        note=f"{_MAP} in per cent, divided by min(10, relevant products), with standard deviations over seeds. "
        "The settings ask different questions: numbers of one are not those of another.",
    )


def unseen(study: Study, evidence: Evidence) -> Further:
    """Return seen and unseen categories of every model; a chart of those of CLIP-ITA."""
    groups = ("seen", "unseen")
    bars: dict[str, list[float | None]] = {}
    for key, title in _LEVELS.items():
        both = [evidence.figure(f"{group}-{key}", _MAP) for group in groups]
        bars |= {title: [one and one.mean for one in both]} if any(both) else {}
    table = (
        "Seen and unseen categories, every model",
        "How many categories, and per cent. A model that is not trained has seen none of them: where unseen ones are "
        "harder for it too, they are harder categories, or have other numbers of products.",
        _SEEN,
        _seen,
    )
    return Further(
        _tables(evidence, table),
        _pairs("Seen and unseen", bars, groups, f"{_MAP} in %"),
        title="Seen and unseen categories",
        note=f"{_MAP} of CLIP-ITA, the mean over seeds; a setting without unseen categories has one bar.",
    )


def trees(study: Study, evidence: Evidence) -> Further:
    """Return errors of every model; a chart of those of CLIP-ITA by their tree."""
    kinds = ("same tree", "different tree")
    bars: dict[str, list[float]] = {}
    for key, title in _LEVELS.items():
        counts = [one.mean for kind in kinds if (one := evidence.figure(key, kind)) is not None]
        bars |= {title: [100 * count / sum(counts) for count in counts]} if sum(counts) else {}
    charts = _pairs("Errors by tree", bars, kinds, "% of the errors")
    note = "Of the errors of each setting, the mean over seeds."
    return Further(_error_tables(evidence), charts, title="Errors by tree", note=note)


def depths(study: Study, evidence: Evidence) -> Further:
    """Return errors of every model; a chart per setting of how far up or down the tree those of CLIP-ITA are."""
    charts = []
    for key, title in _LEVELS.items():
        row = evidence.figures.get(key, {})
        of = {int(name[4:]): figure for name, figure in row.items() if name.startswith("d = ")}
        charts += _bars(title, {str(d): of[d] for d in sorted(of)}, "d", "% of errors in the tree", digits=0)
    return Further(
        _error_tables(evidence),
        charts,
        title="Figure 7.2: distance between the category that asked and that of a wrong first product",
        note="d = depth(c_p) − depth(c), of CLIP-ITA's errors within one tree, in per cent of them: below 0 a more "
        "general category was found, above 0 a more specific one. The most general setting has none: two roots are "
        "never in one tree.",
    )


# Tables of every model -----------------------------------------------------------------------------

Cells = Callable[[Mapping[str, Any], Mapping[str, Any]], list[str]]
"""From a model's row and its setting's numbers to what a table says of it; nothing leaves it out."""


def _numbers(evidence: Evidence) -> dict[str, Any]:
    """Return what the evaluation says, by the titles of its settings."""
    found = evaluation_of(evidence)
    settings = {} if found is None else found.numbers["settings"]
    return {title: settings[key] for key, title in _LEVELS.items() if key in settings}


def _tables(evidence: Evidence, *tables: tuple[str, str, Sequence[str], Cells]) -> list[Table]:
    """Return what was asked, and tables of every model in every setting: caption, note, columns and cells."""
    numbers = _numbers(evidence)
    note = "A category asks when a test product has it in the setting."
    lines = [(title, of["line"]) for title, of in numbers.items()]
    found = [Table.of("What is asked in each setting", note, ("setting", "test"), lines)]
    for caption, after, columns, cells in tables:
        rows = [
            (title, row["label"], *said)
            for title, of in numbers.items()
            for row in of["table"]
            if (said := cells(row, of))
        ]
        found.append(Table.of(caption, after, ("setting", "model", *columns), rows))
    return found if numbers else []


def _intervals(row: Mapping[str, Any], of: Mapping[str, Any]) -> list[str]:
    values = [row["values"][name] for name in _BEST]
    ends = [
        "" if one["low"] is None else f" [{100 * one['low']:.1f}, {100 * one['high']:.1f}]" for one in values
    ]
    means = [_percent(one["mean"]) + end for one, end in zip(values, ends, strict=True)]
    return [*means, _percent(values[0]["chance"]), f"{100 * row['products']['R@1']['mean']:.1f}"]


def _seen(row: Mapping[str, Any], of: Mapping[str, Any]) -> list[str]:
    groups = {one["group"]: one for one in of["seen"].get(row["model"], ())}
    found = []
    for one in (groups.get(1), groups.get(0)):
        means = [] if one is None else [one["values"][name]["mean"] for name in _BEST[:2]]
        found += ["–"] * 3 if one is None else [f"{one['categories']:,.0f}", *map(_percent, means)]
    return found if groups else []


def _levels(evidence: Evidence) -> list[Table]:
    of = _numbers(evidence).get(_LEVELS["all"])
    if of is None:
        return []
    groups = {row["label"]: of["levels"][row["model"]] for row in of["table"]}
    first = next(iter(groups.values()))
    rows = [("categories that ask", *(f"{one['categories']:,.0f}" for one in first))]
    rows += [
        (label, *(_percent(one["values"][_MAP]["mean"]) for one in own)) for label, own in groups.items()
    ]
    note = f"{_MAP} in per cent by the depth of the category that asks, in the setting of all categories; level 1 is "
    columns = ("model", *(f"level {one['group']}" for one in first))
    return [Table.of("Level by level", f"{note}the most general.", columns, rows)]


def _errors(row: Mapping[str, Any], of: Mapping[str, Any]) -> list[str]:
    counts, runs = of["errors"][row["model"]]["all"], of["errors"][row["model"]]["runs"]
    share = counts["same_tree_share"]
    each = [counts["wrong"], *(counts["kinds"].get(kind, 0) for kind in _KINDS), counts["nothing"]]
    wrong, *others = (f"{one / runs:,.{0 if one % runs == 0 else 1}f}" for one in each)
    return [wrong, "–" if share is None else f"{100 * share:.0f} %", *others]


def _error_tables(evidence: Evidence) -> list[Table]:
    """Return errors of every model, and the siblings that CLIP-ITA confuses most."""
    errors = (
        "Errors of every model",
        "Categories whose first product has another category, by what that is to the one that asked; means over "
        "seeds. “Same tree” is farther kin; “in the tree” is table 7.2's first column, with ancestors, descendants "
        "and siblings.",
        ("errors", "in the tree", *_KINDS, "nothing found"),
        _errors,
    )
    rows = []
    for title, of in _numbers(evidence).items():
        pairs = [] if title == _LEVELS["most-general"] else of["siblings"]["clip-ita"][:5]
        for one in pairs:
            both = (" > ".join(one[side][-2:]) for side in ("left", "right"))
            rows.append((title, *both, str(one["confused"]), str(one["products"])))
    note = "Test products of one category for which CLIP-ITA finds a sibling first; summed over seeds."
    columns = ("setting", "category", "sibling", "confused", "products of both")
    siblings = Table.of("Siblings that are confused most", note, columns, rows)
    return [*_tables(evidence, errors), *([siblings] if rows else [])]


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


# Charts --------------------------------------------------------------------------------------------


def _bars(
    title: str, figures: Mapping[str, Figure | None], x: str, y: str, digits: int = 1, across: bool = False
) -> list[Chart]:
    """Return bars of what there is; no chart of nothing."""
    there = {name: figure for name, figure in figures.items() if figure is not None}
    texts = [f"{figure.mean:.{digits}f}" for figure in there.values()]
    bars = series("", list(there.values()), "bar", texts)
    return [Chart(title.capitalize(), [bars], x, y, list(there), across=across)] if there else []


def _pairs(
    title: str, bars: Mapping[str, Sequence[float | None]], kinds: Sequence[str], unit: str
) -> list[Chart]:
    """Return two bars per setting; no chart without any."""
    drawn = []
    for kind, values in zip(kinds, zip(*bars.values(), strict=True), strict=False):
        texts = ["" if value is None else f"{value:.1f}" for value in values]
        drawn.append(Series(kind, values, mark="bar", texts=texts))
    return [Chart(title, drawn, "", unit, list(bars))] if drawn else []
