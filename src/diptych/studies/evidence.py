"""Evidence for claims: numbers, how far each can be off, and how trainings went."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.core.artifact import Artifact
from diptych.metrics.paired import Shares, shares_of

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
        """Return the figure, or None where the row was not run or has no such column."""
        name, _, source = row.rpartition("@")
        if source in self.sources:
            return self.sources[source].figure(name, column)
        return self.figures.get(row, {}).get(column)

    def only(self, rows: Sequence[str], column: str) -> dict[str, Figure]:
        """Return the figures of one column that are there."""
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
    shares = Shares.added([shares_of(values, cluster, images) for values, cluster in parts])
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
