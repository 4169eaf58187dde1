"""Formulas: comparisons of a study's numbers, decided as far as their errors allow.

A formula is arithmetic over places, ``[row: column]``, with one comparison or a chain of them:
``0.98 <= [mvn: rsum] / [vse: rsum] <= 1.02``. ``[row]`` is of the column that is evaluated; ``$name`` stands for all
members of a list, as arguments of a function, and ``$name-but-member`` leaves one out; ``[row: column | 640]`` is 640
where there is no such number, ``[row@source]`` a row of other evidence.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, Literal

from diptych.core.errors import StorageError
from diptych.studies.evidence import Error, Evidence, RowColumn

Status = Literal["holds", "fails", "undecided", "not tested"]

Lists = Mapping[str, Sequence[Any]]

# The p-value below which numbers count as different.
LEVEL = 0.05

_PLACE = re.compile(r"\[([^\[\]]+)\]")
_LIST = re.compile(r"\$([\w-]+)")
_FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {
    **{"mean": statistics.fmean, "sum": math.fsum, "min": min, "max": max},
    "abs": lambda values: abs(*values),
}
_OPERATORS: Mapping[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda one, other: one / other if other else math.nan,
}
_SIGNS: Mapping[type, int] = {ast.Gt: 1, ast.GtE: 1, ast.Lt: -1, ast.LtE: -1}
_STEP = 1e-4  # relative, of numeric derivatives


@dataclass(frozen=True)
class Finding:
    """One comparison of a claim."""

    what: str  # is compared
    status: Status
    detail: str  # the numbers that decide
    margin: float = 0.0  # relative distance from failing; below 0 where it fails

    @classmethod
    def of(cls, what: str, holds: bool, detail: str, margin: float = 0.0) -> Finding:
        """Return a comparison that is not a matter of errors."""
        return cls(what, "holds" if holds else "fails", detail, margin)

    @classmethod
    def missing(cls, what: str, *needed: str) -> Finding:
        """Return a comparison that could not be made."""
        return cls(what, "not tested", f"needs {', '.join(needed)}")

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}"


@dataclass(frozen=True)
class Formula:
    """A comparison that can be evaluated on any numbers."""

    text: str
    places: tuple[RowColumn, ...]
    tree: ast.Compare  # with names ``_0``, ``_1`` … for places
    otherwise: Mapping[RowColumn, float] = field(default_factory=dict)  # numbers of places that have none

    @classmethod
    def parse(cls, text: str, column: str = "", lists: Lists | None = None) -> Formula:
        """Read a formula; ``column`` is that of places without one."""
        places: list[RowColumn] = []
        otherwise: dict[RowColumn, float] = {}

        def names(found: re.Match[str]) -> str:
            place, has_default, default = found[1].partition(" | ")
            row, _, of = place.partition(":")
            rows, columns = (members(part, lists or {}) for part in (row.strip(), of.strip() or column))
            named = list(product(rows, columns))
            places.extend(named)
            if has_default:
                otherwise.update(dict.fromkeys(named, float(default)))
            return ", ".join(f"_{number}" for number in range(len(places) - len(named), len(places)))

        code = _PLACE.sub(names, text)
        try:
            tree = ast.parse(code, mode="eval").body
            if not isinstance(tree, ast.Compare) or not all(type(sign) in _SIGNS for sign in tree.ops):
                raise ValueError("no comparison")
            formula = cls(text, tuple(places), tree, otherwise)
            formula.sides(dict.fromkeys(places, 1.0))
        except (SyntaxError, ValueError, TypeError, KeyError) as error:
            raise StorageError(f"{text!r} is no formula: {error}") from None
        return formula

    def is_measured(self, evidence: Evidence) -> bool:
        return all(place in self.otherwise or evidence.figure(*place) for place in self.places)

    @property
    def key(self) -> tuple[str, tuple[RowColumn, ...]]:
        return ast.unparse(self.tree), self.places

    @property
    def nodes(self) -> list[ast.expr]:
        return [self.tree.left, *self.tree.comparators]

    def sides(self, numbers: Mapping[RowColumn, float]) -> list[float]:
        return [_value(node, [numbers[place] for place in self.places]) for node in self.nodes]

    def margin(self, numbers: Mapping[RowColumn, float]) -> float:
        """Return by how much the formula holds; below 0 where it does not."""
        sides = pairwise(self.sides(numbers))
        signs = (_SIGNS[type(sign)] for sign in self.tree.ops)
        return min(sign * (left - right) for sign, (left, right) in zip(signs, sides, strict=True))

    def judge(self, evidence: Evidence, of: int = 1, level: float = LEVEL, seeded: bool = True) -> Finding:
        """Decide the formula by p-values below ``level``, one of ``of`` comparisons any of which may fail by chance;
        ``seeded``: seeds are part of the error, besides queries."""
        columns = list(dict.fromkeys(column for _, column in self.places))
        is_named = len(columns) != 1 or columns[0] in self.text
        what = self.text if is_named else f"{self.text} in {columns[0]}"
        numbers = dict(self.otherwise)
        for place in self.places:
            if (figure := evidence.figure(*place)) is not None:
                numbers[place] = figure.mean
        if absent := [place for place in dict.fromkeys(self.places) if place not in numbers]:
            return Finding.missing(what, *(f"{column} of {row}" for row, column in absent))
        sides, margin = self.sides(numbers), self.margin(numbers)
        if math.isnan(margin):
            return Finding.missing(what, "numbers above 0")
        p = self._p(evidence, numbers, margin, seeded)
        status: Status = "holds" if margin > 0 else "fails"
        ending = ""
        if margin == 0:
            is_strict = any(isinstance(sign, ast.Gt | ast.Lt) for sign in self.tree.ops)
            status, ending = ("undecided", ", equal") if is_strict else ("holds", "")
        elif p is not None:
            ending = f", p = {p:.2g}" if p >= 1e-3 else ", p < 0.001"
            if p >= (level if margin > 0 else level / of):
                status = "undecided"
        named = [
            side for side, node in zip(sides, self.nodes, strict=True) if not isinstance(node, ast.Constant)
        ]
        scale = max(map(abs, sides)) or 1.0
        return Finding(what, status, " against ".join(map(_digits, named)) + ending, margin / scale)

    def _p(
        self, evidence: Evidence, numbers: dict[RowColumn, float], margin: float, seeded: bool
    ) -> float | None:
        """Return the two-sided p-value of the margin by its numbers' errors; None where they have none."""
        from scipy.stats import t

        is_plain = len(self.places) == 2 and all(isinstance(node, ast.Name) for node in self.nodes)
        paired = evidence.paired_error(self.places[0], self.places[1]) if is_plain else None
        errors = [] if paired is None else [(1.0, paired)]
        for place in self.places:
            step = _STEP * (abs(numbers[place]) or 1.0)
            ends = [self.margin({**numbers, place: numbers[place] + sign * step}) for sign in (1, -1)]
            slope = (ends[0] - ends[1]) / (2 * step)
            if evidence.figure(*place) is not None:
                errors += [(slope, error) for error in evidence.error(place, seeded, paired is None)]
        parts: dict[str, Error] = {}  # variances of the margin; of one estimate they are one
        for number, (slope, error) in enumerate(errors):
            key = error.shared or f" {number}"
            before = parts.get(key, Error(0.0))
            parts[key] = Error(before.variance + slope**2 * error.variance, error.freedom)
        variance = math.fsum(part.variance for part in parts.values())
        if variance <= 0:
            return None
        # Welch and Satterthwaite's degrees of freedom
        lost = math.fsum(part.variance**2 / part.freedom for part in parts.values())
        return float(2 * t.sf(abs(margin) / math.sqrt(variance), variance**2 / lost if lost else math.inf))


def listed(name: str, lists: Lists) -> Sequence[Any]:
    """Return the members of a list; of ``LIST-but-MEMBER`` all others."""
    name, _, but = name.partition("-but-")
    values = ((one, one.values() if isinstance(one, Mapping) else [one]) for one in lists[name])
    return [one for one, of in values if not but or but not in of]


def members(text: str, lists: Lists) -> list[str]:
    """Return a text once for each member of the list that it names by ``$name``, or as it is."""
    found = _LIST.search(text)
    return [text] if found is None else [text.replace(found[0], str(one)) for one in listed(found[1], lists)]


def _value(node: ast.expr, numbers: Sequence[float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name) if name.startswith("_"):
            return numbers[int(name[1:])]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, numbers)
        case ast.BinOp(left=left, op=sign, right=right):
            return _OPERATORS[type(sign)](_value(left, numbers), _value(right, numbers))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _FUNCTIONS[name]([_value(one, numbers) for one in arguments])
    raise ValueError(f"{ast.unparse(node)} has no meaning here")


def _digits(value: float) -> str:
    for least, digits in ((1000, ",.0f"), (10, ".1f"), (0.1, ".2f")):
        if abs(value) >= least:
            return format(value, digits)
    return format(value, ".3g")
