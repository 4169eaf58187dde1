"""What every declared measure has, whatever it is computed from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

from diptych.core.errors import UsageError
from diptych.metrics.aggregates import MEAN, Aggregate

FAMILY = "@k"
"""How the name of a family of measures ends."""


def figures(value: float) -> str:
    """One decimal, as papers print; two significant digits below 1, for chance levels are small."""
    return f"{value:.2g}" if 0 < value < 0.95 else f"{value:.1f}"


@dataclass(frozen=True, kw_only=True)
class DeclaredMeasure:
    """One measure, or a family ``NAME@k`` until its cut-off is given.

    Attributes:
        name: as it is asked for and printed.
        description: one line of what it is, any conventions included.
        citation: where it comes from.
        positives: ``"best"``: any-of-k, only the best positive of a query counts;
            ``"all"``: every positive counts.
        kind: ``"share"`` in [0, 1], the more the better, printed in per cent; ``"rank"`` from 1, the
            less the better; ``"gain"`` from 0, the more the better, printed as it is.
        aggregate: from values per query to the number.
        compat: whether it is a published convention rather than the plain definition.
        cutoff: k.
    """

    name: str
    description: str
    citation: str
    positives: Literal["best", "all"]
    kind: Literal["share", "rank", "gain"] = "share"
    aggregate: Aggregate = MEAN
    compat: bool = False
    cutoff: int | None = None

    @property
    def higher_is_better(self) -> bool:
        """Whether more is better."""
        return self.kind != "rank"

    def at(self, cutoff: int) -> Self:
        """The family's member with cut-off ``cutoff``."""
        if not self.name.endswith(FAMILY):
            raise UsageError(f"measure {self.name!r} takes no cut-off, got {cutoff}")
        if cutoff < 1:
            raise UsageError(f"the cut-off of {self.name!r} is {cutoff}, it must be at least 1")
        return replace(self, name=f"{self.name.removesuffix(FAMILY)}@{cutoff}", cutoff=cutoff)

    def show(self, value: float) -> str:
        """The value as tables print it: shares in per cent, gains with three decimals."""
        if self.kind == "gain":
            return f"{value:.3f}"
        return figures(100 * value if self.kind == "share" else value)
