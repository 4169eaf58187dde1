"""Measure: a declared number about a ranking, its chance level included.

A :class:`Measure` is a function of where the positives stand, a
:class:`~diptych.evaluation.gain_measure.GainMeasure` one of what the first places are
worth. Adding one is one new file in :mod:`diptych.evaluation.measures` that calls ``MEASURES.add``. A family
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
from diptych.evaluation.declared_measure import FAMILY, DeclaredMeasure, figures
from diptych.evaluation.gain_measure import GainMeasure
from diptych.evaluation.ties import TieGroups, tied_throughout
from diptych.evaluation.truncation import truncated_chance

__all__ = [
    "DEFAULT_MEASURES",
    "MEASURES",
    "AnyMeasure",
    "GainMeasure",
    "Measure",
    "Sum",
    "measure",
    "resolve",
]

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

MEASURES: Registry[AnyMeasure] = Registry("measure", "diptych.evaluation.measures")


def measure(name: str) -> AnyMeasure:
    """The measure called ``name``, e.g. ``"R@5"``, ``"medr"``.

    Raises:
        UnknownNameError: no such measure; the message lists those there are.
        UsageError: a family without its cut-off, or a cut-off below 1.
    """
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
    plain = {member.name: member for member in [*wanted, *parts] if not isinstance(member, Sum)}
    return list(plain.values()), list(sums.values())
