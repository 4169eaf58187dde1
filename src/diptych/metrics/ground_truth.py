"""Ground truth: which texts are relevant to which images, many to many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from diptych.core.errors import DataError, UnknownNameError
from diptych.metrics.positives import (
    DIRECTIONS,
    Direction,
    Positives,
    as_rows,
    check_range,
    frozen,
    positives_of,
)


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Which texts are relevant to which images; immutable.

    A query without any positive is kept: it counts in every mean, scores 0 and has the worst rank.
    One that is not asked counts in none; as an item of the other direction's gallery it stays.

    Attributes:
        n_images: how many images.
        n_texts: how many texts.
        i2t: images as queries, texts as gallery.
        t2i: texts as queries, images as gallery.
        text_image: (n_texts,) the image each text was written for, -1 where there is none. Folds and
            bootstrap clusters follow it.
        asked: per direction, (n_queries,) booleans: which items are queries; all of them where it says
            nothing.
    """

    n_images: int
    n_texts: int
    i2t: Positives
    t2i: Positives
    text_image: np.ndarray
    asked: Mapping[Direction, np.ndarray] = field(default_factory=dict)

    @classmethod
    def from_caption_image(cls, caption_image: object, n_images: int) -> GroundTruth:
        """Every caption describes one image.

        Args:
            caption_image: (n_texts,) whole numbers, the image row of each text.
            n_images: how many images; those that no text names are queries without a positive.

        Raises:
            DataError: a row outside [0, n_images), or not a list of whole numbers.
        """
        images = as_rows("caption_image", caption_image)
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
        image_rows, text_rows = as_rows("images", images), as_rows("texts", texts)
        if len(image_rows) != len(text_rows):
            raise DataError(
                f"ground truth: {len(image_rows)} images and {len(text_rows)} texts are not pairs"
            )
        check_range("image", image_rows, n_images)
        check_range("text", text_rows, n_texts)
        i2t = positives_of(image_rows, text_rows, n_images, n_texts)
        return cls(n_images, n_texts, i2t, i2t.transposed(), _homes(text_image, i2t.transposed()))

    @classmethod
    def from_directions(
        cls,
        i2t: tuple[object, object],
        t2i: tuple[object, object],
        n_images: int,
        n_texts: int,
        *,
        text_image: object | None = None,
        asked: Mapping[Direction, object] | None = None,
    ) -> GroundTruth:
        """Relevant pairs that need not be the same in both directions, as extended positives come.

        Args:
            i2t: image rows and text rows, (n_pairs,) each: texts relevant to images that ask.
            t2i: image rows and text rows: images relevant to texts that ask.
            n_images: how many images.
            n_texts: how many texts.
            text_image: as for :meth:`from_pairs`.
            asked: per direction, the rows that are queries; all of them where it says nothing.

        Raises:
            DataError: lists of different lengths, a row that is out of range, or nobody is asked.
        """
        one = cls.from_pairs(*i2t, n_images, n_texts, text_image)
        other = cls.from_pairs(*t2i, n_images, n_texts, text_image)
        masks: dict[Direction, np.ndarray] = {}
        for name, given in (asked or {}).items():
            rows, size = as_rows(f"asked {name}", given), n_images if name == "i2t" else n_texts
            check_range(f"asked {name}", rows, size)
            if not len(rows):
                raise DataError(f"ground truth: no {name} query is asked", "ask at least one")
            masks[name] = np.zeros(size, dtype=bool)
            masks[name][rows] = True
            masks[name].flags.writeable = False
        home = one.text_image if text_image is not None else _homes(None, other.t2i)
        return cls(n_images, n_texts, one.i2t, other.t2i, home, masks)

    def positives(self, direction: str) -> Positives:
        """The direction called ``"i2t"`` or ``"t2i"``.

        Raises:
            UnknownNameError: another name.
        """
        if direction not in DIRECTIONS:
            raise UnknownNameError("direction", direction, DIRECTIONS)
        return self.i2t if direction == "i2t" else self.t2i

    def queries(self, direction: str) -> np.ndarray:
        """The rows of ``direction`` that are asked, ascending; all of them unless some are not.

        Raises:
            UnknownNameError: another name than ``"i2t"`` or ``"t2i"``.
        """
        size = self.positives(direction).n_queries
        mask = self.asked.get("i2t" if direction == "i2t" else "t2i")
        return np.arange(size) if mask is None else np.flatnonzero(mask)

    @cached_property
    def symmetric(self) -> bool:
        """Whether a text is relevant to an image whenever the image is to the text."""
        back = self.t2i.transposed()
        return np.array_equal(back.start, self.i2t.start) and np.array_equal(back.rows, self.i2t.rows)

    def mirrored(self, direction: Direction) -> GroundTruth:
        """The same positives for ``direction``, and the same pairs for the other one too."""
        if direction == "i2t":
            return replace(self, t2i=self.i2t.transposed())
        return replace(self, i2t=self.t2i.transposed())

    @property
    def without_positive(self) -> dict[Direction, int]:
        """Per direction, how many of the queries that are asked have no positive at all."""
        return {
            name: int(np.sum(self.positives(name).counts[self.queries(name)] == 0)) for name in DIRECTIONS
        }

    def subset(self, images: np.ndarray, texts: np.ndarray) -> GroundTruth:
        """The same relevance among the image rows ``images`` and the text rows ``texts``, renumbered.

        Pairs of which one side is left out are gone, as their gallery row is.
        """
        new_image = np.full(self.n_images, -1, dtype=np.int64)
        new_image[images] = np.arange(len(images))
        new_text = np.full(self.n_texts, -1, dtype=np.int64)
        new_text[texts] = np.arange(len(texts))

        def kept(pair_images: np.ndarray, pair_texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            inside = (new_image[pair_images] >= 0) & (new_text[pair_texts] >= 0)
            return new_image[pair_images[inside]], new_text[pair_texts[inside]]

        home = self.text_image[texts]
        rows = {"i2t": images, "t2i": texts}
        return GroundTruth.from_directions(
            kept(self.i2t.queries, self.i2t.rows),
            kept(self.t2i.rows, self.t2i.queries),
            len(images),
            len(texts),
            text_image=np.where(home >= 0, new_image[home], -1),
            asked={name: np.flatnonzero(mask[rows[name]]) for name, mask in self.asked.items()},
        )


def _homes(given: object | None, t2i: Positives) -> np.ndarray:
    """The image each text was written for: the given one, or the first relevant."""
    if given is None:
        home = np.full(t2i.n_queries, -1, dtype=np.int64)
        has = t2i.counts > 0
        home[has] = t2i.rows[t2i.start[:-1][has]]
        return frozen(home)
    home = as_rows("text_image", given)
    if len(home) != t2i.n_queries:
        raise DataError(f"ground truth: text_image has {len(home)} entries for {t2i.n_queries} texts")
    check_range("text_image", home[home != -1], t2i.gallery)
    return frozen(home)
