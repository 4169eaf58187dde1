"""What is said of printed numbers: the verdict in words, tables and charts of explored protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table
from diptych.evaluation.printed import DigitReport, Target, read_digits
from diptych.evaluation.variants.exploration import Exploration, Variant, explain
from diptych.evaluation.variants.settings import AXES

_ROWS = 12  # variants in the table of a verdict


@dataclass(frozen=True, eq=False)
class Verdict:
    """Which protocol would explain printed numbers, and what their digits say."""

    target: Target
    found: Exploration | None = None  # None where the digits alone are read
    of: Sequence[str] = ()  # what was printed, and what it is computed again from
    is_matrix: bool = False  # computed from files of scores

    @cached_property
    def digits(self) -> DigitReport:
        return read_digits(self.target, None if self.found is None else self.found.galleries)

    @property
    def warnings(self) -> list[str]:
        return [] if self.found is None else [f"{one}." for one in self.found.warnings]

    @property
    def explained(self) -> list[str]:
        return [] if self.found is None else explain(self.found)

    def tables(self) -> list[Table]:
        """Return the printed cells, with the nearest variants where there are any."""
        if self.found is None:
            return [Table("Printed", ("", *self.target.cells), [_printed(self.target)])]
        return [variants_table(self.found, _ROWS)]

    def lines(self) -> list[str]:
        """Return the verdict without its warnings, what the digits say, and what it was computed from."""
        signs, hints = self.digits.sentences(), []
        truncated = any(one.kind == "truncated" for one in self.digits.signs)
        if self.found is not None and self.found.default["k_test"] == "none" and truncated:
            usual = "--reranked FOLDER (or diptych evaluate --rerank K)"
            give = "--matching FILE" if self.is_matrix else usual
            hints = [f"these may be re-ranked numbers: with {give}, matching scores are tried too"]
        head = "the digits:" if signs else "the digits: nothing that other digits would not say as well"
        verdict = self.explained[len(self.warnings) :]
        return [*verdict, head, *(f"  {sign}" for sign in signs), *hints, *self.of]

    def to_dict(self) -> dict[str, Any]:
        content = {"format": 1, "target": self.target.to_dict(), "of": list(self.of), "says": self.explained}
        content |= {"digits say": self.digits.sentences()}
        content |= {} if self.found is None else {"exploration": self.found.to_dict()}
        return {**content, "digits": self.digits.to_dict()}


def _printed(target: Target) -> list[Cell]:
    return [Cell("printed"), *(Cell(str(cell), value=cell.value) for cell in target.cells.values())]


def shown_variants(found: Exploration, most: int) -> list[Variant]:
    """Return the default, what explains, and the nearest others, none with the values of one before."""
    shown: list[Variant] = []
    seen: set[tuple[float, ...]] = set()
    for one in (found.as_given, *found.exact_explanations[:1], *found.explanations, *found.variants):
        values = tuple(round(value, 6) for value in one.values.values())
        # The same numbers with the digits cut off are another print.
        key = (*values, float(len(one.exact)))
        if key not in seen and len(shown) < most:
            seen.add(key)
            shown.append(one)
    return shown


def variants_table(found: Exploration, most: int) -> Table:
    """Return what is printed, and below it the default, what explains and the nearest variants."""
    cells = found.target.cells
    rows = [[*_printed(found.target), Cell(""), Cell("", words=True)]]
    for one in shown_variants(found, most):
        row = [Cell(one.line())]
        for name, cell in cells.items():
            mark = " =" if name in one.exact else " ✓" if name in one.within else ""
            text, is_in = f"{one.values[name]:.{cell.decimals}f}{mark}", name in one.within
            row.append(Cell(text, shade=0.4 if is_in else 0.0, colour="green", value=one.values[name]))
        rows.append([*row, Cell.number(100 * one.mean_error), _meaning(found, one)])
    within = f"✓ within {100 * found.tolerance:g} % of what is printed"
    after = f"{within}, = printed alike; off: mean relative distance."
    columns = ("variant", *cells, "off, %", "what it means")
    return Table(found.target.label or "Variants", columns, rows, after=after)


def _meaning(found: Exploration, one: Variant) -> Cell:
    return Cell(found.meaning(one) or "nothing is changed", words=True)


def changes_table(found: Exploration) -> Table:
    """Return how far the best choice on each axis alone comes."""
    rows = []
    for tried, one in [(0, found.as_given), *((one.tried, one.best) for one in found.single_changes)]:
        within = Cell(f"{len(one.within)} of {len(found.target.cells)}", value=len(one.within))
        choices = Cell(f"{tried:,}" if tried else "–", value=tried)
        distances = Cell.number(100 * one.mean_error), Cell.number(100 * one.worst_error)
        rows.append([Cell(one.line()), choices, within, *distances, _meaning(found, one)])
    cells = f"cells within {100 * found.tolerance:g} %"
    columns = ("best single change", "choices", cells, "off, %", "worst, %", "what it means")
    return Table("Single changes", columns, rows)


def axes_tables(found: Exploration) -> list[Table]:
    """Return what was varied and what each choice means, the default first, and what could not be tried."""
    descriptions = {axis.name: axis.description for axis in AXES}
    rows = []
    for (axis, name), words in found.words.items():
        choice = Cell(name, "default" if found.default[axis] == name else "", words=True)
        description = Cell(descriptions.get(axis, ""), words=True)
        rows.append([Cell(axis), choice, Cell(words, words=True), description])
    columns = ("name", "choice", "what it means", "what is left open")
    tables = [Table("What was tried", columns, rows)]
    refused = [
        [Cell(", ".join(map(str, one.first))), Cell.number(one.count, 0), Cell(one.reason, words=True)]
        for one in found.refused
    ]
    if refused:
        tables.append(Table("Not tried", ("the first of them", "variants", "why"), refused))
    return tables


def distance_charts(found: Exploration) -> list[Chart]:
    """Return the mean distance of the default, of the best explanation and of every best single change."""
    singles = [one.best for one in found.single_changes]
    best = found.explanations[0] if found.explanations else found.as_given
    if best.changes and best not in singles:
        singles.insert(0, best)
    shown = [found.as_given, *singles]
    series = []
    for name, colour, explains in (("explains", "orange", True), ("does not", "blue", False)):
        values = [100 * one.mean_error if one.explains == explains else None for one in shown]
        if any(value is not None for value in values):
            texts = ["" if value is None else f"{value:.1f} %" for value in values]
            series.append(Series(name, values, mark="bar", colour=colour, texts=texts))
    series.append(Series("default protocol", [100 * found.as_given.mean_error], mark="level"))
    names = [one.line() for one in shown]
    x = "mean relative distance from what is printed, %"
    return [Chart("Single changes", series, x, "", names, across=True, stacked=True)]
