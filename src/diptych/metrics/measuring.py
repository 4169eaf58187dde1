"""Measures: declared numbers about a ranking, their chance level included.

A :class:`Measure` is a function of where the positives stand, a :class:`GainMeasure` one of what the items at the
first places are worth. A family such as ``R@k`` is declared once; :func:`measure` gives its member for any
cut-off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.registry import Registry
from diptych.metrics.bootstrap import MEAN, Aggregate
from diptych.metrics.ranks import TieGroups, tied_throughout
from diptych.metrics.runs import places

DEFAULT_MEASURES = ("R@1", "R@5", "R@10", "medr", "meanr", "MRR", "rsum")
FAMILY = "@k"  # how the name of a family of measures ends

_CUTOFF = re.compile(r"(?P<family>.+)@(?P<cutoff>[0-9]+)")


def figures(value: float) -> str:
    """Format with one decimal, as papers print; with two significant digits below 1, where chance is."""
    return f"{value:.2g}" if 0 < value < 0.95 else f"{value:.1f}"


@dataclass(frozen=True, kw_only=True)
class DeclaredMeasure:
    """One measure, or a family ``NAME@k`` until its cut-off is given."""

    name: str  # as it is requested and printed
    description: str  # one line of what it is, any conventions included
    citation: str  # where it comes from
    # ``"best"``: any-of-k, only the best positive of a query counts; ``"all"``: every positive counts
    positives: Literal["best", "all"]
    # ``"share"`` in [0, 1], the more the better, printed in per cent; ``"rank"`` from 1, the less the better;
    # ``"gain"`` from 0, the more the better, printed as it is
    kind: Literal["share", "rank", "gain"] = "share"
    aggregate: Aggregate = MEAN  # from values per query to the number
    compat: bool = False  # whether it is a published convention rather than the plain definition
    cutoff: int | None = None  # k

    @property
    def higher_is_better(self) -> bool:
        return self.kind != "rank"

    def at(self, cutoff: int) -> Self:
        if not self.name.endswith(FAMILY):
            raise UsageError(f"measure {self.name!r} takes no cut-off, got {cutoff}")
        if cutoff < 1:
            raise UsageError(f"the cut-off of {self.name!r} is {cutoff}, it must be at least 1")
        return replace(self, name=f"{self.name.removesuffix(FAMILY)}@{cutoff}", cutoff=cutoff)

    def __matmul__(self, cutoff: int) -> AnyMeasure:
        """Return the family's member: ``R @ 5`` is the measure ``"R@5"``."""
        return measure(f"{self.name.removesuffix(FAMILY)}@{cutoff}")

    def show(self, value: float) -> str:
        if self.kind == "gain":
            return f"{value:.3f}"
        return figures(100 * value if self.kind == "share" else value)


@dataclass(frozen=True, kw_only=True)
class Measure(DeclaredMeasure):
    # from tie groups and cut-off to one float64 per query
    per_query: Callable[[TieGroups, int | None], np.ndarray] = field(repr=False)
    # from positives per query, gallery size and how many items are ranked to the chance level, where that is
    # not the aggregate of the expectations per query
    chance_of: Callable[[np.ndarray, int, int], float] | None = field(default=None, repr=False)

    def values(self, groups: TieGroups) -> np.ndarray:
        """Return (n_queries,) float64; a query without a positive has 0, or the rank after the last."""
        if self.positives == "all" and not groups.complete:
            raise UsageError(f"{self.name} needs the ranks of all positives", "rank with every=True")
        return self.per_query(groups, self.cutoff)

    def chance(self, relevant: np.ndarray, gallery: int, ranked: int | None = None) -> float:
        """Return the exact expectation of a random order of ``ranked`` random items, by (n_queries,) positives."""
        ranked = gallery if ranked is None else min(ranked, gallery)
        if self.chance_of is not None:
            return self.chance_of(relevant, gallery, ranked)
        kinds, which = np.unique(relevant, return_inverse=True)
        if ranked < gallery:
            return self.aggregate.of(_truncated_chance(self.values, kinds, gallery, ranked)[which])
        return self.aggregate.of(self.values(tied_throughout(kinds, gallery))[which])


def _truncated_chance(
    values: Callable[[TieGroups], np.ndarray], kinds: np.ndarray, gallery: int, ranked: int
) -> np.ndarray:
    """Return (n,) expectations for numbers of positives, which lie anywhere among those that are ranked."""
    from scipy.stats import hypergeom

    counts = np.minimum(kinds, ranked) + 1
    kind, drawn = np.repeat(np.arange(len(kinds)), counts), places(counts)
    chances = hypergeom.pmf(drawn, gallery, kinds[kind], ranked)
    query = np.flatnonzero(drawn)
    nothing, positives = np.zeros(len(query), dtype=np.int64), drawn[query]
    negatives = np.maximum(ranked - positives, 0)
    cases = TieGroups(query, nothing, nothing, negatives, positives, kinds[kind], gallery, True)
    return np.bincount(kind, weights=chances * values(cases), minlength=len(kinds))


