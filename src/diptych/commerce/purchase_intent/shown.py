"""Numbers of purchase intent as text and tables, as far as they may be disclosed; an evaluation as tables and charts.

A :class:`~diptych.commerce.purchase_intent.statistics.Description` gives its rows through the control in force and no
other way, so that every table, chart, page, CSV file and study has passed it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from diptych.core.chart import Chart, Series
from diptych.core.options import Options, parameter
from diptych.core.reading import read_toml
from diptych.core.table import Cell, Table
from diptych.metrics.paired import correction_text

Row = Mapping[str, Any]

TEXTS: Mapping[str, dict[str, Any]] = read_toml(Path(__file__).with_name("pages.toml"))


def number(value: float | None, decimals: int = 0, sign: str = "") -> str:
    """Return a number as tables show it: a dash for none, ``< 0.001`` for what rounds to nothing but is something."""
    if value is None:
        return "–"
    if 0 < value < 0.5 * 10**-decimals and decimals and not sign:
        return f"< {10**-decimals:.{decimals}f}"
    return f"{round(value, decimals) + 0.0:{sign},.{decimals}f}".replace("-", "−")


def percent(share: float | None, decimals: int = 1) -> str:
    return number(None if share is None else 100 * share, decimals)


def _cell(column: Row, row: Row) -> Cell:
    """Return the cell of a row in a declared column: of ``key``, and its interval, whose keys begin with ``ends``."""
    value, scale, decimals = row.get(column["key"]), column.get("scale", 1.0), column.get("decimals", 0)
    if value is None or isinstance(value, str):
        return Cell(value or "–")
    ends = [row.get(f"{column['ends']}{end}") for end in ("low", "high")] if "ends" in column else [None]
    note = "" if None in ends else " to ".join(number(scale * one, decimals) for one in ends)
    return Cell(number(scale * value, decimals, column.get("sign", "")), note, value=scale * value)


def table_of(
    declared: Sequence[Row],
    caption: str,
    names: Sequence[Sequence[str]],
    rows: Sequence[Row],
    heads: Sequence[str],
    **look: Any,
) -> Table:
    """Return a table whose rows are ``names``, below ``heads``, and those ``declared`` columns that ``rows`` have."""
    known = {key for row in rows for key in row}
    columns = [one for one in declared if one["key"] in known]
    cells = [
        [*map(Cell, of), *(_cell(one, row) for one in columns)] for of, row in zip(names, rows, strict=True)
    ]
    return Table(caption, (*heads, *(one["title"] for one in columns)), cells, **look)


def without_none(rows: Iterable[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def interval_ends(rows: Sequence[Row], prefix: str = "") -> dict[str, Any]:
    """Return the ends of a series' intervals, where all are known; ``prefix`` begins their columns."""
    low, high = ([row.get(f"{prefix}{end}") for row in rows] for end in ("low", "high"))
    return {} if None in (*low, *high) else {"low": low, "high": high}


MEASURES: Mapping[str, tuple[str, str, str]] = TEXTS["charts"]
"""Measures by step: what they are called, what they are compared with, and its column."""
KINDS: Mapping[str, tuple[str, int, float]] = TEXTS["importances"]
"""What importances are called, their decimals, and how they are scaled."""

_MOST_FEATURES = 15


def step_text(step: int) -> str:
    return "whole" if step < 0 else str(step)


def pages_text(step: int) -> str:
    """Return when a prediction of that step is made."""
    if step < 0:
        return "at the session's end"
    return "before any page" if step == 0 else f"after {step} {'page' if step == 1 else 'pages'}"


def place_text(row: Row) -> str:
    if row["setting"] == row["set"]:
        return "all sessions" if row["set"] == "all" else str(row["set"])
    return f"{row['setting']}, {row['set']}"


def left_out_lines(left_out: Sequence[Row], what: str = "left out") -> list[str]:
    return [f"{what}: {row['setting']}, step {step_text(row['step'])}: {row['reason']}" for row in left_out]


