"""What the granularity of captions is: a number per feature, and per caption.

::

    FOLDER/
      granularity.json     definitions, means, intervals, what was skipped, captions at the extremes
      values.npy           (captions, features) float64; NaN where a feature is not defined of a caption
      nouns.npy            (captions,) float64: how many nouns each has; NaN where nobody tagged
      caption_image.npy    (captions,) int64
      images.*, captions.* ids
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
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval
from diptych.metrics.paired import LEVEL


@dataclass(frozen=True)
class FeatureSummary:
    """One feature over all captions.

    Attributes:
        name: of the feature.
        definition: in one line, as it was counted.
        unit: of one caption's value.
        mean: over captions; None where no caption has a value.
        sd: standard deviation over captions; None of fewer than two.
        low, high: ends of the interval of the mean; None without resamples.
        n: captions with a value.
        skipped: captions without one, by reason.
        per_noun: all that was counted divided by all nouns; None where it is not of nouns.
        decimals: digits in tables.
        compat: ``published`` where it was counted as Table 5.1's numbers are.
    """

    name: str
    definition: str
    unit: str
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    n: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    per_noun: float | None = None
    decimals: int = 2
    compat: str = "none"

    @property
    def n_skipped(self) -> int:
        """How many captions have no value."""
        return sum(self.skipped.values())


@dataclass(frozen=True)
class Example:
    """A caption at an extreme.

    Attributes:
        id: of the caption.
        text: it.
        score: mean over features of how many standard deviations it is above the mean.
    """

    id: str
    text: str
    score: float


@dataclass(frozen=True, eq=False)
class Granularity(
    Artifact,
    kind="granularity",
    version=2,
    recreate="diptych analyse granularity",
    mapped=("values", "nouns", "caption_image"),
    files=("image_ids", "caption_ids"),
):
    """The granularity of captions.

    Attributes:
        name: of what was measured.
        about: everything the numbers depend on; JSON-able.
        features: in order.
        values: (captions, features) float64, NaN where there is none; perhaps memory-mapped.
        nouns: (captions,) float64, nouns of each caption; NaN where nobody tagged.
        caption_image: (captions,) int64.
        image_ids: per image.
        caption_ids: per caption.
        most, least: captions with the highest and the lowest scores.
    """

    name: str
    about: Mapping[str, Any]
    features: tuple[FeatureSummary, ...]
    values: np.ndarray
    nouns: np.ndarray
    caption_image: np.ndarray
    image_ids: Sequence[str]
    caption_ids: Sequence[str]
    most: tuple[Example, ...] = ()
    least: tuple[Example, ...] = ()

    @property
    def n_captions(self) -> int:
        """How many captions."""
        return len(self.values)

    def feature(self, name: str) -> FeatureSummary:
        """One feature."""
        for one in self.features:
            if one.name == name:
                return one
        raise UnknownNameError("measured feature", name, [one.name for one in self.features])

    def column(self, name: str) -> np.ndarray:
        """(captions,) a feature's values."""
        place = self.features.index(self.feature(name))
        column: np.ndarray = np.asarray(self.values[:, place])
        return column

    def line(self) -> str:
        """Everything the numbers depend on, in one line."""
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
        """Write the ids."""
        write_strings(folder / "images", self.image_ids)
        write_strings(folder / "captions", self.caption_ids)

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        """Map the ids."""
        return {"image_ids": StringTable(folder / "images"), "caption_ids": StringTable(folder / "captions")}


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
class GranularityComparison(Artifact, kind="granularity_comparison", recreate="diptych analyse granularity"):
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


@dataclass(frozen=True, eq=False)
class PerImage:
    """Sums over the captions of each image; a caption without a value counts nowhere.

    Attributes:
        counts: (images, features) how many captions have a value.
        sums: (images, features) of values.
        squares: (images, features) of squared values.
    """

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    @property
    def means(self) -> np.ndarray:
        """(features,) over captions; NaN where no caption has a value."""
        return divided(self.sums.sum(axis=0), self.counts.sum(axis=0))

    @property
    def deviations(self) -> np.ndarray:
        """(features,) standard deviation over captions (n − 1); NaN of fewer than two."""
        totals = (one.sum(axis=0) for one in (self.counts, self.sums, self.squares))
        found: np.ndarray = np.sqrt(variances(*totals))
        return found


def gathered(values: np.ndarray, image: np.ndarray, images: int) -> PerImage:
    """Gather values per image.

    Args:
        values: (captions, features); NaN where a caption has none.
        image: (captions,) the number of each caption's image.
    """
    shape = images, values.shape[1]
    counts, sums, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for column in range(shape[1]):
        given = np.asarray(values[:, column], dtype=np.float64)
        known = ~np.isnan(given)
        of, plain = image[known], given[known]
        counts[:, column] = np.bincount(of, minlength=images)
        sums[:, column] = np.bincount(of, weights=plain, minlength=images)
        squares[:, column] = np.bincount(of, weights=plain**2, minlength=images)
    return PerImage(counts, sums, squares)


def resampled_sums(tables: Sequence[np.ndarray], bootstrap: Bootstrap, draws: int = 0) -> list[np.ndarray]:
    """Sums over images of tables that hold a row per image, in every resample; the same images for all tables.

    Args:
        tables: each (images, columns).

    Returns:
        Per table (samples, columns).
    """
    images = len(tables[0])
    whole = np.concatenate(tables, axis=1)
    parts = [weights @ whole for weights in drawn_clusters(bootstrap, draws, images, images)]
    drawn = np.concatenate(parts) if parts else np.empty((0, whole.shape[1]))
    return np.split(drawn, np.cumsum([table.shape[1] for table in tables])[:-1], axis=1)


def intervals(samples: np.ndarray, confidence: float) -> list[tuple[float, float] | None]:
    """The percentile interval of each column of (samples, columns); None without resamples."""
    return [interval(samples[:, column], confidence) for column in range(samples.shape[1])]


def divided(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means; NaN of nothing."""
    nothing = np.full(np.shape(sums), np.nan)
    found: np.ndarray = np.divide(sums, counts, out=nothing, where=np.asarray(counts) > 0)
    return found


def variances(counts: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Sample variances (n − 1) from sums; NaN of fewer than two values."""
    centred = squares - sums * divided(sums, counts)
    return np.where(counts > 1, np.maximum(centred, 0) / np.maximum(counts - 1, 1), np.nan)
