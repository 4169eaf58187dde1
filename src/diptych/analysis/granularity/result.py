"""Granularity of captions, a number per feature and per caption; and the tables and charts that show it.

A folder holds ``granularity.json`` with the summaries, ``values.npy``, ``nouns.npy``, ``caption_image.npy`` and
the ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.chart import Chart, Series
from diptych.core.errors import UnknownNameError
from diptych.core.table import Cell, Table
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
    """The granularity of captions; arrays of a folder are memory-mapped."""

    name: str  # of what was measured
    about: Mapping[str, Any]  # everything the numbers depend on; JSON-able
    features: tuple[FeatureSummary, ...]
    values: np.ndarray  # (captions, features) float64, NaN where there is none
    nouns: np.ndarray  # (captions,) float64, nouns of each caption; NaN without tags
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


_LONG = 200  # characters of a caption that is shown
_MOST_BINS = 40
_TAIL = 99.5  # per cent of captions that have bins of their own; the last bin holds the rest


def granularity_tables(measured: Sequence[Granularity], examples: int = 5) -> list[Table]:
    """Return the features of one or several collections, and captions at the extremes."""
    rows, some_skipped = [], any(own.n_skipped for one in measured for own in one.features)
    for feature in measured[0].features:
        cells = [Cell(feature.name)]
        for one in measured:
            own = one.feature(feature.name)
            cells += [
                Cell.number(own.mean, own.decimals, own.low, own.high),
                Cell.number(own.sd, own.decimals),
                Cell("") if own.per_noun is None else Cell.number(own.per_noun, 3),
            ]
            if some_skipped:
                reasons = "; ".join(f"{reason} {count:,}" for reason, count in own.skipped.items())
                cells.append(Cell(f"{own.n_skipped:,}", reasons, value=own.n_skipped))
        published = "; as published" if feature.compat == "published" else ""
        rows.append([*cells, Cell(f"{feature.definition} ({feature.unit}){published}", words=True)])
    heads = ["mean", "sd", "per noun", *(["without value"] if some_skipped else [])]
    columns = [f"{one.name} {head}" if len(measured) > 1 else head for one in measured for head in heads]
    after = "Means over captions with their intervals; sd: over captions."
    tables = [Table("Features", ("feature", *columns, "what is counted"), rows, after=after)]
    extremes = []
    for one in measured:
        for example in [*one.most[:examples], *reversed(one.least[:examples])]:
            text = example.text if len(example.text) <= _LONG else f"{example.text[: _LONG - 1]}…"
            score = Cell.number(example.score, 2, sign="+")
            extremes.append([Cell(one.name), score, Cell(text, words=True)])
    if extremes:
        after = "Score: mean over features of a caption's standard deviations above its collection's mean."
        caption = "Captions at the extremes, most and least granular"
        tables.append(Table(caption, ("collection", "score", "caption"), extremes, after=after))
    return tables


def comparison_table(found: GranularityComparison) -> Table:
    rows = []
    for one in found.differences:
        sizes = [one.d, one.delta, *((one.paired_d, one.paired_delta) if found.paired else ())]
        rows.append(
            [
                Cell(one.name),
                _effect(one.difference, one.decimals),
                _effect(one.relative, 1, 100.0),
                *(_effect(size, 2) for size in sizes),
                Cell.number(one.corrected, 4),
                Cell(one.verdict or "–", words=True, strong=bool(one.verdict)),
            ]
        )
    paired = ("d_z", "δ_z") if found.paired else ()
    after = "d: Cohen's, δ: Cliff's, of captions; "
    if found.paired:
        after += f"d_z, δ_z: the same of the differences of {found.paired:,} images; "
    columns = ("feature", "difference", "%", "d", "δ", *paired, "p", f"{found.second} is")
    return Table(
        f"{found.second} less {found.first}", columns, rows, after=f"{after}p corrected over features."
    )


def _effect(effect: Effect | None, decimals: int, scale: float = 1.0) -> Cell:
    if effect is None:
        return Cell("–")
    value, low, high = (
        None if one is None else scale * one for one in (effect.value, effect.low, effect.high)
    )
    return Cell.number(value, decimals, low, high, "+")


def granularity_charts(measured: Sequence[Granularity]) -> list[Chart]:
    """Return a histogram per feature: the share of captions by value, the last bin with all above."""
    charts = []
    for feature in measured[0].features:
        columns = [one.column(feature.name) for one in measured]
        edges, is_open = bins_of(columns)
        drawn = []
        for one, column in zip(measured, columns, strict=True):
            known = np.minimum(column[~np.isnan(column)], edges[-1])
            heights = (100 * (np.histogram(known, edges)[0] / max(1, len(known)))).tolist()
            drawn.append(Series(one.name, [heights[0], *heights], edges.tolist(), mark="step"))
        after = "The last bin also holds everything above." if is_open else ""
        charts.append(Chart(feature.name, drawn, feature.unit, "% of captions", after=after))
    return charts


def bins_of(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, bool]:
    """Return edges of equal bins for all collections, whole numbers in the middle, and whether the last is open."""
    values = np.concatenate([np.asarray(column)[~np.isnan(column)] for column in columns])
    if not len(values):
        return np.array([-0.5, 0.5]), False
    low, high, top = float(values.min()), float(np.percentile(values, _TAIL)), float(values.max())
    if np.all(values == np.floor(values)):
        high = float(np.ceil(high))
        width = max(1.0, np.ceil((high - low + 1) / _MOST_BINS))
        edges = np.arange(low - 0.5, high + 0.5 + width, width)
    else:
        # Values that are all but equal still need edges that floats can tell apart.
        edges = np.linspace(low, max(high, low + 1e-6 * max(1.0, abs(low))), _MOST_BINS + 1)
    return edges, bool(top > edges[-1])