def grouped(rows: Sequence[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by the values of some columns, those of a group by step."""
    found: dict[tuple[Any, ...], list[Row]] = {tuple(row[key] for key in keys): [] for row in rows}
    for row in sorted(rows, key=lambda row: row["step"]):
        found[tuple(row[key] for key in keys)].append(row)
    return found


@dataclass(frozen=True)
class Grid:
    """The cells of an evaluation, by setting, feature set, step and model."""

    cells: Sequence[Row]

    @cached_property
    def by_step(self) -> bool:
        """Return whether there is more than one step."""
        return len({cell["step"] for cell in self.cells}) > 1

    @cached_property
    def labels(self) -> dict[str, str]:
        return {cell["model"]: cell.get("label") or cell["model"] for cell in self.cells}

    @cached_property
    def best(self) -> dict[str, Row]:
        """The cell of every setting with the highest average precision, in its last set at its last step."""
        found = {}
        for (setting,), rows in grouped(self.cells, "setting").items():
            mine = [row for row in rows if row.get("average_precision") is not None]
            last = [row for row in mine if (row["set"], row["step"]) == (rows[-1]["set"], mine[-1]["step"])]
            if last:
                found[setting] = max(last, key=lambda row: row["average_precision"])
        return found


def evaluation_blocks(cells: Sequence[Row], importance: Sequence[Row]) -> dict[str, list[Chart | Table]]:
    grid = Grid(cells)
    drawn = {measure: step_charts(grid, measure) for measure in MEASURES}
    return {
        "By step" if grid.by_step else "By model": [*drawn["average_precision"], *drawn["f1"]],
        "What extended features add": [*drawn["average_precision_gain"], *drawn["f1_gain"]],
        "Probabilities": [*reliability_charts(grid)],
        "What features are worth": [*importance_charts(importance)],
        "All numbers": [*_cell_tables(grid)],
    }


def evaluation_tables(cells: Sequence[Row], importance: Sequence[Row]) -> list[Table]:
    parts = evaluation_blocks(cells, importance)
    blocks = [block for name, part in parts.items() if name != "Probabilities" for block in part]
    return [
        replace(one.table(), caption=f"{one.title}: {one.y or one.x}", folded=False)
        if isinstance(one, Chart)
        else one
        for one in blocks
    ]


def _cell_tables(grid: Grid) -> list[Table]:
    tables, n = [], sum("brier_calibrated_gain_p" in cell for cell in grid.cells)
    after = f"gains: less the baseline; p of sign flips of persons, {correction_text('holm', n)}" * bool(n)
    for cells in grouped(grid.cells, "setting", "set").values():
        names = [(f"{grid.labels[cell['model']]} {pages_text(cell['step'])}",) for cell in cells]
        caption = f"{place_text(cells[0]).capitalize()}: all cells"
        found, look = without_none(cells), {"after": after, "folded": True}
        tables.append(table_of(TEXTS["tables"]["cells"], caption, names, found, ("Model",), **look))
    return tables


def step_charts(grid: Grid, measure: str) -> list[Chart]:
    """Return a measure by step, a chart per setting and set; of one step by model. The best model has a band."""
    charts, (title, reference, column) = [], MEASURES[measure]
    known = [cell for cell in grid.cells if cell.get(measure) is not None]
    for (setting, _), cells in grouped(known, "setting", "set").items():
        caption, chance = place_text(cells[0]), {cell["step"]: cell.get(column, 0.0) for cell in cells}
        level = Series(reference, [*chance.values()][:1], mark="level")
        if not grid.by_step:
            values, names = zip(*((cell[measure], grid.labels[cell["model"]]) for cell in cells), strict=True)
            texts, ends = [number(value, 3) for value in values], interval_ends(cells, f"{measure}_")
            points = Series(title, values, mark="point", texts=texts, **ends)
            charts.append(Chart(caption, [points, level], title, "", names, across=True))
            continue
        lines = []
        for (model,), mine in grouped(cells, "model").items():
            y, x, quiet = [row[measure] for row in mine], [row["step"] for row in mine], True
            quiet = model != grid.best.get(setting, {}).get("model")
            ends = interval_ends(mine, f"{measure}_")
            lines.append(Series(grid.labels[model], y, x, quiet=quiet, **ends))
        level = Series(reference, [*chance.values()], [*chance], colour="ink") if column else level
        charts.append(Chart(caption, [*lines, level], "pages open", title))
    return charts


def reliability_charts(grid: Grid) -> list[Chart]:
    """Return mean probability and share of purchases by bin: of the best model, at its first and its last step."""
    charts, axes = [], ("mean probability, %", "purchases, %")
    curves = {"reliability_calibrated": "calibrated", "reliability": "as the model gives them"}
    parts = grouped(grid.cells, "setting", "set", "model")
    for best in grid.best.values():
        mine = parts[best["setting"], best["set"], best["model"]]
        known = [cell for cell in mine if any(cell.get(name) for name in curves)]
        for cell in {one["step"]: one for one in (*known[:1], *known[-1:])}.values():
            drawn = [
                Series(name, [100 * one["share"] for one in bins], [100 * one["mean_score"] for one in bins])
                for key, name in curves.items()
                if (bins := cell.get(key))
            ]
            title, label = f"{place_text(cell)}, {pages_text(cell['step'])}", grid.labels[cell["model"]]
            charts.append(Chart(title, drawn, *axes, diagonal=True, after=label))
    return charts


def mean_importance(rows: Sequence[Row], kind: str) -> dict[str, float]:
    """Return every feature's mean importance over steps with dynamic features, or all; most important first."""
    steps = {row["step"] for row in rows if row["dynamic"]} or {row["step"] for row in rows}
    sums: Counter[str] = Counter()
    for row in rows:
        if row["step"] in steps and row[kind] is not None:
            sums[row["feature"]] += row[kind] / len(steps)
    return dict(sorted(sums.items(), key=lambda one: (-one[1], one[0])))


def importance_charts(rows: Sequence[Row]) -> list[Chart]:
    """Return the importances of every setting, of the last feature set it has, for each kind that is known."""
    charts, last = [], {setting: mine for (setting, _), mine in grouped(rows, "setting", "set").items()}
    for (setting, mine), kind in product(last.items(), KINDS):
        if not any(row[kind] for row in mine):
            continue
        (title, decimals, scale), dynamic = KINDS[kind], {row["feature"] for row in mine if row["dynamic"]}
        means, bars = list(mean_importance(mine, kind).items())[:_MOST_FEATURES], []
        for name, colour in (("dynamic", "blue"), ("static", "orange")):
            y = [scale * worth if (one in dynamic) is (name == "dynamic") else None for one, worth in means]
            texts = [number(one, decimals) for one in y]
            bars.append(Series(name, y, mark="bar", texts=texts, colour=colour))
        names = [one for one, _ in means]
        charts.append(Chart(f"{setting}, by {kind}", bars, title, "", names, across=True, stacked=True))
    return charts


def static_shares(rows: Sequence[Row], kind: str) -> dict[int, float]:
    """Return what static features have of all importance, by step; what is worse than nothing counts nothing."""
    shares = {}
    for (step,), mine in sorted(grouped(rows, "step").items()):
        total = sum(max(0.0, row[kind] or 0.0) for row in mine)
        if total:
            shares[step] = sum(max(0.0, row[kind] or 0.0) for row in mine if not row["dynamic"]) / total
    return shares


_FLOOR = 0.01  # where the tail of a distribution ends: its steps are the inverse of the number of sessions
_QUANTILES = {"p50": 0.5, "p90": 0.9, "middle": 0.9, "p99": 0.99}
_COUNTS = ("at_least", "purchase_sessions", "queries", "sessions", "transitions", "unique", "visitors")
_OF_RATES = {*_COUNTS, "high", "low", "rate"} - {"transitions"}  # what conversion rates follow from


class DisclosureControl(Options):
    """Minimum cell count, suppression of smaller cells and of complements, and suppression of conversion rates."""

    least: int = parameter(
        5, "Smaller counts, and what follows from them, are not shown.", "--least-count", ge=1
    )
    hide_rates: bool = parameter(False, "Show standardised rates and shares only, as in the thesis.")

    @classmethod
    def current(cls) -> "DisclosureControl":
        return _CURRENT.get()

    def small(self, *counts: int | None) -> bool:
        """Return whether one of the counts is below the minimum."""
        return any(count is not None and 0 < count < self.least for count in counts)

    def count(self, count: int | None) -> Cell:
        return Cell(f"< {self.least}") if self.small(count) else Cell(number(count), value=count)

    def share(self, part: int, of: int) -> float | None:
        """Return a part of a whole; None where either side of it is small, or the whole is nothing."""
        return part / of if of and not self.small(part, of - part) else None

    def rows(self, rows: Sequence[Row], count: str = "", whole: str = "") -> list[dict[str, Any]]:
        """Return the rows of a statistic as they may be shown.

        A small count is the text ``< 5``; numbers that follow from it are None. Where the column ``count`` adds up
        over rows with equal ``whole`` and one of them is suppressed, so is the smallest of the others. With hidden
        rates, columns and rows that these follow from are missing.
        """
        rows = [row for row in rows if row.get("at_least", self.least) >= self.least]
        if self.hide_rates:
            rows = [row for row in rows if "at_least" not in row or row["share"] >= _FLOOR]
            rows = [row for row in rows if row.get("what") not in ("purchase sessions", "purchasers")]
        suppressed, parts = set[int](), dict[Any, list[int]]()
        for place, row in enumerate(rows if count else ()):
            others = row["sessions"] - row["purchase_sessions"] if "purchase_sessions" in row else None
            if self.small(others, *(row.get(name) for name in _COUNTS)):
                suppressed.add(place)
            if row.get(count) and row.get("device") != "all" and row.get("devices") != "> 1":
                parts.setdefault(row.get(whole), []).append(place)
        for places in parts.values():
            rest = sorted(set(places) - suppressed, key=lambda place: rows[place][count])
            if len(places) - len(rest) == 1:
                suppressed |= set(rest[:1])
        shown = [self._suppressed(row, place in suppressed) for place, row in enumerate(rows)]
        hidden = _OF_RATES if self.hide_rates else ()
        return [{name: value for name, value in row.items() if name not in hidden} for row in shown]

    def _suppressed(self, row: Row, is_suppressed: bool) -> dict[str, Any]:
        shown = dict(row)
        if is_suppressed:
            kept = {"sessions"} if "purchase_sessions" in row else set()
            names = {*_COUNTS, *_QUANTILES, "max"} - kept
            shown |= {name: None for name in row if name in names or isinstance(row[name], float)}
        for name, level in _QUANTILES.items():
            if name in row and (1 - level) * row["sessions"] < self.least - 1e-9:
                shown[name] = None
        counts = _COUNTS if "what" not in row else () if row["what"] == "device types" else ("total",)
        return shown | {name: f"< {self.least}" for name in counts if self.small(row.get(name))}

    def lines(self) -> list[str]:
        """Return what a page notes about it."""
        shown = {"small": self.least > 1, "rates": self.hide_rates}
        texts = [TEXTS["parts"][name] for name, is_so in shown.items() if is_so]
        return [text.format(least=self.least, most=self.least - 1) for text in texts]


_CURRENT: ContextVar[DisclosureControl] = ContextVar("disclosure", default=DisclosureControl())  # noqa: B039


@contextmanager
def disclosing(control: DisclosureControl) -> Iterator[None]:
    """Put ``control`` in force for everything that is shown or written inside the block."""
    token = _CURRENT.set(control)
    try:
        yield
    finally:
        _CURRENT.reset(token)
