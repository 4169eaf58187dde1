"""What claims are judged on: numbers, how far each can be off, and how trainings went."""

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
from diptych.metrics.paired import shares_of

Place = tuple[str, str]
"""Row and column of a number."""


class Error(NamedTuple):
    """A variance, its degrees of freedom, and what else is of the same estimate."""

    variance: float
    freedom: float = math.inf
    shared: str = ""


Queries = tuple[np.ndarray, np.ndarray]
"""(n,) values per query, whose mean is part of a number, and (n,) the image of each."""

LOW, HIGH = " low", " high"
"""End the names of columns with the ends of another one's 95 % interval."""

_HALF_WIDTH = 1.96
_ASSUMED = {"rsum": 3.0, "R@": 1.0, "P@": 1.0, "mAP": 1.0, "R-precision": 0.01}
_FIXED = ("chance", "zero-shot")
"""Begin the names of columns that no seed changes."""

_OTHERWISE = 0.02
"""Standard deviation over seeds that is assumed where one seed was run: points, or a share of the number."""


@dataclass(frozen=True)
class Figure:
    """A number with its spread over seeds.

    Attributes:
        mean: of all seeds.
        sd: sample standard deviation over seeds; None when there is one seed, or none was printed.
        seeds: how many.
    """

    mean: float
    sd: float | None = None
    seeds: int = 1

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        """Return the figure of one value per seed."""
        sd = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.mean(values), sd, len(values))


@dataclass(frozen=True)
class Trajectory:
    """How one training went.

    Attributes:
        steps: (n,) optimizer steps that were logged.
        contrastive: (n,) contrastive loss.
        reconstruction: (n,) reconstruction loss; empty without one.
        multiplier: (n,) λ; empty without a constraint.
        epoch_steps: (m,) steps after which the model was validated.
        rsum: (m,) validation recall sum.
        bound: η; None without a constraint.
    """

    steps: Sequence[int]
    contrastive: Sequence[float]
    reconstruction: Sequence[float] = ()
    multiplier: Sequence[float] = ()
    epoch_steps: Sequence[int] = ()
    rsum: Sequence[float] = ()
    bound: float | None = None


@dataclass(frozen=True)
class Evidence:
    """Everything a claim may look at.

    Attributes:
        figures: row → column → figure; over several collections columns begin with the collection's name.
        trajectories: row → one per seed.
        kept: row → a folder per seed with values per query; over several collections ``COLLECTION ROW``.
        centric: of several collections, each with what its pictures show: ``scene``, ``object``, or nothing
            where nobody said.
        tasks: of several collections, each with what its rows were asked, by row: split and captions.
        fixed: rows that no seed changes: what is given, counted or declared.
        exact: whether numbers are taken as they are, as printed ones are.
        beside: other evidence by its source; ``ROW@SOURCE`` is a row of it.
    """

    figures: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    trajectories: Mapping[str, Sequence[Trajectory]] = field(default_factory=dict)
    kept: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    centric: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    exact: bool = False
    beside: Mapping[str, Evidence] = field(default_factory=dict)

    def figure(self, row: str, column: str) -> Figure | None:
        """Return the figure, or None where the row was not run or has no such column."""
        own, _, source = row.rpartition("@")
        if source in self.beside:
            return self.beside[source].figure(own, column)
        return self.figures.get(row, {}).get(column)

    def only(self, rows: Sequence[str], column: str) -> dict[str, Figure]:
        """Return the figures of one column that are there."""
        found = {row: self.figure(row, column) for row in rows}
        return {row: figure for row, figure in found.items() if figure is not None}

    def error(self, place: Place, seeded: bool = True, sampled: bool = True) -> list[Error]:
        """Return the variances of a number: of seeds, and of the queries that were asked, as far as wanted."""
        row, column = place
        if self.exact or row.rpartition("@")[2] in self.beside:
            return []
        low, high = (self.figure(row, column + end) for end in (LOW, HIGH))
        if low is not None and high is not None:
            return [Error(((high.mean - low.mean) / (2 * _HALF_WIDTH)) ** 2)]
        fixed = row in self.fixed or column.split(" ")[0] in _FIXED or not seeded
        errors = [] if fixed else [self._of_seeds(place)]
        queries = self.queries(place) if sampled else []
        return [*errors, *([_spread(queries)] if queries else [])]

    def paired_error(self, first: Place, second: Place) -> Error | None:
        """Return the variance over images of the difference of two numbers of the same queries."""
        one, other = self.queries(first), self.queries(second)
        alike = len(one) == len(other) and all(
            np.array_equal(a[1], b[1]) for a, b in zip(one, other, strict=True)
        )
        on = [[name for name in self.centric if of.startswith(f"{name} ")] for _, of in (first, second)]
        same = first[1] == second[1] or (first[0] == second[0] and on[0] == on[1])  # column, or row
        if not one or not alike or not same:
            return None
        return _spread([(a - b, cluster) for (a, cluster), (b, _) in zip(one, other, strict=True)])

    def queries(self, place: Place) -> list[Queries]:
        """Return the values per query behind a number, of the first seed; empty where none are kept."""
        row, column = place
        for collection in self.centric:
            if column.startswith(f"{collection} "):
                row, column = f"{collection} {row}", column.removeprefix(f"{collection} ")
        folders = self.kept.get(row, ())
        return list(queries_in(folders[0], column)) if folders and not self.exact else []

    def _of_seeds(self, place: Place) -> Error:
        """Return the variance of a mean over seeds: by all rows of the column together, else as is usual."""
        row, column = place
        figure = self.figures[row][column]
        runs = [
            (found.sd, found.seeds - 1)
            for name, of_row in self.figures.items()
            if name not in self.fixed and (found := of_row.get(column)) is not None and found.sd is not None
        ]
        freedom = sum(more for _, more in runs)
        if freedom:
            variance = math.fsum(sd**2 * more for sd, more in runs) / freedom
            return Error(variance / figure.seeds, freedom, column)
        usual = next((sd for name, sd in _ASSUMED.items() if name in column), _OTHERWISE * abs(figure.mean))
        return Error(usual**2 / figure.seeds)


