"""An evaluation as tables and charts: measures by step, what features add, probabilities, importance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from diptych.commerce.purchase_intent.shown import Column, Row, interval_ends, number, table_of
from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table
from diptych.metrics.paired import correction_text

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation.result import Evaluation

KINDS: Mapping[str, tuple[str, float, int]] = {
    "impurity": ("share of the decrease of impurity, %", 100.0, 1),
    "permutation": ("average precision lost", 1.0, 3),
}
"""Importances: what they are called, how they are scaled, and their decimals."""
MEASURES: Mapping[str, tuple[str, int]] = {
    "average_precision": ("average precision", 3),
    "f1": ("F1", 3),
    "best_f1": ("best F1", 3),
    "roc_auc": ("ROC AUC", 3),
    "brier": ("Brier", 4),
    "brier_calibrated": ("Brier, calibrated", 4),
    "lift_10": ("lift of the top 10 %", 2),
    "precision_at_recall_50": ("P at R 50 %", 3),
}
_COLUMNS = (
    Column("Sessions", "sessions", 0),
    Column("Purchases, %", "base_rate", 2, 100.0),
    Column("Always-buy F1", "always_buy_f1", 3),
    *(Column(title, name, decimals, ends=f"{name}_") for name, (title, decimals) in MEASURES.items()),
)


_GAINS = (
    *(Column(name.capitalize(), name, 4) for name in ("baseline", "extended")),
    Column("Difference", "difference", 4, ends=""),
    Column("p", "p", 4),
)
REFERENCES: Mapping[str, tuple[str, str]] = {
    "average_precision": ("share of purchases", "base_rate"),
    "f1": ("predicting a purchase always", "always_buy_f1"),
}
"""What a measure is compared with: what it is called, and its column."""

_MOST_FEATURES = 15
_PAGES = "pages open"


class Place(NamedTuple):
    """A setting and a feature set: what one panel is of."""

    setting: str
    feature_set: str

    def __str__(self) -> str:
        if self.setting == self.feature_set:
            return "all sessions" if self.setting == "all" else self.setting
        return f"{self.setting}, {self.feature_set}"


def step_text(step: int) -> str:
    """Return a step as tables have it."""
    return "whole" if step < 0 else str(step)


def pages_text(step: int) -> str:
    """Return when a prediction of that step is made."""
    if step < 0:
        return "at the session's end"
    return "before any page" if step == 0 else f"after {step} {'page' if step == 1 else 'pages'}"


def left_out_lines(left_out: Sequence[Row], what: str = "left out") -> list[str]:
    """Return which settings and steps have no model, and why."""
    return [f"{what}: {row['setting']}, step {step_text(row['step'])}: {row['reason']}" for row in left_out]


@dataclass(frozen=True)
class Grid:
    """The cells of an evaluation, by setting, feature set, step and model."""

    cells: Sequence[Row]

    @cached_property
    def steps(self) -> list[int]:
        """Rising."""
        return sorted({cell["step"] for cell in self.cells})

    @cached_property
    def labels(self) -> dict[str, str]:
        """Models in the order of the cells, and what charts call them."""
        return {cell["model"]: cell.get("label") or cell["model"] for cell in self.cells}

    @cached_property
    def places(self) -> list[Place]:
        """Settings and sets that have cells, set by set inside a setting."""
        settings = dict.fromkeys(cell["setting"] for cell in self.cells)
        sets = dict.fromkeys(cell["set"] for cell in self.cells)
        found = {Place(cell["setting"], cell["set"]) for cell in self.cells}
        return [Place(one, other) for one in settings for other in sets if Place(one, other) in found]

    @cached_property
    def fullest(self) -> dict[str, Place]:
        """The place of every setting with the last set that it has."""
        return {place.setting: place for place in self.places}

    def line(self, place: Place | None, model: str | None = None, measure: str = "step") -> list[Row]:
        """Return the cells of a place that have a measure, by step: a model's, or all."""
        mine = [
            one
            for one in self.cells
            if (one["setting"], one["set"]) == place and one.get(measure) is not None
        ]
        return sorted((one for one in mine if model in (None, one["model"])), key=lambda cell: cell["step"])

    def best(self, setting: str, measure: str = "average_precision") -> Row | None:
        """Return the cell with the highest value of a setting, in its fullest set, at the last step that has any."""
        known = self.line(self.fullest.get(setting), measure=measure)
        last = [one for one in known if one["step"] == known[-1]["step"]]
        return max(last, key=lambda one: one[measure], default=None)


