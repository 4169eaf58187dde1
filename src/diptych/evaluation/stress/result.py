"""StressResult: what every perturbation costs, with the protocol that made the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diptych.core.artifact import Artifact
from diptych.core.errors import UnknownNameError
from diptych.evaluation.drops import Drop

CLEAN = "clean.npz"
"""Values of the clean queries, beside the result."""


@dataclass(frozen=True)
class ChangedDrop:
    """The drop of one measure over the queries that were changed alone, all seeds together.

    Queries that could not be changed lose nothing and thin the drop over all of them; its p-value is of both,
    as the queries that stay add nothing to either difference.

    Attributes:
        clean: mean of the clean queries, each as often as seeds changed it.
        perturbed: mean of the changed ones.
        difference: changed less clean.
        low: lower end of its interval; None without resamples.
        high: upper end.
        relative: ``difference / clean``; None where the clean mean is not above 0.
    """

    clean: float
    perturbed: float
    difference: float
    low: float | None
    high: float | None
    relative: float | None


@dataclass(frozen=True)
class Preference:
    """How often a caption's own picture scores the clean caption higher than the changed one.

    Attributes:
        captions: that were changed, with any seed.
        share: in [0, 1]; ties count one half, so one half is what an encoder has that cannot tell them apart.
        ties: share of ties.
        low: lower end of its interval; None without resamples.
        high: upper end.
        corrected: p-value against one half, corrected over the perturbations that have a preference.
    """

    captions: int
    share: float
    ties: float
    low: float | None
    high: float | None
    corrected: float


@dataclass(frozen=True)
class LengthBin:
    """Captions of like length.

    Attributes:
        low: words of the shortest.
        high: words of the longest.
        captions: how many.
        decreased: share whose R@1 + R@5 + R@10 went down, the mean over seeds.
        difference: what that sum lost on average, in per cent, below 0 where it lost.
    """

    low: int
    high: int
    captions: int
    decreased: float
    difference: float


@dataclass(frozen=True)
class Example:
    """A query whose best positive's rank grew by a great factor.

    Attributes:
        query: its id.
        seed: of the perturbation.
        before: rank of its best positive, clean; from 1.
        after: the same, changed.
        first_before: id of the item that it found first, clean.
        first_after: the same, changed.
        expected: id of a positive.
        clean: its text, where it is a caption.
        changed: its changed text.
    """

    query: str
    seed: int
    before: float
    after: float
    first_before: str
    first_after: str
    expected: str
    clean: str = ""
    changed: str = ""


@dataclass(frozen=True)
class StressRow:
    """One perturbation.

    Attributes:
        name, description, group, source, keeps_meaning: as it declares them.
        direction: ``"t2i"``: captions are perturbed and ask for pictures; ``"i2t"``: the other way round.
        options: what it was run with.
        queries: how many ask.
        changed: per seed, how many of them it changed.
        same: per seed, how many of those the encoder gives the very row of the clean query.
        draws: how many different sets of changed queries the seeds gave; 1 where nothing is left to chance.
        reasons: why others stayed as they were, and how many, over all seeds.
        drops: per measure, what it costs, over all queries.
        changed_drops: per measure, what it costs over those that it changed; empty where it changed none.
        sizes: share of queries that decreased, increased and are unchanged in R@1 + R@5 + R@10.
        preference: of captions that no longer say what they said, in words or by their order; else None.
        lengths: what it costs captions of like length, the shortest first; none for pictures.
        examples: the worst hit.
    """

    name: str
    description: str
    group: str
    source: str
    keeps_meaning: bool
    direction: str
    options: Mapping[str, Any]
    queries: int
    changed: Sequence[int]
    same: Sequence[int]
    draws: int
    reasons: Mapping[str, int]
    drops: Mapping[str, Drop]
    changed_drops: Mapping[str, ChangedDrop]
    sizes: Mapping[str, float]
    preference: Preference | None = None
    lengths: tuple[LengthBin, ...] = ()
    examples: tuple[Example, ...] = ()

    @property
    def changed_share(self) -> float:
        """Mean share of queries that were changed."""
        return sum(self.changed) / (self.queries * len(self.changed))

    @property
    def same_share(self) -> float:
        """Share of changed queries that the encoder cannot tell from the clean ones; 0 of none."""
        return sum(self.same) / max(1, sum(self.changed))

    def drop(self, measure: str) -> Drop:
        """What it costs in one measure."""
        if measure not in self.drops:
            raise UnknownNameError("measure", measure, self.drops)
        return self.drops[measure]


@dataclass(frozen=True)
class Agreement:
    """How far perturbations of one direction change the same queries (thesis, Table 5.4).

    Attributes:
        decreased: mean Jaccard similarity of the queries that decrease, over pairs of perturbations and
            seeds; None where no pair has one.
        increased, unchanged: the same of queries that increase and stay.
        pairs: per pair of perturbations ``first``, ``second``, and the three, means over seeds.
        left_out: per group, pairs without a similarity, summed over seeds.
    """

    decreased: float | None
    increased: float | None
    unchanged: float | None
    pairs: Sequence[Mapping[str, Any]]
    left_out: Mapping[str, int]


@dataclass(frozen=True)
class StressResult(Artifact, kind="stress", version=3, recreate="the command of diptych stress once more"):
    """What a stress run found.

    Attributes:
        key: what it was made of, by content.
        model: what reports call the encoder.
        protocol: what every number depends on, by name.
        method: how intervals and p-values were made, one line.
        measures: in the order asked for.
        clean: per direction and measure, the mean over clean queries.
        rows: one per perturbation.
        left_out: perturbations that could not be run, and why.
        agreement: per direction with two perturbations or more.
        notes: what a reader of the numbers should know besides.
        opened: whether the run found it finished, of the same content; this alone is not kept.
    """

    key: str
    model: str
    protocol: Mapping[str, Any]
    method: str
    measures: Sequence[str]
    clean: Mapping[str, Mapping[str, float]]
    rows: tuple[StressRow, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    agreement: Mapping[str, Agreement] = field(default_factory=dict)
    notes: Sequence[str] = ()
    opened: bool = field(default=False, init=False, compare=False)

    def row(self, perturbation: str) -> StressRow:
        """The row of a perturbation."""
        found = {row.name: row for row in self.rows}
        if perturbation not in found:
            raise UnknownNameError("perturbation of this run", perturbation, found)
        return found[perturbation]

    def protocol_line(self) -> str:
        """One line, to be printed with every number."""
        return "; ".join(f"{name} {value}" for name, value in self.protocol.items())