@dataclass(frozen=True)
class Gain:
    # ``"similarity"``: 1 for a labelled match, else the transformed similarity of the two; ``"grade"``: the
    # transformed grade of the pair, 0 for one without a grade
    of: Literal["similarity", "grade"]
    # elementwise, never descending; of a grade 0 it gives 0
    transform: Callable[[np.ndarray], np.ndarray] = field(repr=False)
    says: str  # what it does, for the protocol


@dataclass(frozen=True, eq=False)
class Gained:
    first: np.ndarray  # (n, places) the gain at each of the first places, expected where ties leave it open
    # (n, places) the greatest gains of the gallery, descending; None unless requested
    best: np.ndarray | None = None
    # (n, places) the gain expected at each place of a ranking that knows nothing of what is relevant; None
    # unless requested
    chance: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class GainMeasure(DeclaredMeasure):
    gain: Gain  # what an item is worth
    # from (n, k) gains at the first places and the (n, k) best gains to one float64 per query; linear in the
    # former, so that expectations over tied orders, and chance, are exact
    per_query: Callable[[np.ndarray, np.ndarray | None], np.ndarray] = field(repr=False)
    # whether the best gains are looked at; computing them takes one more list per query
    needs_best: bool = False
    positives: Literal["best", "all"] = "all"
    kind: Literal["share", "rank", "gain"] = "gain"

    def values(self, gained: Gained, chance: bool = False) -> np.ndarray:
        """Return (n_queries,) float64, or with ``chance`` those of a ranking that knows nothing of relevance."""
        first = gained.chance if chance else gained.first
        assert first is not None
        best = None if gained.best is None else gained.best[:, : self.cutoff]
        return self.per_query(first[:, : self.cutoff], best)


@dataclass(frozen=True)
class Sum:
    """A sum of measures over both directions, in per cent."""

    name: str  # as it is requested and printed
    description: str  # one line of what it is
    citation: str  # where it comes from
    parts: tuple[str, ...]  # names of the measures that are added up

    def show(self, value: float) -> str:
        return figures(value)


AnyMeasure: TypeAlias = Measure | GainMeasure | Sum  # whatever :func:`measure` gives
# one measure or several, by name or as objects
Names: TypeAlias = str | AnyMeasure | Iterable[str | AnyMeasure]

_NAMES = {"recall": "R", "hit": "R", "hits": "R", "r": "R", "precision": "P", "ndcg": "nDCG", "map": "mAP"}
# measures as other libraries spell them
_ELSEWHERE = re.compile(r"(recall|hits?|precision|ndcg|map|r)[@_-]?(\d+)", re.IGNORECASE)

MEASURES: Registry[AnyMeasure] = Registry("measure", "diptych.metrics.measures", "diptych.measures")


def measure(name: str) -> AnyMeasure:
    found = _CUTOFF.fullmatch(name)
    elsewhere = _ELSEWHERE.fullmatch(name)
    if elsewhere is not None and (meant := f"{_NAMES[elsewhere[1].lower()]}@{elsewhere[2]}") != name:
        raise UsageError(f"unknown measure {name!r}", f"did you mean {meant!r}?")
    if found is None:
        member = MEASURES.get(name)
        if name.endswith(FAMILY):
            raise UsageError(f"measure {name!r} needs a cut-off", f"for example {name[:-1]}10")
        return member
    family = MEASURES.get(found["family"] + FAMILY)
    if isinstance(family, Sum):
        raise UsageError(f"measure {family.name!r} takes no cut-off")
    return family.at(int(found["cutoff"]))


def as_list(names: Names) -> list[str | AnyMeasure]:
    """Return one measure or several as a list."""
    return [names] if isinstance(names, str | DeclaredMeasure | Sum) else list(names)


def _member(given: str | AnyMeasure) -> AnyMeasure:
    """Return a measure by its name, or itself; a family without its cut-off is refused."""
    if isinstance(given, str):
        return measure(given)
    measure(given.name)  # numbers are read again by their names
    return given


def resolve(names: Names) -> tuple[list[Measure | GainMeasure], list[Sum]]:
    """Return the measures to compute, parts of sums included and each once, and the sums."""
    chosen = [_member(one) for one in as_list(names)]
    if not chosen:
        raise UsageError("no measure was requested", f"for example {', '.join(DEFAULT_MEASURES)}")
    sums = {member.name: member for member in chosen if isinstance(member, Sum)}
    parts = [measure(part) for member in sums.values() for part in member.parts]
    plain = {member.name: member for member in [*chosen, *parts] if not isinstance(member, Sum)}
    return list(plain.values()), list(sums.values())
