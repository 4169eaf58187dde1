"""An evaluation as tables and charts: measures by step, what features add, probabilities, importance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from diptych.commerce.purchase_intent.shown import Row, interval, measured, number, percent, signed
from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation.result import Evaluation

KINDS: Mapping[str, str] = {
    "impurity": "share of the decrease of impurity, %",
    "permutation": "average precision lost when a feature is permuted",
}
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
REFERENCES: Mapping[str, tuple[str, str]] = {
    "average_precision": ("share of purchases", "base_rate"),
    "f1": ("predicting a purchase always", "always_buy_f1"),
    "lift_10": ("no lift", ""),
}
"""What a measure is compared with: what it is called, and its column."""

_MOST_FEATURES = 15
_PAGES = "pages opened before the prediction"


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

    def line(self, place: Place, model: str, measure: str = "step") -> list[Row]:
        """Return a model's cells of a place that have a measure, by step."""
        mine = [
            cell for cell in self.cells if (cell["setting"], cell["set"], cell["model"]) == (*place, model)
        ]
        return sorted((cell for cell in mine if cell.get(measure) is not None), key=lambda cell: cell["step"])

    def best(self, setting: str, measure: str = "average_precision") -> Row | None:
        """Return the cell with the highest value of a setting, in its fullest set, at the last step that has any."""
        place = self.fullest.get(setting)
        known = [
            cell for model in self.labels for cell in (self.line(place, model, measure) if place else ())
        ]
        last = max((cell["step"] for cell in known), default=0)
        return max((one for one in known if one["step"] == last), key=lambda one: one[measure], default=None)


def evaluation_tables(evaluation: Evaluation) -> list[Table]:
    """Return all tables of an evaluation."""
    grid = Grid(evaluation.cells)
    return [
        *best_tables(grid),
        *step_tables(grid),
        *gain_tables(grid, evaluation.gains),
        *importance_tables(evaluation.importance),
        *cell_tables(grid, {name: one["description"] for name, one in evaluation.about["models"].items()}),
    ]


def evaluation_charts(evaluation: Evaluation) -> list[Chart]:
    """Return all charts of an evaluation."""
    grid = Grid(evaluation.cells)
    charts = [chart for measure in REFERENCES for chart in step_charts(grid, measure)]
    charts += gain_charts(grid, evaluation.gains)
    return [*charts, *reliability_charts(grid), *importance_charts(evaluation.importance)]


def best_tables(grid: Grid) -> list[Table]:
    """Return a line per setting: the best model, and what no model at all has."""
    lines = []
    for setting, place in grid.fullest.items():
        best = grid.best(setting)
        if best is None:
            continue
        highest = grid.best(setting, "f1") or best
        lines.append(
            [
                Cell(str(place), pages_text(best["step"])),
                Cell(grid.labels[best["model"]]),
                _measure(best, "average_precision"),
                Cell(number(best["base_rate"], 3), value=best["base_rate"]),
                Cell(grid.labels[highest["model"]]),
                _measure(highest, "f1"),
                Cell(number(highest["always_buy_f1"], 3), value=highest["always_buy_f1"]),
                _measure(best, "brier_calibrated"),
                Cell(number(best.get("brier_prior"), 4), value=best.get("brier_prior")),
            ]
        )
    heads = (
        "",
        "Highest AP",
        "AP",
        "share of purchases",
        "Highest F1",
        "F1",
        "always buy",
        "Brier",
        "of the share",
    )
    after = (
        "Highest on the test sessions at the last step. Share of purchases: the average precision of chance."
    )
    return [Table("The best models", heads, lines, after=after)] if lines else []


def step_tables(grid: Grid) -> list[Table]:
    """Return average precision and F1 by step, a table per setting."""
    tables = []
    for setting in grid.fullest:
        for measure, (reference, column) in list(REFERENCES.items())[:2]:
            lines: list[tuple[list[Cell], dict[int, Cell]]] = []
            of_steps = {cell["step"]: cell for cell in reversed(grid.cells) if cell["setting"] == setting}
            chance = {
                step: Cell(number(cell[column], 3), value=cell[column]) for step, cell in of_steps.items()
            }
            lines.append(([Cell(reference), Cell("")], chance))
            for place in grid.places:
                for model, label in grid.labels.items():
                    cells = {cell["step"]: _measure(cell, measure) for cell in grid.line(place, model)}
                    if place.setting == setting and cells:
                        lines.append(([Cell(label), Cell(place.feature_set)], cells))
            title = MEASURES[measure][0]
            caption = f"{setting.capitalize()}: {title}{' at 0.5' if measure == 'f1' else ''}"
            tables.append(_by_step(caption, ("model", "set"), lines))
    return tables


