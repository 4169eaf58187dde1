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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.files import write_json
from diptych.core.reading import map_array, opening, read_json

MARKER = "granularity.json"
_FORMAT = 1
_ARRAYS = ("values", "nouns", "caption_image")


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
class Granularity:
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

    def save(self, folder: Path) -> None:
        """Write it into ``folder``, which exists; use within :func:`diptych.core.files.atomic_folder`."""
        from diptych.data.string_table import write_strings

        for name in _ARRAYS:
            if not (folder / f"{name}.npy").is_file():
                np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)
        write_strings(folder / "images", self.image_ids)
        write_strings(folder / "captions", self.caption_ids)
        write_json(folder / MARKER, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; without the values of captions."""
        return {
            "format": _FORMAT,
            "name": self.name,
            "about": dict(self.about),
            "features": [asdict(one) for one in self.features],
            "most": [asdict(one) for one in self.most],
            "least": [asdict(one) for one in self.least],
        }

    @classmethod
    @opening("measure again: diptych granularity")
    def open(cls, folder: Path | str) -> Granularity:
        """Read what was written; values stay on disk."""
        from diptych.data.string_table import StringTable

        folder = Path(folder)
        said = read_json(folder / MARKER)
        if not isinstance(said, dict) or said.get("format") != _FORMAT:
            raise StorageError(
                f"{folder / MARKER} is not of format {_FORMAT}", "measure again: diptych granularity"
            )
        fix = "measure again: diptych granularity"
        values, nouns, image = (map_array(folder / f"{name}.npy", fix=fix) for name in _ARRAYS)
        return cls(
            name=said["name"],
            about=said["about"],
            features=tuple(FeatureSummary(**one) for one in said["features"]),
            values=values,
            nouns=nouns,
            caption_image=np.asarray(image),
            image_ids=StringTable(folder / "images"),
            caption_ids=StringTable(folder / "captions"),
            most=tuple(Example(**one) for one in said["most"]),
            least=tuple(Example(**one) for one in said["least"]),
        )
