"""StressResult: what every perturbation costs, with the protocol that made the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diptych.core.artifact import Artifact
from diptych.core.errors import UnknownNameError
from diptych.core.table import Table, Tabular
from diptych.evaluation.drops import Drop

CLEAN = "clean.npz"  # values of the clean queries, next to the result


@dataclass(frozen=True)
class ChangedDrop:
    """The drop of one measure over only the queries that were changed, all seeds together.

    Queries that could not be changed lose nothing and thin the drop over all of them; its p-value is of both,
    as the queries that stay add nothing to either difference.
    """

    clean: float  # of the clean queries, each as often as seeds changed it
    perturbed: float
    difference: float
    low: float | None
    high: float | None
    relative: float | None


@dataclass(frozen=True)
class Preference:
    """Share of captions whose own image scores the clean caption higher than the changed one."""

    captions: int  # that were changed, with any seed
    share: float  # ties count one half, so one half is what an encoder has that cannot tell them apart
    ties: float  # share of ties
    low: float | None
    high: float | None
    corrected: float  # p-value against one half, corrected over the perturbations that have a preference


@dataclass(frozen=True)
class LengthBin:
    low: int  # words of the shortest
    high: int  # words of the longest
    captions: int  # how many
    decreased: float  # share whose R@1 + R@5 + R@10 went down, the mean over seeds
    difference: float  # what that sum lost on average, in per cent, below 0 where it lost


@dataclass(frozen=True)
class Example:
    """A query whose best positive's rank grew by a great factor."""

    query: str  # its id
    seed: int  # of the perturbation
    before: float  # rank of its best positive, clean; from 1
    after: float  # the same, changed
    first_before: str  # id of the item that it found first, clean
    first_after: str  # the same, changed
    expected: str  # id of a positive
    clean: str = ""  # its text, where it is a caption
    changed: str = ""  # its changed text


@dataclass(frozen=True)
class StressRow:
    """One perturbation, as it declares itself, and what it costs."""

    name: str
    description: str
    group: str
    source: str
    keeps_meaning: bool
    direction: str  # ``"t2i"``: captions are perturbed and ask for images; ``"i2t"``: the other way round
    options: Mapping[str, Any]  # what it was run with
    queries: int  # how many ask
    changed: Sequence[int]  # per seed, how many of them it changed
    same: Sequence[int]  # per seed, how many of those the encoder gives the very row of the clean query
    draws: int  # how many different sets of changed queries the seeds gave; 1 where nothing is left to chance
    reasons: Mapping[str, int]  # why others stayed as they were, and how many, over all seeds
    drops: Mapping[str, Drop]  # per measure, over all queries
    changed_drops: Mapping[str, ChangedDrop]  # per measure; empty where it changed none
    sizes: Mapping[str, float]  # shares that decreased, increased and are unchanged in R@1 + R@5 + R@10
    preference: Preference | None = None  # of captions whose meaning changed
    lengths: tuple[LengthBin, ...] = ()  # of captions, the shortest first
    examples: tuple[Example, ...] = ()  # the worst hit

    @property
    def changed_share(self) -> float:
        """Return the mean share of queries that were changed."""
        return sum(self.changed) / (self.queries * len(self.changed))

    @property
    def same_share(self) -> float:
        """Return the share of changed queries that the encoder cannot tell from the clean ones; 0 of none."""
        return sum(self.same) / max(1, sum(self.changed))

    def drop(self, measure: str) -> Drop:
        if measure not in self.drops:
            raise UnknownNameError("measure", measure, self.drops)
        return self.drops[measure]


@dataclass(frozen=True)
class Agreement:
    """Overlap of the queries that perturbations of one direction change (thesis, Table 5.4)."""

    # Mean Jaccard similarity over pairs of perturbations and seeds; None where no pair has one.
    decreased: float | None
    increased: float | None
    unchanged: float | None
    pairs: Sequence[Mapping[str, Any]]  # ``first``, ``second``, and the three, means over seeds
    left_out: Mapping[str, int]  # per group, pairs without a similarity, summed over seeds


@dataclass(frozen=True)
class StressResult(
    Tabular, Artifact, kind="stress", version=3, recreate="the command of diptych analyse stress once more"
):
    key: str  # what it was made of, by content
    model: str  # what reports call the encoder
    protocol: Mapping[str, Any]  # what every number depends on, by name
    method: str  # how intervals and p-values were made, one line
    measures: Sequence[str]  # in the requested order
    clean: Mapping[str, Mapping[str, float]]  # per direction and measure, the mean over clean queries
    rows: tuple[StressRow, ...]  # one per perturbation
    left_out: Mapping[str, str] = field(default_factory=dict)  # perturbations that could not be run, and why
    agreement: Mapping[str, Agreement] = field(default_factory=dict)  # per direction with two or more
    notes: Sequence[str] = ()  # what a reader of the numbers should know besides
    opened: bool = field(default=False, init=False, compare=False)  # found finished; not kept

    def row(self, perturbation: str) -> StressRow:
        found = {row.name: row for row in self.rows}
        if perturbation not in found:
            raise UnknownNameError("perturbation of this run", perturbation, found)
        return found[perturbation]

    def protocol_line(self) -> str:
        return "; ".join(f"{name} {value}" for name, value in self.protocol.items())

    def tables(self) -> list[Table]:
        """Return everything that was found; what is long is folded."""
        from diptych.evaluation.stress.tables import stress_tables

        return stress_tables(self)

    def lines(self) -> list[str]:
        """Return how the tables are read, what they say in a sentence, and how they were made."""
        from diptych.evaluation.stress.tables import COST_LEGEND, stress_summary

        return [COST_LEGEND, stress_summary(self), *self.notes, self.protocol_line(), self.method]