def gain_tables(grid: Grid, gains: Sequence[Row]) -> list[Table]:
    """Return what the extended set adds, a table per setting and measure."""
    tables = []
    for setting, _, title, rows in _gains(gains):
        lines = []
        for model, label in grid.labels.items():
            mine = [row for row in rows if row["model"] == model]
            cells = {
                row["step"]: Cell(
                    signed(row["difference"], 3),
                    interval(row["low"], row["high"], 3),
                    value=row["difference"],
                )
                for row in mine
            }
            lines += [([Cell(label)], cells)] if cells else []
        tables.append(
            _by_step(f"{setting.capitalize()}: gain of the extended set in {title}", ("model",), lines)
        )
    return tables


def _gains(gains: Sequence[Row]) -> Iterable[tuple[str, str, str, list[Row]]]:
    for setting in dict.fromkeys(row["setting"] for row in gains):
        for measure in list(REFERENCES)[:2]:
            rows = [
                row
                for row in gains
                if (row["setting"], row["measure"]) == (setting, measure) and row["difference"] is not None
            ]
            if rows:
                yield setting, measure, MEASURES[measure][0], rows


def _by_step(
    caption: str, heads: Sequence[str], lines: Sequence[tuple[Sequence[Cell], Mapping[int, Cell]]]
) -> Table:
    steps = sorted({step for _, cells in lines for step in cells})
    rows = [[*head, *(cells.get(step, Cell("–")) for step in steps)] for head, cells in lines]
    return Table(caption, (*heads, *(f"step {step}" if step >= 0 else "whole" for step in steps)), rows)


def _measure(cell: Row, measure: str) -> Cell:
    return measured(cell, measure, MEASURES[measure][1], ends=f"{measure}_")


def cell_tables(grid: Grid, descriptions: Mapping[str, str]) -> list[Table]:
    """Return the models, and every number of every cell, a table per setting and set; folded."""
    models = []
    for model, label in grid.labels.items():
        mine = [cell for cell in grid.cells if cell["model"] == model]
        ways = [one for one in dict.fromkeys(cell["weighting"] for cell in mine) if one != "none"] or ["none"]
        remarks: Counter[str] = Counter()
        for cell in mine:
            remarks.update(cell.get("remarks") or {})
        said = "; ".join(f"{remark[:160]} ({folds:,} folds)" for remark, folds in sorted(remarks.items()))
        texts = (descriptions.get(model, ""), ", ".join(ways).replace("_", " "), said)
        models.append(
            [Cell(label, model if model != label else ""), *(Cell(one, words=True) for one in texts)]
        )
    tables = [Table("Models", ("Model", "What it is", "Classes weighed by", "Remarks"), models, folded=True)]
    heads = ("Model", "Sessions", "Purchases, %", "Always-buy F1", *(title for title, _ in MEASURES.values()))
    for place in grid.places:
        cells = sorted(
            (cell for model in grid.labels for cell in grid.line(place, model)), key=lambda one: one["step"]
        )
        rows = [
            [
                Cell(grid.labels[cell["model"]], pages_text(cell["step"])),
                Cell(number(cell["sessions"]), value=cell["sessions"]),
                Cell(percent(cell["base_rate"], 2), value=100 * cell["base_rate"]),
                Cell(number(cell["always_buy_f1"], 3), value=cell["always_buy_f1"]),
                *(_measure(cell, measure) for measure in MEASURES),
            ]
            for cell in cells
        ]
        caption = str(place).capitalize()
        tables.append(Table(f"{caption}: all cells", heads, rows, folded=True))
    return tables