def _spread(parts: Sequence[Queries]) -> Error:
    """Return the variance over images of a sum of means."""
    images = 1 + max(int(cluster.max()) for _, cluster in parts)
    each = [shares_of(values, cluster, images) for values, cluster in parts]
    residuals = np.sum([one.residuals for one in each], axis=0)
    used = int(np.any([one.used for one in each], axis=0).sum())
    return Error(used / max(used - 1, 1) * float(np.sum(residuals**2)), max(used - 1, 1))


_KEPT = "per_query.npz"


@dataclass(frozen=True, eq=False)
class Kept(Artifact, kind="study-queries", recreate="diptych study run: it measures what is missing"):
    """What a measurement keeps beside its figures, for tests that pair queries, and for reports.

    Attributes:
        values: column → (n,) one value per query.
        cluster: (n,) the number of each query's cluster: captions of one picture are asked together. Where
            queries differ, one by the first word of a column.
        examples: what a report shows of single queries.
    """

    values: dict[str, np.ndarray]
    cluster: np.ndarray | dict[str, np.ndarray]
    examples: list[dict[str, Any]] = field(default_factory=list)


def keep(
    folder: Path,
    values: Mapping[str, np.ndarray],
    cluster: np.ndarray | dict[str, np.ndarray],
    shown: list[dict[str, Any]] | None = None,
) -> None:
    """Write what a measurement keeps."""
    Kept(dict(values), cluster, shown or []).save(folder / _KEPT)


def kept_in(folder: Path) -> Kept | None:
    """Open what a measurement keeps; None where it is not there."""
    return Kept.open(folder / _KEPT) if (folder / _KEPT).is_file() else None


@lru_cache(maxsize=64)
def queries_in(folder: Path, column: str) -> tuple[Queries, ...]:
    """Return the values per query behind a column, by what a measurement keeps or by a whole evaluation."""
    from diptych.evaluation import Result

    if (kept := kept_in(folder)) is not None:
        if column not in kept.values:
            return ()
        asked = kept.cluster[column.split(" ")[0]] if isinstance(kept.cluster, dict) else kept.cluster
        return ((kept.values[column], asked),)
    if not (folder / Result.marker()).is_file():
        return ()
    result = Result.open(folder)
    direction, _, name = column.rpartition(" ")
    parts: list[Queries] = []
    for way in [direction] if direction else ["i2t", "t2i"]:
        found = result.per_query.get(way, {})
        names = [one for one in found if one.startswith("R@")] if name == "rsum" else [name]
        cluster = np.arange(result.protocol.n_images) if way == "i2t" else result.text_image
        if cluster is None or not names or any(one not in found for one in names):
            return ()
        scale = 100.0 if name == "rsum" or name.startswith("R@") else 1.0
        values = np.asarray(np.sum([found[one] for one in names], axis=0, dtype=np.float64))
        parts.append((scale * values, np.asarray(cluster)))
    return tuple(parts)