def evaluation_blocks(evaluation: Evaluation) -> dict[str, list[Chart | Table]]:
    """Return all charts and tables of an evaluation, by what they show."""
    grid, importance, gains = Grid(evaluation.cells), evaluation.importance, evaluation.gains
    models = {name: one["description"] for name, one in evaluation.about["models"].items()}
    by_step = [chart for measure in REFERENCES for chart in step_charts(grid, measure)]
    return {
        "By step" if len(grid.steps) > 1 else "By model": [*by_step],
        "What extended features add": [*gain_charts(grid, gains), *gain_tables(grid, gains)],
        "Probabilities": [*reliability_charts(grid)],
        "What features are worth": [*importance_charts(importance), *importance_tables(importance)],
        "All numbers": [*cell_tables(grid, models)],
    }


def evaluation_tables(evaluation: Evaluation) -> list[Table]:
    """Return the values behind most charts; then, folded, importance by step and every number of every cell."""
    parts = evaluation_blocks(evaluation)
    blocks = [block for name, part in parts.items() if name != "Probabilities" for block in part]
    charts = [one for one in blocks if isinstance(one, Chart)]
    values = [replace(one.table(), caption=f"{one.title}: {one.y or one.x}", folded=False) for one in charts]
    return [*values, *(one for one in blocks if isinstance(one, Table))]


def cell_tables(grid: Grid, descriptions: Mapping[str, str]) -> list[Table]:
    """Return the models, and every number of every cell, a table per setting and set; folded."""
    models = []
    for model, label in grid.labels.items():
        mine = [cell for cell in grid.cells if cell["model"] == model]
        ways = {one["weighting"] for one in mine} - {"none"} or {"none"}
        remarks = sum((Counter(cell.get("remarks") or {}) for cell in mine), Counter[str]())
        noted = "; ".join(f"{remark[:160]} ({folds:,} folds)" for remark, folds in sorted(remarks.items()))
        texts = (descriptions.get(model, ""), ", ".join(sorted(ways)).replace("_", " "), noted)
        models.append([Cell(label, model), *(Cell(one, words=True) for one in texts)])
    tables = [Table("Models", ("Model", "What it is", "Classes weighed by", "Remarks"), models, folded=True)]
    for place in grid.places:
        cells = grid.line(place)
        heads = [[Cell(grid.labels[cell["model"]], pages_text(cell["step"]))] for cell in cells]
        caption = f"{str(place).capitalize()}: all cells"
        tables.append(table_of(caption, ("Model",), _COLUMNS, heads, cells, folded=True))
    return tables


def gain_tables(grid: Grid, gains: Sequence[Row]) -> list[Table]:
    """Return what the extended set adds to calibrated probabilities, tested over persons."""
    rows = [row for row in gains if row.get("p") is not None]
    names = ([row["setting"], step_text(row["step"]), grid.labels[row["model"]]] for row in rows)
    after = f"p of sign flips of persons, {correction_text('holm', len(rows))}; less is better"
    heads, cells = ("Setting", "Step", "Model"), [[*map(Cell, of)] for of in names]
    table = table_of("Brier score, calibrated", heads, _GAINS, cells, rows, after=after, folded=True)
    return [table] * bool(rows)


