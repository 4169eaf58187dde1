"""What COCOS counts in one batch, and what it found over a training set: mean ± sd, weight distributions, protocol."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.chart import Chart, Series
from diptych.core.errors import UsageError
from diptych.core.table import Cell, Table

DirectionName = Literal["i2t", "t2i"]
DIRECTIONS: tuple[DirectionName, DirectionName] = ("i2t", "t2i")

Unit = Literal["temperature", "score"]

CocosCompat = Literal["none", "equations", "published"]
"""``none`` counts gradient weights, ``equations`` as Eq. 9–13 read, ``published`` as the published code."""


def check_epsilon(epsilon: float) -> float:
    """The threshold, a number of at least 0."""
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise UsageError(f"epsilon {epsilon}", "give a threshold of at least 0, such as 0.01")
    return epsilon


def check_compat(compat: str) -> CocosCompat:
    """The compat, one of those there are."""
    known = get_args(CocosCompat)
    if compat not in known:
        raise UsageError(f"compat {compat!r}", f"one of {', '.join(map(repr, known))}")
    return compat  # type: ignore[return-value]


UNITS: dict[Unit, str] = {"temperature": "τ·|∂L/∂s|", "score": "|∂L/∂s|"}
"""How each unit is printed."""


_WAYS = {"i2t": "image → text", "t2i": "text → image"}
_KINDS = {"negatives": "negatives", "positives": "positives", "within": "in-modality negatives"}


@dataclass(frozen=True)
class Counted:
    """A count as tables print it.

    Attributes:
        name: the attribute of :class:`Counts`.
        symbol: as Bleeker and de Rijke print it, with ``^`` before what is raised.
        description: one line.
        decimals: digits after the point.
    """

    name: str
    symbol: str
    description: str
    decimals: int = 2


COUNTS = (
    Counted("per_query", "C^q", "negatives that contribute, mean over all queries"),
    Counted("per_active_query", "C^q active", "the same, mean over the queries that have a gradient"),
    Counted("within_per_query", "C^q in-modality", "those of them that are of the query's own modality"),
    Counted("in_batch", "C^B", "negatives that contribute, sum over the batch"),
    Counted("without_gradient", "C^0", "queries without gradient: no candidate contributes"),
    Counted(
        "negatives_weight", "W^-", "summed weight of the negatives that contribute, mean over queries", 3
    ),
    Counted("positives_weight", "W^+", "summed weight of the positives, mean over queries", 3),
)


@dataclass(frozen=True, eq=False)
class Counts:
    """One batch in one direction; what a way of counting does not say is None.

    Attributes:
        queries: how many queries the batch has.
        each: (queries,) how many negatives contribute to each query's gradient.
        per_query: C^q, mean of ``each`` over all queries.
        per_active_query: mean of ``each`` over the queries that have a gradient; None in a batch
            where none has.
        in_batch: C^B, sum of ``each``.
        without_gradient: C^0, queries none of whose candidates contributes, positive or negative.
        negatives_weight: W^-, weight of the contributing negatives, summed per query, mean over queries.
        positives_weight: W^+, weight of all positives, summed per query, mean over queries.
        within_per_query: for objectives with in-modality negatives: how many of ``per_query`` they are.
    """

    queries: int
    each: np.ndarray = field(repr=False)
    per_query: float
    per_active_query: float | None
    in_batch: float
    without_gradient: int
    negatives_weight: float | None = None
    positives_weight: float | None = None
    within_per_query: float | None = None

    def values(self) -> dict[str, float]:
        """The counts there are, by name, in the order of :data:`COUNTS`."""
        own = {item.name for item in fields(self)}
        given = {count.name: getattr(self, count.name) for count in COUNTS if count.name in own}
        return {name: float(value) for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Spread:
    """A count over batches.

    Attributes:
        mean: over the batches in which the count is defined.
        sd: population standard deviation over them.
        batches: how many they are.
    """

    mean: float
    sd: float
    batches: int

    def show(self, decimals: int = 2) -> str:
        """``5.59 ± 0.40``."""
        return f"{self.mean:,.{decimals}f} ± {self.sd:,.{decimals}f}"


@dataclass
class RunningSpread:
    """Mean and deviation of numbers that come one at a time (Welford)."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """One more number."""
        self.n += 1
        step = value - self.mean
        self.mean += step / self.n
        self.squares += step * (value - self.mean)

    def spread(self) -> Spread:
        """Of what came so far."""
        return Spread(self.mean, math.sqrt(max(0.0, self.squares / self.n)), self.n)


_LOWEST, _HIGHEST, _PER_DECADE = -8, 4, 5


def _edges() -> np.ndarray:
    return 10.0 ** (np.arange(_LOWEST * _PER_DECADE, _HIGHEST * _PER_DECADE + 1) / _PER_DECADE)


@dataclass(eq=False)
class WeightHistogram:
    """Weights |w| ≥ 0 of one kind of candidate, five bins to the power of ten.

    Attributes:
        queries: how many queries the weights came from.
        zeros: weights that are exactly 0.
        counts: (62,) weights below 10⁻⁸ but not 0, in each of the 60 bins, and above 10⁴; a weight on
            an edge is in the bin above it.
        sums: (62,) the same weights summed.
    """

    queries: int = 0
    zeros: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * (len(_edges()) + 1))
    sums: list[float] = field(default_factory=lambda: [0.0] * (len(_edges()) + 1))

    @property
    def edges(self) -> np.ndarray:
        """(61,) the edges between the bins."""
        return _edges()

    @property
    def candidates(self) -> int:
        """How many weights were added, zeros too."""
        return self.zeros + sum(self.counts)

    def add(self, weights: np.ndarray, queries: int) -> None:
        """Count the weights of one batch.

        Args:
            weights: (n,) at least 0.
        """
        weights = np.asarray(weights, dtype=np.float64)
        nonzero = weights[weights > 0]
        place = np.searchsorted(_edges(), nonzero, side="right")
        self.queries += queries
        self.zeros += len(weights) - len(nonzero)
        bins = len(self.counts)
        self.counts = (self.counts + np.bincount(place, minlength=bins)).tolist()
        self.sums = (self.sums + np.bincount(place, weights=nonzero, minlength=bins)).tolist()


@dataclass(frozen=True)
class CocosProtocol:
    """Everything the counts depend on besides the embeddings.

    Attributes:
        objective: its name in the registry.
        options: its hyper-parameters, the temperature as it was used.
        similarity: how image rows and text rows were scored.
        epsilon: ε, which a weight must exceed to count.
        unit: how weights are measured.
        compat: ``equations`` or ``published`` when the table was counted as the paper or its code does.
        batches: how many.
        images: least and most images of a batch.
        captions: least and most captions of a batch.
        about: dataset, split, plan, seed, fingerprints: whatever else the numbers depend on.
    """

    objective: str
    options: dict[str, Any]
    similarity: str
    epsilon: float
    unit: Unit
    compat: CocosCompat
    batches: int
    images: tuple[int, int]
    captions: tuple[int, int]
    about: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """One line, to be printed with the counts."""
        options = ", ".join(f"{key} {_plain(value)}" for key, value in self.options.items())
        parts = [f"{key} {_plain(value)}" for key, value in self.about.items() if value is not None]
        parts.append(f"objective {self.objective}" + (f" ({options})" if options else ""))
        parts.append(f"similarity {self.similarity}")
        sizes = [
            "–".join(f"{size:,}" for size in dict.fromkeys(ends)) for ends in (self.images, self.captions)
        ]
        parts.append(f"{self.batches:,} batches of {sizes[0]} images and {sizes[1]} captions")
        if self.compat == "published":
            parts.append(f"ε {self.epsilon:g}, counted as the published code does (compat published)")
        elif self.compat == "equations":
            unit = ", SmoothAP with 1/τ" if self.unit == "score" else ""
            parts.append(f"ε {self.epsilon:g}, counted by Eq. 9–13{unit} (compat equations)")
        else:
            parts.append(f"a candidate counts when {UNITS[self.unit]} > ε = {self.epsilon:g}")
        parts.append("mean ± population sd over batches")
        return "; ".join(parts)


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class CocosReport(Artifact, kind="cocos", recreate="diptych analyse cocos RUN"):
    """What :func:`~diptych.analysis.cocos.cocos_over` returns.

    Attributes:
        protocol: what the numbers depend on.
        counts: per direction, by the names of :data:`~diptych.analysis.counts.COUNTS`; a count that
            was defined in no batch is missing.
        weights: per direction, the distributions of the weights of ``negatives``, ``positives`` and,
            where the objective has them, ``within``: in the protocol's unit, always the true ones.
    """

    protocol: CocosProtocol
    counts: dict[str, dict[str, Spread]]
    weights: dict[str, dict[str, WeightHistogram]]

    def tables(self) -> list[Table]:
        """Return each count there is in both directions, in the paper's order."""
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
        """Return per direction how many candidates of each weight a query has, and what they add up to."""
        charts = []
        for what, label in (("counts", "candidates per query"), ("sums", "summed weight per query")):
            for direction, kinds in self.weights.items():
                drawn = []
                for kind, words in _KINDS.items():
                    histogram = kinds.get(kind, WeightHistogram())
                    heights = np.asarray(getattr(histogram, what))[1:-1] / max(1, histogram.queries)
                    filled = np.flatnonzero(histogram.counts[1:-1])
                    if len(filled):
                        places = slice(filled[0], filled[-1] + 1)
                        values = [float(value) or None for value in heights[places]]
                        edges = histogram.edges[filled[0] : filled[-1] + 2].tolist()
                        drawn.append(Series(words, [values[0], *values], edges, mark="step"))
                if drawn and self.protocol.epsilon > 0:
                    epsilon = self.protocol.epsilon
                    drawn.append(Series(f"ε = {epsilon:g}", [None], [epsilon], mark="level"))
                negatives = kinds["negatives"]
                below = negatives.zeros + negatives.counts[0]
                share = 100 * below / max(1, negatives.candidates)
                after = (
                    f"{share:.1f} % of the negatives have a weight below 10⁻⁸, left of the axis."
                    if below
                    else ""
                )
                log = "xy" if what == "counts" else "x"
                title = f"{_WAYS[direction]}: {label}"
                x = f"weight {UNITS[self.protocol.unit]}"
                if drawn:
                    charts.append(Chart(title, drawn, x, label, log=log, after=after))
        return charts

    def notes(self) -> list[str]:
        """What a reader of the counts should know, one sentence each."""
        found = []
        for direction, given in self.counts.items():
            active = given["per_active_query"].batches if "per_active_query" in given else 0
            if missing := self.protocol.batches - active:
                found.append(
                    f"{direction}: in {missing:,} of {self.protocol.batches:,} batches no query has a gradient; "
                    "they are left out of the mean over queries that have one."
                )
        if self.protocol.compat == "equations":
            found.append(
                "Counted as the paper's equations read: triplets for triplet losses, and for SmoothAP pairs of a "
                "positive and any other candidate; the weight distributions are of candidates."
            )
        if self.protocol.compat == "published":
            found.append(
                "Counted as the published code counts, faults included; the weight distributions are true."
            )
        return found
