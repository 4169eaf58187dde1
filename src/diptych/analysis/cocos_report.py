"""COCOS counts of one batch, and over a training set: mean ± sd, weight distributions, protocol."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.chart import Chart, Series
from diptych.core.options import parameter
from diptych.core.reading import read_toml
from diptych.core.table import Cell, Table, Tabular
from diptych.data.source import DataSpec, OutOption, SeedOption

Unit = Literal["temperature", "score"]

# ``none`` counts gradient weights, ``equations`` as Eq. 9–13 read, ``published`` as the published code
CocosCompat = Literal["none", "equations", "published"]

UNITS: dict[Unit, str] = {"temperature": "τ·|∂L/∂s|", "score": "|∂L/∂s|"}  # how each unit is printed
_WAYS = {"i2t": "image → text", "t2i": "text → image"}
_KINDS = {"negatives": "negatives", "positives": "positives", "within": "in-modality negatives"}


class CocosOptions(DataSpec, SeedOption, OutOption):
    """Options of COCOS: loss, batches, and what counts."""

    split: str | None = parameter(None, "What the run was trained on by default, or train.")
    objective: str | None = parameter(None, "The run's by default.", names="diptych.objectives:OBJECTIVES")
    option: list[str] = parameter([], "KEY=VALUE for the objective, e.g. temperature=0.1. Repeatable.")
    batch_size: int | None = parameter(None, "As the plan counts it.", ge=2, default="the run's, or 128")
    plan: Literal["captions", "distinct", "grouped"] | None = parameter(
        None, "How batches are drawn.", default="the run's, or distinct"
    )
    epsilon: float = parameter(0.01, "A candidate of more weight counts.", ge=0, allow_inf_nan=False)
    unit: Unit = parameter("temperature", "A weight is τ·|∂L/∂s| (temperature) or |∂L/∂s| (score).")
    compat: CocosCompat = parameter("none", "As Eq. 9–13 read, or as the published code, faults included.")


class Counted(NamedTuple):
    name: str  # the attribute of Counts
    symbol: str
    description: str
    decimals: int


_TEXTS = read_toml(Path(__file__).with_name("cocos.toml"))
COUNTS = tuple(Counted(name, *given) for name, given in _TEXTS["counts"].items())
_READINGS: dict[str, str] = _TEXTS["readings"]


@dataclass(frozen=True, eq=False)
class Counts:
    """One batch in one direction; what a way of counting does not say is None."""

    queries: int
    each: np.ndarray = field(repr=False)  # (queries,) how many negatives contribute to each query's gradient
    per_query: float  # C^q, mean of ``each`` over all queries
    per_active_query: float | None  # over the queries that have a gradient; None in a batch where none has
    in_batch: float  # C^B, sum of ``each``
    without_gradient: int  # C^0, queries none of whose candidates contributes, positive or negative
    negatives_weight: float | None = None  # W^-, of the contributing negatives of a query, mean over queries
    positives_weight: float | None = None  # W^+, of all positives of a query, mean over queries
    within_per_query: float | None = None  # of objectives with in-modality negatives: their part of per_query
    effective: float | None = None  # as many negatives of equal weights have the entropy of theirs

    @classmethod
    def of(cls, each: np.ndarray, active: int | None = None, **given: float | None) -> Self:
        """Count (queries,) contributing negatives; ``given`` replaces what is counted otherwise."""
        active = int((each > 0).sum()) if active is None else active
        total = float(each.sum())
        means = {"per_query": total / len(each), "per_active_query": total / active if active else None}
        counted: dict[str, Any] = {**means, **given}
        return cls(
            queries=len(each), each=each, in_batch=total, without_gradient=len(each) - active, **counted
        )

    def values(self) -> dict[str, float]:
        """Return the counts there are, in the order of :data:`COUNTS`."""
        given = {count.name: getattr(self, count.name) for count in COUNTS}
        return {name: float(value) for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Spread:
    mean: float  # over the batches in which the count is defined
    sd: float  # population standard deviation over them
    batches: int  # how many they are

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        return cls(fmean(values), pstdev(values), len(values))

    def show(self, decimals: int = 2) -> str:
        return f"{self.mean:,.{decimals}f} ± {self.sd:,.{decimals}f}"


_LOWEST, _HIGHEST, _PER_DECADE = -8, 4, 5
_EDGES: np.ndarray = 10.0 ** (np.arange(_LOWEST * _PER_DECADE, _HIGHEST * _PER_DECADE + 1) / _PER_DECADE)


@dataclass(eq=False)
class WeightHistogram:
    """Weights |w| ≥ 0 of one kind of candidate, five bins to the power of ten; on an edge, in the bin above."""

    queries: int = 0  # how many queries the weights came from
    zeros: int = 0  # weights that are exactly 0
    counts: list[int] = field(default_factory=lambda: [0] * (len(_EDGES) + 1))
    sums: list[float] = field(default_factory=lambda: [0.0] * (len(_EDGES) + 1))

    @property
    def candidates(self) -> int:
        return self.zeros + sum(self.counts)

    def add(self, weights: np.ndarray, queries: int) -> None:
        nonzero = np.asarray(weights, dtype=np.float64)[np.asarray(weights) > 0]
        bins = [0, *_EDGES, np.inf]
        self.queries += queries
        self.zeros += len(weights) - len(nonzero)
        self.counts = (self.counts + np.histogram(nonzero, bins)[0]).tolist()
        self.sums = (self.sums + np.histogram(nonzero, bins, weights=nonzero)[0]).tolist()


@dataclass(frozen=True)
class CocosProtocol:
    objective: str  # its name in the registry
    options: dict[str, Any]  # its hyper-parameters, the temperature as it was used
    similarity: str  # how image and text embeddings were scored
    epsilon: float  # ε, which a weight must exceed to count
    unit: Unit
    compat: CocosCompat
    batches: int
    images: tuple[int, int]  # least and most images of a batch
    captions: tuple[int, int]
    about: dict[str, Any] = field(default_factory=dict)  # dataset, split, plan, seed, fingerprints

    def line(self) -> str:
        options = ", ".join(f"{key} {_plain(value)}" for key, value in self.options.items())
        sizes = [
            "–".join(f"{size:,}" for size in dict.fromkeys(ends)) for ends in (self.images, self.captions)
        ]
        smooth = ", SmoothAP with 1/τ" if self.unit == "score" else ""
        counted = {
            "none": f"a candidate counts when {UNITS[self.unit]} > ε = {self.epsilon:g}",
            "equations": f"ε {self.epsilon:g}, counted by Eq. 9–13{smooth} (compat equations)",
            "published": f"ε {self.epsilon:g}, counted as the published code does (compat published)",
        }
        parts = [f"{key} {_plain(value)}" for key, value in self.about.items() if value is not None]
        parts += [
            f"objective {self.objective}" + (f" ({options})" if options else ""),
            f"similarity {self.similarity}",
            f"{self.batches:,} batches of {sizes[0]} images and {sizes[1]} captions",
            counted[self.compat],
            "mean ± population sd over batches",
        ]
        return "; ".join(parts)


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class CocosReport(Tabular, Artifact, kind="cocos", recreate="diptych analyse cocos RUN"):
    """Result of :func:`~diptych.analysis.cocos.cocos_over`: counts and weights over batches, per direction."""

    protocol: CocosProtocol
    counts: dict[str, dict[str, Spread]]
    weights: dict[str, dict[str, WeightHistogram]]

    def lines(self) -> list[str]:
        return [self.protocol.line(), *self.notes()]

    def tables(self) -> list[Table]:
        rows = []
        for count in COUNTS:
            found = [given.get(count.name) for given in self.counts.values()]
            cells = [
                Cell("") if one is None else Cell(one.show(count.decimals), value=one.mean) for one in found
            ]
            if any(found):
                rows.append([Cell(count.symbol), *cells, Cell(count.description, words=True)])
        columns = ("count", *(_WAYS[way] for way in self.counts), "what is counted")
        return [Table("Contributing samples", columns, rows, after="Mean ± standard deviation over batches.")]

    def charts(self) -> list[Chart]:
        both = (("counts", "candidates per query", "xy"), ("sums", "summed weight per query", "x"))
        charts = [self._chart(way, *drawn) for drawn in both for way in self.weights]
        return [chart for chart in charts if chart is not None]

    def _chart(self, way: str, what: str, label: str, log: str) -> Chart | None:
        drawn, kinds, epsilon = [], self.weights[way], self.protocol.epsilon
        for kind in (name for name in _KINDS if name in kinds):
            histogram = kinds[kind]
            heights = np.asarray(getattr(histogram, what))[1:-1] / max(1, histogram.queries)
            filled = np.flatnonzero(histogram.counts[1:-1])
            if len(filled):
                first, stop = filled[0], filled[-1] + 1
                values = [float(value) or None for value in heights[first:stop]]
                edges = _EDGES[first : stop + 1].tolist()
                drawn.append(Series(_KINDS[kind], [values[0], *values], edges, mark="step"))
        if not drawn:
            return None
        if epsilon > 0:
            drawn.append(Series(f"ε = {epsilon:g}", [None], [epsilon], mark="level"))
        negatives = kinds["negatives"]
        below = negatives.zeros + negatives.counts[0]
        share = 100 * below / max(1, negatives.candidates)
        after = f"{share:.1f} % of the negatives have a weight below 10⁻⁸, left of the axis." if below else ""
        x = f"weight {UNITS[self.protocol.unit]}"
        return Chart(f"{_WAYS[way]}: {label}", drawn, x, label, log=log, after=after)

    def notes(self) -> list[str]:
        found = []
        for direction, given in self.counts.items():
            active = given["per_active_query"].batches if "per_active_query" in given else 0
            if missing := self.protocol.batches - active:
                found.append(
                    f"{direction}: in {missing:,} of {self.protocol.batches:,} batches no query has a gradient; "
                    "they are left out of the mean over queries that have one."
                )
        return [*found, _READINGS[self.protocol.compat]] if self.protocol.compat != "none" else found