def step_charts(grid: Grid, measure: str) -> list[Chart]:
    """Return a measure by step, a chart per setting and set; of one step by model. The best model has a band."""
    charts, (reference, column), title = [], REFERENCES[measure], MEASURES[measure][0]
    for place in grid.places:
        lines = [cells for model in grid.labels if (cells := grid.line(place, model, measure))]
        held = {cell["step"]: cell[column] for cells in lines for cell in cells}
        if len(grid.steps) > 1:
            drawn = [_line(grid, cells, measure, f"{measure}_") for cells in lines]
            drawn.append(Series(reference, list(held.values()), list(held), colour="ink"))
            chart = Chart(str(place), drawn, _PAGES, title)
        else:
            firsts = [cells[0] for cells in lines]
            values, ends = [cell[measure] for cell in firsts], interval_ends(firsts, f"{measure}_")
            texts = [number(value, 3) for value in values]
            drawn = [Series(title, values, mark="point", texts=texts, **ends)]
            drawn += [Series(reference, [value], mark="level") for value in held.values()]
            names = [grid.labels[cell["model"]] for cell in firsts]
            chart = Chart(str(place), drawn, title, "", names, across=True)
        charts += [chart] if lines else []
    return charts


def gain_charts(grid: Grid, gains: Sequence[Row]) -> list[Chart]:
    """Return what the extended set adds by step, a chart per setting and measure."""
    charts = []
    for setting, measure in product(grid.fullest, ("average_precision", "f1")):
        rows = [row for row in gains if (row["setting"], row["measure"]) == (setting, measure)]
        lines = [[row for row in rows if row["model"] == model] for model in grid.labels]
        drawn = [_line(grid, mine, "difference", "") for mine in lines if mine]
        level = Series("no gain", [0.0], mark="level")
        charts += [Chart(setting, [*drawn, level], _PAGES, f"gain in {MEASURES[measure][0]}")] * bool(drawn)
    return charts


def _line(grid: Grid, rows: Sequence[Row], column: str, prefix: str) -> Series:
    """Return a model's line over steps; its intervals are drawn where it is the best of its setting."""
    rows, model = sorted(rows, key=lambda row: row["step"]), rows[0]["model"]
    quiet = model != (grid.best(rows[0]["setting"]) or {}).get("model")
    x, y = [row["step"] for row in rows], [row[column] for row in rows]
    return Series(grid.labels[model], y, x, quiet=quiet, **interval_ends(rows, prefix))


def reliability_charts(grid: Grid) -> list[Chart]:
    """Return mean probability and share of purchases by bin: of the best model, at its first and its last step."""
    charts, axes = [], ("mean probability, %", "purchases, %")
    curves = {"reliability_calibrated": "calibrated", "reliability": "as the model gives them"}
    for setting, place in grid.fullest.items():
        line = grid.line(place, best["model"]) if (best := grid.best(setting)) else []
        known = [cell for cell in line if any(cell.get(name) for name in curves)]
        for cell in {one["step"]: one for one in (*known[:1], *known[-1:])}.values():
            drawn = [
                Series(name, [100 * one["share"] for one in bins], [100 * one["mean_score"] for one in bins])
                for key, name in curves.items()
                if (bins := cell.get(key))
            ]
            title, label = f"{place}, {pages_text(cell['step'])}", grid.labels[cell["model"]]
            charts.append(Chart(title, drawn, *axes, diagonal=True, after=label))
    return charts


