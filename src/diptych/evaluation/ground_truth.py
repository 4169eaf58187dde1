"""Ground truth: which texts are relevant to which images, many to many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from diptych.core.errors import DataError, UnknownNameError

__all__ = ["DIRECTIONS", "Direction", "GroundTruth", "Positives"]

Direction = Literal["i2t", "t2i"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, eq=False)
class Positives:
    """One direction of a ground truth: the relevant gallery rows of every query.

    Attributes:
        start: (n_queries + 1,) int64; query q's positives are ``rows[start[q]:start[q + 1]]``.
        rows: gallery rows, ascending within a query.
        gallery: how many rows the gallery has.
    """

    start: np.ndarray
    rows: np.ndarray
    gallery: int

    @property
    def n_queries(self) -> int:
        """How many queries, those without a positive included."""
        return len(self.start) - 1

    @cached_property
    def counts(self) -> np.ndarray:
        """(n_queries,) int64, the positives of each query."""
        return np.diff(self.start)

    @cached_property
    def queries(self) -> np.ndarray:
        """The query of every entry of ``rows``."""
        return np.repeat(np.arange(self.n_queries), self.counts)

    def of(self, query: int) -> np.ndarray:
        """The relevant gallery rows of ``query``."""
        return self.rows[self.start[query] : self.start[query + 1]]


def _frozen(values: np.ndarray) -> np.ndarray:
    values = np.ascontiguousarray(values, dtype=np.int64)
    values.flags.writeable = False
    return values


def _rows_by_query(queries: np.ndarray, rows: np.ndarray, n_queries: int, gallery: int) -> Positives:
    order = np.lexsort((rows, queries))
    start = np.concatenate([[0], np.cumsum(np.bincount(queries, minlength=n_queries))])
    return Positives(_frozen(start), _frozen(rows[order]), gallery)


def _check_range(what: str, values: np.ndarray, size: int) -> None:
    outside = np.flatnonzero((values < 0) | (values >= size))
    if len(outside):
        where = int(outside[0])
        raise DataError(
            f"ground truth: {what} row {int(values[where])} (entry {where}) is not in [0, {size})",
            "give the rows of the same images and texts that are evaluated",
        )


def _as_rows(what: str, values: object) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise DataError(
            f"ground truth: {what} must be a list of whole numbers, "
            f"got an array of {array.dtype} with shape {array.shape}"
        )
    return array.astype(np.int64)


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Which texts are relevant to which images; immutable.

    A query without any positive is kept: it counts in every mean, scores 0 and has the worst rank.

    Attributes:
        n_images: how many images.
        n_texts: how many texts.
        i2t: images as queries, texts as gallery.
        t2i: texts as queries, images as gallery.
        text_image: (n_texts,) the image each text was written for, -1 where there is none. Folds and
            bootstrap clusters follow it.
    """

    n_images: int
    n_texts: int
    i2t: Positives
    t2i: Positives
    text_image: np.ndarray

    @classmethod
    def from_caption_image(cls, caption_image: object, n_images: int) -> GroundTruth:
        """Every caption describes one image.

        Args:
            caption_image: (n_texts,) whole numbers, the image row of each text.
            n_images: how many images; those that no text names are queries without a positive.

        Raises:
            DataError: a row outside [0, n_images), or not a list of whole numbers.
        """
        images = _as_rows("caption_image", caption_image)
        return cls.from_pairs(images, np.arange(len(images)), n_images, len(images), text_image=images)

    @classmethod
    def from_pairs(
        cls, images: object, texts: object, n_images: int, n_texts: int, text_image: object | None = None
    ) -> GroundTruth:
        """Any set of relevant pairs; a pair given twice counts once.

        Args:
            images: (n_pairs,) image rows.
            texts: (n_pairs,) text rows.
            n_images: how many images.
            n_texts: how many texts.
            text_image: (n_texts,) the image each text was written for, -1 for none; without it, the
                first relevant image.

        Raises:
            DataError: lists of different lengths, or a row that is out of range.
        """
        image_rows, text_rows = _as_rows("images", images), _as_rows("texts", texts)
        if len(image_rows) != len(text_rows):
            raise DataError(
                f"ground truth: {len(image_rows)} images and {len(text_rows)} texts are not pairs"
            )
        _check_range("image", image_rows, n_images)
        _check_range("text", text_rows, n_texts)
        pairs = np.unique(image_rows * max(n_texts, 1) + text_rows)
        image_rows, text_rows = np.divmod(pairs, max(n_texts, 1))
        i2t = _rows_by_query(image_rows, text_rows, n_images, n_texts)
        t2i = _rows_by_query(text_rows, image_rows, n_texts, n_images)
        if text_image is None:
            home = np.full(n_texts, -1, dtype=np.int64)
            has = t2i.counts > 0
            home[has] = t2i.rows[t2i.start[:-1][has]]
        else:
            home = _as_rows("text_image", text_image)
            if len(home) != n_texts:
                raise DataError(f"ground truth: text_image has {len(home)} entries for {n_texts} texts")
            _check_range("text_image", home[home != -1], n_images)
        return cls(n_images, n_texts, i2t, t2i, _frozen(home))

    def positives(self, direction: str) -> Positives:
        """The direction called ``"i2t"`` or ``"t2i"``.

        Raises:
            UnknownNameError: another name.
        """
        if direction not in DIRECTIONS:
            raise UnknownNameError("direction", direction, DIRECTIONS)
        return self.i2t if direction == "i2t" else self.t2i

    @property
    def without_positive(self) -> dict[Direction, int]:
        """Per direction, how many queries have no positive at all."""
        return {name: int(np.sum(self.positives(name).counts == 0)) for name in DIRECTIONS}

    def subset(self, images: np.ndarray, texts: np.ndarray) -> GroundTruth:
        """The same relevance among the image rows ``images`` and the text rows ``texts``, renumbered.

        Pairs of which one side is left out are gone, as their gallery row is.
        """
        new_image = np.full(self.n_images, -1, dtype=np.int64)
        new_image[images] = np.arange(len(images))
        new_text = np.full(self.n_texts, -1, dtype=np.int64)
        new_text[texts] = np.arange(len(texts))
        pair_images, pair_texts = new_image[self.i2t.queries], new_text[self.i2t.rows]
        keep = (pair_images >= 0) & (pair_texts >= 0)
        home = self.text_image[texts]
        return GroundTruth.from_pairs(
            pair_images[keep],
            pair_texts[keep],
            len(images),
            len(texts),
            text_image=np.where(home >= 0, new_image[home], -1),
        )