def step_charts(grid: Grid, measure: str) -> list[Chart]:
    """Return a measure by step, a chart per setting and set; of one step by model. The best model has its interval."""
    charts, (reference, column), title = [], REFERENCES[measure], MEASURES[measure][0]
    for place in grid.fullest.values() if measure == "lift_10" else grid.places:
        lines = {model: grid.line(place, model, measure) for model in grid.labels}
        lines = {model: cells for model, cells in lines.items() if cells}
        best = (grid.best(place.setting) or {}).get("model")
        if not lines:
            continue
        held = {cell["step"]: cell[column] if column else 1.0 for cells in lines.values() for cell in cells}
        if len(grid.steps) > 1:
            drawn = [
                _line(grid.labels[model], cells, measure, f"{measure}_" if model == best else None)
                for model, cells in lines.items()
            ]
            steps = sorted(held)
            drawn.append(Series(reference, [held[step] for step in steps], steps, colour="ink"))
            charts.append(Chart(str(place), drawn, _PAGES, title))
            continue
        firsts = [cells[0] for cells in lines.values()]
        low, high = ([cell.get(f"{measure}_{end}") for cell in firsts] for end in ("low", "high"))
        ends: dict[str, Any] = {} if None in (*low, *high) else {"low": low, "high": high}
        values = [cell[measure] for cell in firsts]
        texts = [number(value, 3) for value in values]
        drawn = [Series(title, values, mark="point", texts=texts, **ends)]
        drawn.append(Series(reference, [held[firsts[0]["step"]]], mark="level"))
        charts.append(
            Chart(str(place), drawn, title, "", [grid.labels[model] for model in lines], across=True)
        )
    return charts


def _line(name: str, rows: Sequence[Row], column: str, ends: str | None) -> Series:
    """Return a line over steps; with intervals where ``ends`` begins their columns, and all are known."""
    low, high = (
        [row.get(f"{ends}{end}") if ends is not None else None for row in rows] for end in ("low", "high")
    )
    known: dict[str, Any] = {} if None in (*low, *high) else {"low": low, "high": high}
    return Series(name, [row[column] for row in rows], [row["step"] for row in rows], **known)


def gain_charts(grid: Grid, gains: Sequence[Row]) -> list[Chart]:
    """Return what the extended set adds by step, a chart per setting and measure."""
    charts = []
    for setting, _, title, rows in _gains(gains):
        best = (grid.best(setting) or {}).get("model")
        lines = []
        for model, label in grid.labels.items():
            mine = sorted((row for row in rows if row["model"] == model), key=lambda row: row["step"])
            lines += [_line(label, mine, "difference", "" if model == best else None)] if mine else []
        lines.append(Series("no gain", [0.0], mark="level"))
        charts.append(Chart(setting, lines, _PAGES, f"gain in {title}"))
    return charts


def reliability_charts(grid: Grid) -> list[Chart]:
    """Return mean probability and share of purchases by bin: of the best model, at its first and its last step."""
    charts = []
    for setting, place in grid.fullest.items():
        best = grid.best(setting)
        line = [] if best is None else grid.line(place, best["model"])
        known = [cell for cell in line if cell.get("reliability") or cell.get("reliability_calibrated")]
        for cell in {one["step"]: one for one in (*known[:1], *known[-1:])}.values():
            drawn = [
                Series(name, [100 * one["share"] for one in bins], [100 * one["mean_score"] for one in bins])
                for name, key in (
                    ("calibrated", "reliability_calibrated"),
                    ("as the model gives them", "reliability"),
                )
                if (bins := cell.get(key))
            ]
            title = f"{place}, {pages_text(cell['step'])}"
            charts.append(
                Chart(
                    title,
                    drawn,
                    "mean probability, %",
                    "purchases, %",
                    diagonal=True,
                    after=grid.labels[cell["model"]],
                )
            )
    return charts