def _by_setting(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the importances of every setting, of the last feature set it has."""
    sets = {row["setting"]: row["set"] for row in rows}
    return {one: [row for row in rows if (row["setting"], row["set"]) == (one, sets[one])] for one in sets}


def mean_steps(rows: Sequence[Row]) -> list[int]:
    """Return the steps that importances are averaged over: those with dynamic features; all where there are none."""
    return sorted({row["step"] for row in rows if row["dynamic"]} or {row["step"] for row in rows})


def mean_importance(rows: Sequence[Row], kind: str) -> dict[str, float]:
    """Return the mean importance of every feature over the same steps, the most important first; shares add up to 1."""
    steps = mean_steps(rows)
    sums: Counter[str] = Counter()
    for row in rows:
        if row["step"] in steps and row[kind] is not None:
            sums[row["feature"]] += row[kind] / len(steps)
    return dict(sorted(sums.items(), key=lambda one: (-one[1], one[0])))


def importance_charts(rows: Sequence[Row]) -> list[Chart]:
    """Return the mean importance of features per setting and kind, and what static features have by step."""
    charts, shares = [], []
    for (setting, mine), kind in product(_by_setting(rows).items(), KINDS):
        steps, dynamic = mean_steps(mine), {row["feature"] for row in mine if row["dynamic"]}
        over = f"mean over steps {steps[0]} to {steps[-1]}" if len(steps) > 1 else pages_text(steps[0])
        (title, scale, decimals), means = (
            KINDS[kind],
            list(mean_importance(mine, kind).items())[:_MOST_FEATURES],
        )
        bars = []
        for name, colour in (("dynamic", "blue"), ("static", "orange")):
            y = [scale * worth if (one in dynamic) is (colour == "blue") else None for one, worth in means]
            texts = [number(one, decimals) for one in y]
            bars.append(Series(name, y, mark="bar", texts=texts, colour=colour))
        names, caption = [one for one, _ in means], f"{setting}, by {kind}"
        if means:
            charts.append(Chart(caption, bars, title, "", names, across=True, stacked=True, after=over))
        of_steps = static_shares(mine, kind)
        if len(of_steps) > 1:
            y = [100 * share for share in of_steps.values()]
            shares.append(Series(f"{setting}, {kind}", y, list(of_steps)))
    return [*charts, *[Chart("Static features", shares, _PAGES, "% of all importance")] * bool(shares)]


def static_shares(rows: Sequence[Row], kind: str) -> dict[int, float]:
    """Return what static features have of all importance, by step; what is worse than nothing counts nothing."""
    total: dict[int, float] = dict.fromkeys(sorted({row["step"] for row in rows}), 0.0)
    static = dict(total)
    for row in rows:
        worth = max(0.0, row[kind] or 0.0)
        total[row["step"]] += worth
        static[row["step"]] += 0.0 if row["dynamic"] else worth
    return {step: static[step] / total[step] for step in total if total[step] > 0}


def importance_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the importance of features by step, a table per setting and kind: the stronger the darker."""
    tables = []
    for (setting, mine), kind in product(_by_setting(rows).items(), KINDS):
        steps, known = (
            sorted({row["step"] for row in mine}),
            {(row["feature"], row["step"]): row for row in mine},
        )
        greatest = max((row[kind] for row in mine if row[kind] is not None), default=0.0)
        names = dict.fromkeys([*mean_importance(mine, kind), *(row["feature"] for row in mine)])
        cells = {at: _importance_cell(known.get(at, {}), kind, greatest) for at in product(names, steps)}
        lines = [[Cell(name), *(cells[name, step] for step in steps)] for name in names]
        heads = ("feature", *(f"step {step}" if step >= 0 else "whole" for step in steps))
        caption = f"{setting.capitalize()}: {KINDS[kind][0]}, by step"
        tables.append(Table(caption, heads, lines, after="orange: static", folded=True))
    return tables


def _importance_cell(row: Row, kind: str, greatest: float) -> Cell:
    value, spread = row.get(kind), row.get("permutation_sd") if kind == "permutation" else None
    if value is None or greatest <= 0:
        return Cell("–")
    _, scale, decimals = KINDS[kind]
    note = "" if spread is None else f"± {number(spread, 3)}"
    colour = "blue" if row["dynamic"] else "orange"
    return Cell(number(scale * value, decimals), note, max(0.0, value / greatest), colour, value=value)
