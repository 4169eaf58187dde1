"""Ground truth: which texts are relevant to which images, many to many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from diptych.core.errors import DataError, UnknownNameError
from diptych.metrics.runs import begins, starts

Direction = Literal["i2t", "t2i"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, eq=False)
class Positives:
    """One direction of a ground truth: the relevant gallery rows of every query."""

    start: np.ndarray  # (n_queries + 1,) int64; query q's positives are ``rows[start[q]:start[q + 1]]``
    rows: np.ndarray  # gallery rows, ascending within a query
    gallery: int  # how many rows the gallery has

    @classmethod
    def of_pairs(cls, queries: np.ndarray, rows: np.ndarray, n_queries: int, gallery: int) -> Positives:
        """Positives of pairs, of which one given twice counts once."""
        queries, rows = np.divmod(distinct(queries * max(gallery, 1) + rows), max(gallery, 1))
        return cls(_frozen(starts(np.bincount(queries, minlength=n_queries))), _frozen(rows), gallery)

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

    @cached_property
    def keys(self) -> np.ndarray:
        """A number for every pair of query and row, ascending; see :meth:`keys_of`."""
        return self.keys_of(self.queries, self.rows)

    def keys_of(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return a number for each pair, whether relevant or not."""
        keys: np.ndarray = queries * max(self.gallery, 1) + rows
        return keys

    def of(self, query: int) -> np.ndarray:
        """Return the relevant gallery rows of ``query``."""
        return self.rows[self.start[query] : self.start[query + 1]]

    def holds(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return booleans: is each gallery row relevant to the query beside it? Shapes broadcast."""
        return places_of(self.keys, self.keys_of(queries, rows))[1]

    def transposed(self) -> Positives:
        """Return the same pairs with queries and gallery exchanged."""
        return Positives.of_pairs(self.rows, self.queries, self.gallery, self.n_queries)

    def taken(self, queries: np.ndarray) -> Positives:
        """Return only the queries in these rows, in this order."""
        place = renumbered(queries, self.n_queries)
        keep = place[self.queries] >= 0
        return Positives.of_pairs(place[self.queries[keep]], self.rows[keep], len(queries), self.gallery)


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Which texts are relevant to which images; immutable.

    A query without any positive is kept: it counts in every mean, scores 0 and has the worst rank.
    One that is not evaluated counts in none; as an item of the other direction's gallery it stays.
    """

    n_images: int
    n_texts: int
    i2t: Positives  # images as queries, texts as gallery
    t2i: Positives  # texts as queries, images as gallery
    # (n_texts,) the image each text was written for, -1 where there is none; folds and bootstrap clusters follow it
    text_image: np.ndarray
    # per direction, (n_queries,) booleans: the evaluated queries; all of them where a direction is missing
    asked: Mapping[Direction, np.ndarray] = field(default_factory=dict)

    @classmethod
    def from_caption_image(cls, caption_image: object, n_images: int) -> GroundTruth:
        """Return the ground truth where every caption describes one image.

        ``caption_image`` are (n_texts,) image rows; images that no text names are queries without a positive.
        """
        images = _as_rows("caption_image", caption_image)
        return cls.from_pairs(images, np.arange(len(images)), n_images, len(images), text_image=images)

    @classmethod
    def from_pairs(
        cls, images: object, texts: object, n_images: int, n_texts: int, text_image: object | None = None
    ) -> GroundTruth:
        """Return that of any set of relevant pairs; a pair given twice counts once.

        Args:
            images: (n_pairs,) image rows.
            texts: (n_pairs,) text rows.
            n_images: how many images.
            n_texts: how many texts.
            text_image: (n_texts,) the image each text was written for, -1 for none; without it, the
                first relevant image.
        """
        image_rows, text_rows = _as_rows("images", images), _as_rows("texts", texts)
        if len(image_rows) != len(text_rows):
            raise DataError(
                f"ground truth: {len(image_rows)} images and {len(text_rows)} texts are not pairs"
            )
        _check_range("image", image_rows, n_images)
        _check_range("text", text_rows, n_texts)
        i2t = Positives.of_pairs(image_rows, text_rows, n_images, n_texts)
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
        """Return that of pairs that need not be the same in both directions, as extended positives come.

        Args:
            i2t: image rows and text rows, (n_pairs,) each: texts relevant to image queries.
            t2i: image rows and text rows: images relevant to text queries.
            n_images: how many images.
            n_texts: how many texts.
            text_image: as for :meth:`from_pairs`.
            asked: per direction, the rows of the evaluated queries; all of them where it is missing.
        """
        one = cls.from_pairs(*i2t, n_images, n_texts, text_image)
        other = cls.from_pairs(*t2i, n_images, n_texts, text_image)
        masks: dict[Direction, np.ndarray] = {}
        for name, given in (asked or {}).items():
            rows, size = _as_rows(f"asked {name}", given), n_images if name == "i2t" else n_texts
            _check_range(f"asked {name}", rows, size)
            if not len(rows):
                raise DataError(f"ground truth: no {name} query is asked", "ask at least one")
            masks[name] = np.zeros(size, dtype=bool)
            masks[name][rows] = True
            masks[name].flags.writeable = False
        home = one.text_image if text_image is not None else _homes(None, other.t2i)
        return cls(n_images, n_texts, one.i2t, other.t2i, home, masks)

    def positives(self, direction: str) -> Positives:
        """Return the direction called ``"i2t"`` or ``"t2i"``."""
        if direction not in DIRECTIONS:
            raise UnknownNameError("direction", direction, DIRECTIONS)
        return self.i2t if direction == "i2t" else self.t2i

    def queries(self, direction: str) -> np.ndarray:
        """Return the rows of the evaluated queries of ``direction``, ascending."""
        size = self.positives(direction).n_queries
        mask = self.asked.get("i2t" if direction == "i2t" else "t2i")
        return np.arange(size) if mask is None else np.flatnonzero(mask)

    @cached_property
    def symmetric(self) -> bool:
        """Is a text relevant to an image whenever the image is to the text?"""
        back = self.t2i.transposed()
        return np.array_equal(back.start, self.i2t.start) and np.array_equal(back.rows, self.i2t.rows)

    def mirrored(self, direction: Direction) -> GroundTruth:
        """Return the same positives for ``direction``, and the same pairs for the other one too."""
        if direction == "i2t":
            return replace(self, t2i=self.i2t.transposed())
        return replace(self, i2t=self.t2i.transposed())

    @property
    def without_positive(self) -> dict[Direction, int]:
        """Per direction, how many of the evaluated queries have no positive at all."""
        return {
            name: int(np.sum(self.positives(name).counts[self.queries(name)] == 0)) for name in DIRECTIONS
        }

    def subset(self, images: np.ndarray, texts: np.ndarray) -> GroundTruth:
        """Return the same relevance among some image rows and some text rows, renumbered.

        Pairs of which one side is left out are gone, as their gallery row is.
        """
        new_image, new_text = renumbered(images, self.n_images), renumbered(texts, self.n_texts)

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
        return _frozen(home)
    home = _as_rows("text_image", given)
    if len(home) != t2i.n_queries:
        raise DataError(f"ground truth: text_image has {len(home)} entries for {t2i.n_queries} texts")
    _check_range("text_image", home[home != -1], t2i.gallery)
    return _frozen(home)


def _frozen(values: np.ndarray) -> np.ndarray:
    values = np.ascontiguousarray(values, dtype=np.int64)
    values.flags.writeable = False
    return values


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


def renumbered(rows: np.ndarray, size: int) -> np.ndarray:
    """Return (size,) the place of each row in ``rows``, -1 for those that are not there."""
    place = np.full(size, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return place


def places_of(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each wanted number is in ascending ``keys``, any place where it is not, and whether it is."""
    if not len(keys):
        return np.zeros(wanted.shape, dtype=np.int64), np.zeros(wanted.shape, dtype=bool)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the different numbers of a one-dimensional array, ascending.

    What ``np.unique`` gives; of millions of numbers NumPy 2.3 and later puts them into a hash table first, which
    takes twenty times as long (4 million: 5.3 s against 0.27 s).
    """
    ordered: np.ndarray = np.sort(values)
    found: np.ndarray = ordered[begins(ordered)]
    return found
