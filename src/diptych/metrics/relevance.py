"""What else than labels says how relevant an item is: a named model, or grades that people gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.metrics.positives import Direction, Positives
from diptych.metrics.products import check_rows
from diptych.metrics.sources import RowProducts, ScoreSource

_UNIT = 1e-4  # how far from 1 the length of a row may be that counts as 1: rows kept in half precision


def unit_rows(rows: np.ndarray, side: str, ids: Sequence[str] | None = None) -> np.ndarray:
    """The same rows where all have length 1 (or 0); else a copy of length 1, so that products are cosines."""
    rows = np.asarray(rows)
    check_rows(rows, side, ids)  # whose norms are bounds: of 1,024 columns 1e-4 too long
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    if np.all((lengths == 0) | (np.abs(lengths - 1) < _UNIT)):
        return rows
    lengths[lengths == 0] = 1.0
    scaled: np.ndarray = np.divide(
        rows, lengths[:, None], out=np.empty(rows.shape, np.float32), casting="same_kind"
    )
    return scaled


@dataclass(frozen=True, eq=False)
class Relevance:
    """A named model's rows of the same images and texts; their cosine says how relevant an item is.

    Attributes:
        images: (n, d) float32 rows; d need not be the evaluated model's.
        texts: (m, d) float32 rows. Where queries are perturbed, of the perturbed queries.
        name: of the model, for the protocol, its fingerprint included where it has one.
    """

    images: np.ndarray
    texts: np.ndarray
    name: str = "a given relevance model"

    def part(self, images: slice | np.ndarray, texts: slice | np.ndarray) -> Relevance:
        """Of some image rows and some text rows."""
        return Relevance(self.images[images], self.texts[texts], self.name)

    def source(self, n_images: int, n_texts: int) -> RowProducts:
        """The cosines."""
        for side, rows, size in (("image", self.images, n_images), ("text", self.texts, n_texts)):
            if len(rows) != size:
                raise DataError(
                    f"{self.name}: {len(rows):,} {side} rows where {size:,} are evaluated",
                    "embed the same collection and split with the relevance model",
                )
        images, texts = unit_rows(self.images, "relevance image"), unit_rows(self.texts, "relevance text")
        return RowProducts(images, texts)


@dataclass(frozen=True, eq=False)
class Grades:
    """How relevant pairs are, by people: e.g. ratings from 0 to 5. A pair that is not there has grade 0.

    A labelled match that nobody graded has the highest grade there is.

    Attributes:
        images: (p,) image rows.
        texts: (p,) text rows; no pair twice.
        values: (p,) float64, 0 or more.
        what: where they come from, for the protocol.
        top: the highest grade of the scale; that of ``values`` where it is 0.
    """

    images: np.ndarray
    texts: np.ndarray
    values: np.ndarray
    what: str = "given grades"
    top: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.images) == len(self.texts) == len(self.values):
            raise DataError(
                f"grades: {len(self.images)} images, {len(self.texts)} texts and {len(self.values)} values "
                "are not the same pairs"
            )
        bad = np.flatnonzero(~np.isfinite(self.values))
        if len(bad):
            raise NumericalError(f"the grade of {self._pair(bad[0])} is {self.values[bad[0]]}")
        low = np.flatnonzero(self.values < 0)
        if len(low):
            raise UsageError(
                f"the grade of {self._pair(low[0])} is {self.values[low[0]]:g}, below 0",
                "shift the scale so that the least relevant has 0",
            )
        order = np.lexsort((self.texts, self.images))
        same = (np.diff(self.images[order]) == 0) & (np.diff(self.texts[order]) == 0)
        if same.any():
            raise DataError(f"two grades of {self._pair(order[int(np.argmax(same))])}", "give each pair once")

    def _pair(self, entry: int) -> str:
        return f"image row {int(self.images[entry])} and text row {int(self.texts[entry])}"

    @property
    def highest(self) -> float:
        """The highest grade of the scale, 1 without any."""
        return self.top or float(self.values.max(initial=0.0)) or 1.0

    def part(self, images: np.ndarray, texts: np.ndarray, n_images: int, n_texts: int) -> Grades:
        """Of some image rows and some text rows, renumbered."""
        new_image, new_text = np.full(n_images, -1), np.full(n_texts, -1)
        new_image[images], new_text[texts] = np.arange(len(images)), np.arange(len(texts))
        rows, columns = new_image[self.images], new_text[self.texts]
        keep = (rows >= 0) & (columns >= 0)
        return Grades(rows[keep], columns[keep], self.values[keep], self.what, self.highest)

    def asked_from(self, direction: Direction) -> tuple[np.ndarray, np.ndarray]:
        """Query and gallery row of each pair."""
        return (self.images, self.texts) if direction == "i2t" else (self.texts, self.images)

    def ungraded(self, positives: Positives, direction: Direction) -> np.ndarray:
        """Which entries of ``positives`` have no grade."""
        queries, rows = self.asked_from(direction)
        width = max(positives.gallery, 1)
        return ~np.isin(positives.queries * width + positives.rows, queries * width + rows)


def own_similarity(
    source: ScoreSource, images: np.ndarray, texts: np.ndarray, similarity: str
) -> ScoreSource:
    """How similar the evaluated model says two items are: its own scores where they are cosines.

    Args:
        images: (n, d) rows.
        texts: (m, d) rows; rows that are not of length 1 are copied and scaled.
    """
    if similarity != "cosine":
        raise UsageError(
            f"gains by the evaluated model need cosines, and similarity {similarity!r} gives penalties",
            "name a relevance model (--relevance), or leave DCG_CM and nDCG_CM out",
        )
    unit_images, unit_texts = unit_rows(images, "image"), unit_rows(texts, "text")
    if unit_images is np.asarray(images) and unit_texts is np.asarray(texts):
        return source
    return RowProducts(unit_images, unit_texts)
