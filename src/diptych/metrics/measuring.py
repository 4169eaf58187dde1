"""Measure: a declared number about a ranking, its chance level included.

A :class:`Measure` is a function of where the positives stand, a
:class:`~diptych.metrics.gain_measure.GainMeasure` one of what the first places are
worth. Adding one is one new file in :mod:`diptych.metrics.measures` that calls ``MEASURES.add``. A family
such as ``R@k`` is declared once; :func:`measure` gives its member for any cut-off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.registry import Registry
from diptych.metrics.declared_measure import FAMILY, DeclaredMeasure, figures
from diptych.metrics.gain_measure import GainMeasure
from diptych.metrics.ties import TieGroups, tied_throughout

# What a ranker that knows nothing gets when it ranks only k items of the gallery.
#
# It draws k items, every k equally likely, and puts them in a random order; the others are unranked. How
# many of a query's positives it draws follows the hypergeometric distribution; given that number, they lie
# anywhere among the k.


def drawn_positives(relevant: int, gallery: int, ranked: int) -> np.ndarray:
    """Probabilities of 0, 1, …, min(relevant, ranked) positives among ``ranked`` items drawn of a gallery.

    C(R, h) C(N - R, k - h) / C(N, k), each from its neighbour's, so that no binomial has to be written out.
    """
    h = np.arange(min(relevant, ranked) + 1)
    possible = ranked - h <= gallery - relevant
    others = gallery - relevant - ranked + h
    ratio = (relevant - h + 1.0) * (ranked - h + 1.0) / (np.maximum(h, 1) * np.maximum(others, 1.0))
    ratio[0] = 1.0
    # The least possible number stands first among the possible; its weight is any number.
    first = int(np.argmax(possible))
    steps = np.where(possible & (h > first), np.log(np.maximum(ratio, 1e-300)), 0.0)
    logs = np.where(possible, np.cumsum(steps), -np.inf)
    weights = np.exp(logs - logs.max())
    chances: np.ndarray = weights / weights.sum()
    return chances


def truncated_chance(
    values: Callable[[TieGroups], np.ndarray], kinds: np.ndarray, gallery: int, ranked: int
) -> np.ndarray:
    """The expectation of a measure per kind of query, when only ``ranked`` random items are ranked.

    Args:
        kinds: (n,) positives of each kind of query.
    """
    chances = [drawn_positives(int(kind), gallery, ranked) for kind in kinds]
    kind = np.repeat(np.arange(len(kinds)), [len(part) for part in chances])
    drawn = np.concatenate([np.arange(len(part)) for part in chances])
    query = np.flatnonzero(drawn > 0)
    nothing = np.zeros(len(query), dtype=np.int64)
    cases = TieGroups(
        query=query,
        before=nothing,
        found=nothing,
        negatives=np.maximum(ranked - drawn[query], 0),
        positives=drawn[query],
        relevant=kinds[kind],
        gallery=gallery,
        complete=True,
    )
    expected: np.ndarray = np.bincount(
        kind, weights=np.concatenate(chances) * values(cases), minlength=len(kinds)
    )
    return expected


_CUTOFF = re.compile(r"(?P<family>.+)@(?P<cutoff>[0-9]+)")

DEFAULT_MEASURES = ("R@1", "R@5", "R@10", "medr", "meanr", "MRR", "rsum")


@dataclass(frozen=True, kw_only=True)
class Measure(DeclaredMeasure):
    """One measure of where the positives stand, or a family ``NAME@k`` until its cut-off is given.

    Attributes:
        per_query: from tie groups and cut-off to one float64 per query.
        chance_of: from positives per query, gallery size and how many items are ranked to the chance
            level, where that is not the aggregate of the expectations per query.
    """

    per_query: Callable[[TieGroups, int | None], np.ndarray] = field(repr=False)
    chance_of: Callable[[np.ndarray, int, int], float] | None = field(default=None, repr=False)

    def values(self, groups: TieGroups) -> np.ndarray:
        """(n_queries,) float64; a query without a positive has 0, or the rank after the last."""
        if self.positives == "all" and not groups.complete:
            raise UsageError(f"{self.name} needs the ranks of all positives", "rank with every=True")
        return self.per_query(groups, self.cutoff)

    def chance(self, relevant: np.ndarray, gallery: int, ranked: int | None = None) -> float:
        """The exact expectation when every order of the gallery is equally likely.

        Args:
            relevant: (n_queries,) positives of each query.
        """
        ranked = gallery if ranked is None else min(ranked, gallery)
        if self.chance_of is not None:
            return self.chance_of(relevant, gallery, ranked)
        kinds, which = np.unique(relevant, return_inverse=True)
        if ranked < gallery:
            return self.aggregate.of(truncated_chance(self.values, kinds, gallery, ranked)[which])
        return self.aggregate.of(self.values(tied_throughout(kinds, gallery))[which])


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
        return figures(value)


AnyMeasure: TypeAlias = Measure | GainMeasure | Sum
"""Whatever :func:`measure` gives."""

MEASURES: Registry[AnyMeasure] = Registry("measure", "diptych.metrics.measures")


def measure(name: str) -> AnyMeasure:
    """The measure called ``name``, e.g. ``"R@5"``, ``"medr"``."""
    found = _CUTOFF.fullmatch(name)
    if found is None:
        member = MEASURES.get(name)
        if name.endswith(FAMILY):
            raise UsageError(f"measure {name!r} needs a cut-off", f"for example {name[:-1]}10")
        return member
    family = MEASURES.get(found["family"] + FAMILY)
    if isinstance(family, Sum):
        raise UsageError(f"measure {family.name!r} takes no cut-off")
    return family.at(int(found["cutoff"]))


def resolve(names: Iterable[str | AnyMeasure]) -> tuple[list[Measure | GainMeasure], list[Sum]]:
    """The measures to compute, parts of sums included and each once, and the sums."""
    wanted = [measure(name) if isinstance(name, str) else name for name in names]
    if not wanted:
        raise UsageError("no measure was asked for", f"for example {', '.join(DEFAULT_MEASURES)}")
    sums = {member.name: member for member in wanted if isinstance(member, Sum)}
    parts = [measure(part) for member in sums.values() for part in member.parts]
    plain = {member.name: member for member in [*wanted, *parts] if not isinstance(member, Sum)}
    return list(plain.values()), list(sums.values())
