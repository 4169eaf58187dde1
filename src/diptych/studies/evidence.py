"""Evidence for claims: numbers, how far each can be off, how trainings went, and formulas that compare numbers.

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
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError
from diptych.metrics.paired import ClusterShares, shares_of

# Row and column of a number.
RowColumn = tuple[str, str]

# (n,) values per query, whose mean is part of a number, and (n,) the image of each.
Queries = tuple[np.ndarray, np.ndarray]

# End the names of columns with the ends of another one's 95 % interval.
LOW, HIGH = " low", " high"

_HALF_WIDTH = 1.96
_FIXED = ("chance", "zero-shot")  # begin the names of columns that no seed changes
# standard deviation over seeds where one was run, in points by column, otherwise a share of the number
_ASSUMED = {"rsum": 3.0, "R@": 1.0, "P@": 1.0, "mAP": 1.0, "R-precision": 0.01}
_OTHERWISE = 0.02


class Error(NamedTuple):
    """A variance, its degrees of freedom, and what else is of the same estimate."""

    variance: float
    freedom: float = math.inf
    shared: str = ""


@dataclass(frozen=True)
class Figure:
    """A number with its spread over seeds."""

    mean: float
    sd: float | None = None  # of the sample; None of one seed, or where none was printed
    seeds: int = 1

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        sd = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.mean(values), sd, len(values))


@dataclass(frozen=True)
class Trajectory:
    """The course of one training, after each of (n,) logged steps and (m,) epochs."""

    steps: Sequence[int]  # (n,) of the optimizer
    contrastive: Sequence[float]  # (n,) loss
    reconstruction: Sequence[float] = ()  # (n,) loss; empty without one
    multiplier: Sequence[float] = ()  # (n,) λ; empty without a constraint
    epoch_steps: Sequence[int] = ()  # (m,) steps after which the model was validated
    rsum: Sequence[float] = ()  # (m,) of the validation
    bound: float | None = None  # η; None without a constraint


@dataclass(frozen=True)
class Evidence:
    """Everything a claim may look at; over several collections columns are ``COLLECTION COLUMN``."""

    figures: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)  # by row and column
    trajectories: Mapping[str, Sequence[Trajectory]] = field(default_factory=dict)  # one per seed, by row
    # folders with values per query, one per seed, by row; over several collections by ``COLLECTION ROW``
    kept: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    # of several collections: what images show (``scene``, ``object``, or nothing where it is not known)
    centric: Mapping[str, str] = field(default_factory=dict)
    # of several collections: split and captions that each row was evaluated on
    tasks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()  # rows that no seed changes
    exact: bool = False  # numbers have no error, as printed ones
    sources: Mapping[str, Evidence] = field(default_factory=dict)  # by source, for ``ROW@SOURCE``

    def figure(self, row: str, column: str) -> Figure | None:
        name, _, source = row.rpartition("@")
        if source in self.sources:
            return self.sources[source].figure(name, column)
        return self.figures.get(row, {}).get(column)

    def only(self, rows: Sequence[str], column: str) -> dict[str, Figure]:
        return {row: figure for row in rows if (figure := self.figure(row, column)) is not None}

    def error(self, place: RowColumn, seeded: bool = True, sampled: bool = True) -> list[Error]:
        """Return the variances of a number: of seeds, and of the queries, as requested."""
        row, column = place
        if self.exact or row.rpartition("@")[2] in self.sources:
            return []
        low, high = (self.figure(row, column + end) for end in (LOW, HIGH))
        if low is not None and high is not None:
            return [Error(((high.mean - low.mean) / (2 * _HALF_WIDTH)) ** 2)]
        is_fixed = row in self.fixed or column.split(" ")[0] in _FIXED
        errors = [self._seed_error(place)] if seeded and not is_fixed else []
        queries = self.queries(place) if sampled else []
        return [*errors, _query_error(queries)] if queries else errors

    def paired_error(self, first: RowColumn, second: RowColumn) -> Error | None:
        """Return the variance over images of the difference of two numbers of the same queries.

        They are of one column, or of one row on one collection.
        """
        one, other = self.queries(first), self.queries(second)
        rows = [(place[0], self._collection(place)) for place in (first, second)]
        if not one or len(one) != len(other) or (first[1] != second[1] and rows[0] != rows[1]):
            return None
        pairs = list(zip(one, other, strict=True))
        if not all(np.array_equal(mine, theirs) for (_, mine), (_, theirs) in pairs):
            return None
        return _query_error([(a - b, cluster) for (a, cluster), (b, _) in pairs])

    def queries(self, place: RowColumn) -> Sequence[Queries]:
        """Return the values per query behind a number, of the first seed; empty where none are kept."""
        row, column = place
        if collection := self._collection(place):
            row, column = f"{collection} {row}", column.removeprefix(f"{collection} ")
        folders = self.kept.get(row, ())
        return queries_in(folders[0], column) if folders and not self.exact else ()

    def _collection(self, place: RowColumn) -> str:
        return next((name for name in self.centric if place[1].startswith(f"{name} ")), "")

    def _seed_error(self, place: RowColumn) -> Error:
        """Return the variance of a mean over seeds: by all rows of the column together, else as is usual."""
        row, column = place
        figure = self.figures[row][column]
        rows = [name for name in self.figures if name not in self.fixed]
        runs = [(run.sd, run.seeds - 1) for run in self.only(rows, column).values() if run.sd is not None]
        freedom = sum(more for _, more in runs)
        if freedom:
            variance = math.fsum(sd**2 * more for sd, more in runs) / freedom
            return Error(variance / figure.seeds, freedom, column)
        usual = next((sd for name, sd in _ASSUMED.items() if name in column), _OTHERWISE * abs(figure.mean))
        return Error(usual**2 / figure.seeds)


def side_by_side(each: Mapping[str, Evidence], centric: Mapping[str, str]) -> Evidence:
    """Return the evidence of several collections as one, with columns ``COLLECTION COLUMN``."""
    figures: dict[str, dict[str, Figure]] = {}
    kept: dict[str, Sequence[Path]] = {}
    for name, evidence in each.items():
        for row, columns in evidence.figures.items():
            named = {f"{name} {column}": figure for column, figure in columns.items()}
            figures.setdefault(row, {}).update(named)
        kept |= {f"{name} {row}": folders for row, folders in evidence.kept.items()}
    return Evidence(figures, kept=kept, centric={name: centric.get(name, "") for name in each})


def _query_error(parts: Sequence[Queries]) -> Error:
    """Return the variance over images of a sum of means."""
    images = 1 + max(int(cluster.max()) for _, cluster in parts)
    shares = ClusterShares.added([shares_of(values, cluster, images) for values, cluster in parts])
    return Error(shares.variance, max(shares.freedom, 1))


# The file of a measurement's folder that holds what it keeps.
KEPT = "per_query.npz"


@dataclass(frozen=True, eq=False)
class Kept(Artifact, kind="study-queries", recreate="diptych study run: it measures what is missing"):
    """Data that a measurement keeps besides its figures, for tests that pair queries, and for reports."""

    values: Mapping[str, np.ndarray]  # column → (n,) one value per query
    # (n,) the image of each query, whose captions are sampled together; where queries differ, by the first
    # word of a column
    cluster: np.ndarray | dict[str, np.ndarray]
    examples: Sequence[dict[str, Any]] = ()  # single queries that a report shows


def kept_in(folder: Path) -> Kept | None:
    """Open what a measurement keeps; None where it is not there."""
    return Kept.open(folder / KEPT) if (folder / KEPT).is_file() else None


@lru_cache(maxsize=64)
def queries_in(folder: Path, column: str) -> Sequence[Queries]:
    """Return the values per query behind a column, by what a measurement keeps or by a whole evaluation."""
    from diptych.evaluation import Result

    if (kept := kept_in(folder)) is not None:
        if column not in kept.values:
            return ()
        cluster = kept.cluster[column.split(" ")[0]] if isinstance(kept.cluster, dict) else kept.cluster
        return ((kept.values[column], cluster),)
    if not (folder / Result.marker()).is_file():
        return ()
    result = Result.open(folder)
    side, _, measure = column.rpartition(" ")
    parts = []
    for direction in [side] if side else ["i2t", "t2i"]:
        values = result.per_query.get(direction, {})
        names = [name for name in values if name.startswith("R@")] if measure == "rsum" else [measure]
        images = np.arange(result.protocol.n_images) if direction == "i2t" else result.text_image
        if images is None or not names or not values.keys() >= set(names):
            return ()
        scale = 100.0 if names[0].startswith("R@") else 1.0
        total = np.asarray(np.sum([values[name] for name in names], axis=0, dtype=np.float64))
        parts.append((scale * total, np.asarray(images)))
    return tuple(parts)


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
