"""What a comparison of two collections says, feature by feature."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from diptych.metrics.paired import LEVEL


@dataclass(frozen=True)
class Effect:
    """A number with its interval.

    Attributes:
        value: None where it is not defined.
        low, high: ends of the interval; None without resamples.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class FeatureDifference:
    """One feature of two collections.

    Attributes:
        name: of the feature.
        first, second: means over captions.
        difference: second less first.
        relative: the difference as a share of the first.
        d: Cohen's d of captions, by the pooled standard deviation.
        delta: Cliff's δ of captions: how much more often the second's is the greater of two than the less.
        paired_d: d_z of images: mean over standard deviation of their differences; None where not paired.
        paired_delta: share of images that have more in the second less that of those with less; None likewise.
        p: of no difference; None where nothing can be tested.
        corrected: the same, corrected over all features.
        decimals: digits in tables.
    """

    name: str
    first: float | None
    second: float | None
    difference: Effect
    relative: Effect
    d: Effect
    delta: Effect
    paired_d: Effect | None
    paired_delta: Effect | None
    p: float | None
    corrected: float | None
    decimals: int = 2

    @property
    def verdict(self) -> str:
        """``finer`` or ``coarser``, of the second collection, where the corrected p-value says so; else nothing."""
        if self.corrected is None or self.corrected > LEVEL or not self.difference.value:
            return ""
        return "finer" if self.difference.value > 0 else "coarser"


@dataclass(frozen=True)
class GranularityComparison:
    """Two collections, feature by feature.

    Attributes:
        first, second: their names.
        paired: how many images they were paired by; 0 where not.
        differences: in the order of the features.
        notes: how they were compared, and what was left out.
    """

    first: str
    second: str
    paired: int
    differences: tuple[FeatureDifference, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)
