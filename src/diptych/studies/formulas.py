"""Formulas: comparisons of a study's numbers, decided as far as their errors allow.

A formula is arithmetic over places, ``[row: column]``, with one comparison or a chain of them::

    [ltd-constraint] > [baseline]
    0.98 <= [mvn: rsum] / [vse: rsum] <= 1.02
    mean([ltd-dual: $recalls]) <= 1.02 * mean([baseline: $recalls])

``[row]`` is of the column that is asked about; ``$name`` stands for all members of a list, as arguments of a function;
``[row: column | 640]`` is 640 where there is no such number, ``[row@source]`` a row of other evidence.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from diptych.core.errors import StorageError
from diptych.studies.evidence import Error, Evidence, Place

Status = Literal["holds", "fails", "undecided", "not tested"]

LEVEL = 0.05
"""The p-value below which numbers are said to be apart."""

_PLACE = re.compile(r"\[([^\[\]]+)\]")
_LIST = re.compile(r"\$([\w-]+)")
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "mean": lambda *values: statistics.fmean(values),
    "sum": lambda *values: math.fsum(values),
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "abs": abs,
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
    """One comparison of a claim.

    Attributes:
        what: what is compared.
        status: what the numbers say.
        detail: the numbers that decide.
        margin: relative distance from failing, for finding the tightest; below 0 where it fails.
    """

    what: str
    status: Status
    detail: str
    margin: float = 0.0

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
    places: tuple[Place, ...]
    tree: ast.Compare
    otherwise: Mapping[Place, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, column: str = "", lists: Mapping[str, Sequence[str]] | None = None) -> Formula:
        """Read a formula; ``column`` is that of places without one."""
        places: list[Place] = []
        otherwise: dict[Place, float] = {}

        def named(found: re.Match[str]) -> str:
            place, has, default = found.group(1).partition(" | ")
            row, _, of = place.partition(":")
            each = [members(part, lists or {}) for part in (row.strip(), of.strip() or column)]
            begin = len(places)
            places.extend((one, other) for one in each[0] for other in each[1])
            if has:
                otherwise.update(dict.fromkeys(places[begin:], float(default)))
            return ", ".join(f"_{number}" for number in range(begin, len(places)))

        code = _PLACE.sub(named, text)
        try:
            tree = ast.parse(code, mode="eval").body
            if not isinstance(tree, ast.Compare) or not all(type(sign) in _SIGNS for sign in tree.ops):
                raise ValueError("no comparison")
            for node in (tree.left, *tree.comparators):
                _value(node, lambda number: 1.0)
        except (SyntaxError, ValueError, TypeError, KeyError) as error:
            raise StorageError(f"{text!r} is no formula: {error}") from None
        return cls(text, tuple(places), tree, otherwise)

    @property
    def key(self) -> tuple[str, tuple[Place, ...]]:
        """What tells it from others."""
        return ast.unparse(self.tree), self.places

    @property
    def what(self) -> str:
        """The formula with the column that it is asked of."""
        columns = list(dict.fromkeys(column for _, column in self.places))
        return (
            f"{self.text} in {columns[0]}" if len(columns) == 1 and columns[0] not in self.text else self.text
        )

    @property
    def strict(self) -> bool:
        """Whether equal numbers are not enough."""
        return any(isinstance(sign, ast.Gt | ast.Lt) for sign in self.tree.ops)

    def sides(self, numbers: Mapping[Place, float]) -> list[float]:
        """Return the value of each side."""
        nodes = (self.tree.left, *self.tree.comparators)
        return [_value(node, lambda number: numbers[self.places[number]]) for node in nodes]

    def margin(self, numbers: Mapping[Place, float]) -> float:
        """Return by how much the formula holds; below 0 where it does not."""
        sides = pairwise(self.sides(numbers))
        signs = (_SIGNS[type(sign)] for sign in self.tree.ops)
        return min(sign * (left - right) for sign, (left, right) in zip(signs, sides, strict=True))

    @property
    def pair(self) -> tuple[Place, Place] | None:
        """The two places of a plain ``[a] > [b]``, whose queries can be paired."""
        plain = len(self.places) == 2 and all(
            isinstance(side, ast.Name) for side in (self.tree.left, *self.tree.comparators)
        )
        return (self.places[0], self.places[1]) if plain else None

    def judge(self, evidence: Evidence, of: int = 1, level: float = LEVEL, seeded: bool = True) -> Finding:
        """Decide the formula.

        Args:
            of: how many comparisons a claim has, any of which may fail by chance.
            level: p-values below it decide.
            seeded: whether seeds are part of the error, besides queries.
        """
        figures = {place: evidence.figure(*place) for place in self.places}
        if absent := [one for one in figures if figures[one] is None and one not in self.otherwise]:
            return Finding.missing(self.what, *(f"{column} of {row}" for row, column in absent))
        numbers = {**self.otherwise, **{place: one.mean for place, one in figures.items() if one is not None}}
        sides, margin = self.sides(numbers), self.margin(numbers)
        if math.isnan(margin):
            return Finding.missing(self.what, "numbers above 0")
        p = self._p(evidence, numbers, margin, seeded)
        status: Status = "holds" if margin > 0 else "fails"
        ending = ""
        if margin == 0:
            status, ending = ("undecided", ", equal") if self.strict else ("holds", "")
        elif p is not None:
            ending = f", p = {p:.2g}" if p >= 1e-3 else ", p < 0.001"
            if p >= (level if margin > 0 else level / of):
                status = "undecided"
        constant = [isinstance(side, ast.Constant) for side in (self.tree.left, *self.tree.comparators)]
        shown = [f"{_digits(side)}" for side, is_one in zip(sides, constant, strict=True) if not is_one]
        scale = max(map(abs, sides), default=0.0) or 1.0
        return Finding(self.what, status, " against ".join(shown) + ending, margin / scale)

    def _p(
        self, evidence: Evidence, numbers: dict[Place, float], margin: float, seeded: bool
    ) -> float | None:
        """Return the two-sided p-value of the margin by its numbers' errors; None where they have none."""
        from scipy.stats import t

        parts: dict[str, Error] = {}
        paired = None if self.pair is None else evidence.paired_error(*self.pair)
        errors = [(1.0, paired)] if paired is not None else []
        for place in self.places:
            step = _STEP * (abs(numbers[place]) or 1.0)
            ends = [self.margin({**numbers, place: numbers[place] + sign * step}) for sign in (1, -1)]
            slope = (ends[0] - ends[1]) / (2 * step)
            if evidence.figure(*place) is not None:
                errors += [(slope, error) for error in evidence.error(place, seeded, paired is None)]
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


def members(part: str, lists: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a text once for each member of the list that it names by ``$name``, or as it is."""
    found = _LIST.search(part)
    return (
        [part] if found is None else [part.replace(found.group(), str(one)) for one in lists[found.group(1)]]
    )


def _value(node: ast.expr, number: Callable[[int], float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name) if name.startswith("_"):
            return number(int(name[1:]))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, number)
        case ast.BinOp(left=left, op=sign, right=right):
            return _OPERATORS[type(sign)](_value(left, number), _value(right, number))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _FUNCTIONS[name](*(_value(one, number) for one in arguments))
    raise ValueError(f"{ast.unparse(node)} has no meaning here")


def _digits(value: float) -> str:
    size = abs(value)
    return (
        f"{value:,.0f}"
        if size >= 1000
        else f"{value:.1f}"
        if size >= 10
        else f"{value:.2f}"
        if size >= 0.1
        else f"{value:.3g}"
    )
