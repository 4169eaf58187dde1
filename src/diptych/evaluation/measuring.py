"""Measure: a declared number about a ranking, its chance level included.

Adding one is one new file in :mod:`diptych.evaluation.measures` that calls ``MEASURES.add``. A family
such as ``R@k`` is declared once; :func:`measure` gives its member for any cut-off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.registry import Registry
from diptych.evaluation.aggregates import MEAN, Aggregate
from diptych.evaluation.ties import TieGroups, tied_throughout
from diptych.evaluation.truncation import truncated_chance

__all__ = ["DEFAULT_MEASURES", "MEASURES", "Measure", "Sum", "measure", "resolve"]

_CUTOFF = re.compile(r"(?P<family>.+)@(?P<cutoff>[0-9]+)")
_FAMILY = "@k"

DEFAULT_MEASURES = ("R@1", "R@5", "R@10", "medr", "meanr", "MRR", "rsum")


def _figures(value: float) -> str:
    """One decimal, as papers print; two significant digits below 1, for chance levels are small."""
    return f"{value:.2g}" if 0 < value < 0.95 else f"{value:.1f}"


@dataclass(frozen=True)
class Measure:
    """One measure, or a family ``NAME@k`` until its cut-off is given.

    Attributes:
        name: as it is asked for and printed.
        description: one line of what it is, any conventions included.
        citation: where it comes from.
        positives: ``"best"``: any-of-k, only the best positive of a query counts;
            ``"all"``: every positive counts.
        per_query: from tie groups and cut-off to one float64 per query.
        kind: ``"share"`` in [0, 1], the more the better, printed in per cent; ``"rank"`` from 1, the
            less the better.
        aggregate: from values per query to the number.
        chance_of: from positives per query, gallery size and how many items are ranked to the chance
            level, where that is not the aggregate of the expectations per query.
        compat: whether it is a published convention rather than the plain definition.
        cutoff: k.
    """

    name: str
    description: str
    citation: str
    positives: Literal["best", "all"]
    per_query: Callable[[TieGroups, int | None], np.ndarray] = field(repr=False)
    kind: Literal["share", "rank"] = "share"
    aggregate: Aggregate = MEAN
    chance_of: Callable[[np.ndarray, int, int], float] | None = field(default=None, repr=False)
    compat: bool = False
    cutoff: int | None = None

    @property
    def higher_is_better(self) -> bool:
        """Whether more is better."""
        return self.kind == "share"

    def at(self, cutoff: int) -> Measure:
        """The family's member with cut-off ``cutoff``.

        Raises:
            UsageError: the cut-off is not at least 1, or the measure takes none.
        """
        if not self.name.endswith(_FAMILY):
            raise UsageError(f"measure {self.name!r} takes no cut-off, got {cutoff}")
        if cutoff < 1:
            raise UsageError(f"the cut-off of {self.name!r} is {cutoff}, it must be at least 1")
        return replace(self, name=f"{self.name.removesuffix(_FAMILY)}@{cutoff}", cutoff=cutoff)

    def values(self, groups: TieGroups) -> np.ndarray:
        """(n_queries,) float64; a query without a positive has 0, or the rank after the last.

        Raises:
            UsageError: it needs the ranks of all positives and only the best are there.
        """
        if self.positives == "all" and not groups.complete:
            raise UsageError(f"{self.name} needs the ranks of all positives", "rank with every=True")
        return self.per_query(groups, self.cutoff)

    def chance(self, relevant: np.ndarray, gallery: int, ranked: int | None = None) -> float:
        """The exact expectation when every order of the gallery is equally likely.

        Args:
            relevant: (n_queries,) positives of each query.
            gallery: size of the gallery.
            ranked: how many items, drawn at random, are ranked at all; the whole gallery by default.
        """
        ranked = gallery if ranked is None else min(ranked, gallery)
        if self.chance_of is not None:
            return self.chance_of(relevant, gallery, ranked)
        kinds, which = np.unique(relevant, return_inverse=True)
        if ranked < gallery:
            return self.aggregate.of(truncated_chance(self.values, kinds, gallery, ranked)[which])
        return self.aggregate.of(self.values(tied_throughout(kinds, gallery))[which])

    def show(self, value: float) -> str:
        """The value as tables print it: shares in per cent."""
        return _figures(100 * value if self.kind == "share" else value)


@dataclass(frozen=True)
class Sum:
    """A sum of measures over both directions, in per cent.

    Attributes:
        name: as it is asked for and printed.
        description: one line of what it is.
        citation: where it comes from.
        parts: names of the measures that are added up.
    """

    name: str
    description: str
    citation: str
    parts: tuple[str, ...]

    def show(self, value: float) -> str:
        """The value as tables print it."""
        return _figures(value)


MEASURES: Registry[Measure | Sum] = Registry("measure", "diptych.evaluation.measures")


def measure(name: str) -> Measure | Sum:
    """The measure called ``name``, e.g. ``"R@5"``, ``"medr"``.

    Raises:
        UnknownNameError: no such measure; the message lists those there are.
        UsageError: a family without its cut-off, or a cut-off below 1.
    """
    found = _CUTOFF.fullmatch(name)
    if found is None:
        member = MEASURES.get(name)
        if name.endswith(_FAMILY):
            raise UsageError(f"measure {name!r} needs a cut-off", f"for example {name[:-1]}10")
        return member
    family = MEASURES.get(found["family"] + _FAMILY)
    if not isinstance(family, Measure):
        raise UsageError(f"measure {family.name!r} takes no cut-off")
    return family.at(int(found["cutoff"]))


def resolve(names: Iterable[str | Measure | Sum]) -> tuple[list[Measure], list[Sum]]:
    """The measures to compute, parts of sums included and each once, and the sums.

    Raises:
        UnknownNameError: a name that no measure has.
        UsageError: no name at all.
    """
    wanted = [measure(name) if isinstance(name, str) else name for name in names]
    if not wanted:
        raise UsageError("no measure was asked for", f"for example {', '.join(DEFAULT_MEASURES)}")
    sums = {member.name: member for member in wanted if isinstance(member, Sum)}
    parts = [measure(part) for member in sums.values() for part in member.parts]
    plain = {member.name: member for member in [*wanted, *parts] if isinstance(member, Measure)}
    return list(plain.values()), list(sums.values())
