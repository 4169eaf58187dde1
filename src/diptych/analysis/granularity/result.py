"""What the granularity of captions is: a number per feature, and per caption.

A folder holds ``granularity.json`` with the summaries, ``values.npy``, ``nouns.npy``, ``caption_image.npy`` and
the ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import UnknownNameError
from diptych.data.columns import StringTable, write_strings
from diptych.metrics.paired import LEVEL


@dataclass(frozen=True)
class FeatureSummary:
    """One feature over all captions."""

    name: str
    definition: str  # in one line, as it was counted
    unit: str  # of one caption's value
    mean: float | None  # over captions; None where no caption has a value
    sd: float | None  # standard deviation over captions; None of fewer than two
    low: float | None  # ends of the interval of the mean; None without resamples
    high: float | None
    n: int  # captions with a value
    skipped: Mapping[str, int] = field(default_factory=dict)  # captions without one, by reason
    per_noun: float | None = None  # all that was counted divided by all nouns; None where it is not of nouns
    decimals: int = 2  # digits in tables
    compat: str = "none"  # "published" where it was counted as Table 5.1's numbers are

    @property
    def n_skipped(self) -> int:
        return sum(self.skipped.values())


@dataclass(frozen=True)
class Example:
    """A caption at an extreme."""

    id: str
    text: str
    score: float  # mean over features of how many standard deviations it is above the mean


@dataclass(frozen=True, eq=False)
class Granularity(
    Artifact,
    kind="granularity",
    version=2,
    recreate="diptych analyse granularity",
    mapped=("values", "nouns", "caption_image"),
    files=("image_ids", "caption_ids"),
):
    """The granularity of captions; arrays are memory-mapped where they lie in a folder."""

    name: str  # of what was measured
    about: Mapping[str, Any]  # everything the numbers depend on; JSON-able
    features: tuple[FeatureSummary, ...]
    values: np.ndarray  # (captions, features) float64, NaN where there is none
    nouns: np.ndarray  # (captions,) float64, nouns of each caption; NaN where nobody tagged
    caption_image: np.ndarray  # (captions,) int64
    image_ids: Sequence[str]
    caption_ids: Sequence[str]
    most: tuple[Example, ...] = ()  # captions with the highest scores
    least: tuple[Example, ...] = ()  # and with the lowest

    @property
    def n_captions(self) -> int:
        return len(self.values)

    def feature(self, name: str) -> FeatureSummary:
        return self.features[self._place(name)]

    def column(self, name: str) -> np.ndarray:
        return np.asarray(self.values[:, self._place(name)])

    def _place(self, name: str) -> int:
        names = [one.name for one in self.features]
        if name not in names:
            raise UnknownNameError("measured feature", name, names)
        return names.index(name)

    def line(self) -> str:
        """Return everything the numbers depend on."""
        about = self.about
        split = f" {about['split']}" if about.get("split") else ""
        resamples = (
            f"{100 * about['confidence']:g} % intervals of {about['samples']:,} resamples of images "
            f"(seed {about['seed']})"
            if about["samples"]
            else "no intervals"
        )
        compat = "" if about["compat"] == "none" else f"; compat {about['compat']}"
        return (
            f"{self.name}{split}: {about['images']:,} images, {about['captions']:,} captions "
            f"(text {about['text']}); language {about['language']}{compat}; {resamples}"
        )

    def write_files(self, folder: Path) -> None:
        write_strings(folder / "images", self.image_ids)
        write_strings(folder / "captions", self.caption_ids)

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        return {"image_ids": StringTable(folder / "images"), "caption_ids": StringTable(folder / "captions")}


@dataclass(frozen=True)
class Effect:
    """A number, None where it is not defined, with the ends of its interval, None without resamples."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class FeatureDifference:
    """One feature of two collections."""

    name: str
    first: float | None  # means over captions
    second: float | None
    difference: Effect  # second less first
    relative: Effect  # the difference as a share of the first
    d: Effect  # Cohen's d of captions, by the pooled standard deviation
    delta: Effect  # Cliff's δ: how much more often the second's is the greater of two captions than the less
    paired_d: Effect | None  # d_z of images: mean over deviation of their differences; None where not paired
    paired_delta: Effect | None  # share of images that have more in the second, less that of those with less
    p: float | None  # of no difference; None where nothing can be tested
    corrected: float | None  # the same, corrected over all features
    decimals: int = 2  # digits in tables

    @property
    def verdict(self) -> str:
        """``finer`` or ``coarser``, of the second collection, where the corrected p-value says so; else nothing."""
        if self.corrected is None or self.corrected > LEVEL or not self.difference.value:
            return ""
        return "finer" if self.difference.value > 0 else "coarser"


@dataclass(frozen=True)
class GranularityComparison(Artifact, kind="granularity_comparison", recreate="diptych analyse granularity"):
    """Two collections, feature by feature."""

    first: str  # their names
    second: str
    paired: int  # how many images they were paired by; 0 where not
    differences: tuple[FeatureDifference, ...]  # in the order of the features
    notes: tuple[str, ...]  # how they were compared, and what was left out