def importance_by_setting(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the importances of every setting, of the last feature set it has."""
    sets = {row["setting"]: row["set"] for row in rows}
    return {
        setting: [row for row in rows if (row["setting"], row["set"]) == (setting, one)]
        for setting, one in sets.items()
    }


def mean_steps(rows: Sequence[Row]) -> list[int]:
    """Return the steps that importances are averaged over: those with dynamic features; all where there are none.

    Before the first page static features have all of the importance.
    """
    return sorted({row["step"] for row in rows if row["dynamic"]} or {row["step"] for row in rows})


def mean_importance(rows: Sequence[Row], kind: str) -> dict[str, float]:
    """Return the mean importance of every feature, the most important first; shares add up to 1.

    All features are averaged over the same steps; one without a model at a step counts nothing there.
    """
    steps = mean_steps(rows)
    sums: Counter[str] = Counter()
    for row in rows:
        if row["step"] in steps and row[kind] is not None:
            sums[row["feature"]] += row[kind] / len(steps)
    return dict(sorted(sums.items(), key=lambda one: (-one[1], one[0])))


def importance_charts(rows: Sequence[Row]) -> list[Chart]:
    """Return the mean importance of features per setting and kind, and what static features have by step."""
    charts, shares = [], []
    for setting, mine in importance_by_setting(rows).items():
        steps = mean_steps(mine)
        dynamic = {row["feature"]: row["dynamic"] for row in mine}
        over = f"mean over steps {steps[0]} to {steps[-1]}" if len(steps) > 1 else pages_text(steps[0])
        for kind, title in KINDS.items():
            means = dict(list(mean_importance(mine, kind).items())[:_MOST_FEATURES])
            scale, decimals = (100.0, 1) if kind == "impurity" else (1.0, 3)
            bars = []
            for name, kept in (("dynamic", True), ("static", False)):
                values = [scale * value if dynamic[one] is kept else None for one, value in means.items()]
                texts = [number(value, decimals) for value in values]
                if any(value is not None for value in values):
                    colour = "blue" if kept else "orange"
                    bars.append(Series(name, values, mark="bar", texts=texts, colour=colour))
            if bars:
                chart = Chart(
                    f"{setting}, by {kind}",
                    bars,
                    title,
                    "",
                    list(means),
                    across=True,
                    stacked=True,
                    after=over,
                )
                charts.append(chart)
            of_steps = static_shares(mine, kind)
            if len(of_steps) > 1:
                y = [100 * share for share in of_steps.values()]
                shares.append(Series(f"{setting}, {kind}", y, list(of_steps)))
    return [*charts, *([Chart("Static features", shares, _PAGES, "% of all importance")] if shares else [])]


def static_shares(rows: Sequence[Row], kind: str) -> dict[int, float]:
    """Return what static features have of all importance, by step; what is worse than nothing counts nothing."""
    shares = {}
    for step in sorted({row["step"] for row in rows}):
        mine = [row for row in rows if row["step"] == step and row[kind] is not None]
        total = sum(max(0.0, row[kind]) for row in mine)
        if total > 0:
            shares[step] = sum(max(0.0, row[kind]) for row in mine if not row["dynamic"]) / total
    return shares


def importance_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the importance of features per setting: means, and folded by step, the stronger the darker."""
    tables: list[Table] = []
    for setting, mine in importance_by_setting(rows).items():
        dynamic = {row["feature"]: row["dynamic"] for row in mine}
        means = {kind: mean_importance(mine, kind) for kind in KINDS}
        order = list(means["permutation"] or means["impurity"])
        steps = mean_steps(mine)
        lines = [
            [
                Cell(name),
                Cell("dynamic" if dynamic[name] else "static"),
                *_importances(
                    {"impurity": means["impurity"].get(name), "permutation": means["permutation"].get(name)}
                ),
            ]
            for name in order
        ]
        over = f"steps {steps[0]} to {steps[-1]}" if len(steps) > 1 else pages_text(steps[0])
        caption = f"{setting.capitalize()}: what features are worth, mean over {over}"
        of_model = f"to {mine[0]['model']}" if mine[0].get("model") else ""
        tables.append(Table(caption, ("feature", "", "impurity, %", "permutation"), lines, after=of_model))
        for kind, title in KINDS.items():
            greatest = max((row[kind] for row in mine if row[kind] is not None), default=0.0)
            shaded: list[tuple[list[Cell], dict[int, Cell]]] = [
                (
                    [Cell(name)],
                    {row["step"]: _shaded(row, kind, greatest) for row in mine if row["feature"] == name},
                )
                for name in dict.fromkeys([*order, *dynamic])
            ]
            if greatest > 0:
                by_step = _by_step(f"{setting.capitalize()}: {title}, by step", ("feature",), shaded)
                tables.append(Table(by_step.caption, by_step.columns, by_step.rows, folded=True))
    return tables


def _importances(values: Mapping[str, float | None]) -> list[Cell]:
    return [
        measured({**values, "low": None, "high": None}, "impurity", 1, 100.0),
        measured({**values, "low": None, "high": None}, "permutation", 3),
    ]


def _shaded(row: Row, kind: str, greatest: float) -> Cell:
    if row[kind] is None:
        return Cell("–")
    spread = row.get("permutation_sd") if kind == "permutation" else None
    text = percent(row[kind]) if kind == "impurity" else number(row[kind], 3)
    note = "" if spread is None else f"± {number(spread, 3)}"
    shade = max(0.0, row[kind] / greatest) if greatest > 0 else 0.0
    return Cell(text, note, shade, "blue" if row["dynamic"] else "orange", value=row[kind])
