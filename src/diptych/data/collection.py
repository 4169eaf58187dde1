"""Collection: images, captions, and which caption describes which image.

Everything that reads a dataset returns one; nothing in it loads a pixel until it is needed. Ids, captions,
splits and records are lists, or columns (:mod:`diptych.data.columns`) where there are too many to hold.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, ImageError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data.columns import Column, Labels, first_duplicate
from diptych.data.images import FolderSource, OverlaidPicture, OverlaySource
from diptych.data.regions import RegionSource

if TYPE_CHECKING:
    from PIL.Image import Image

_JPEGS = "*.[jJ][pP][gG]"
_BLOCK = 1 << 16

# What the images of a collection show.
Centric = Literal["scene", "object"]

# The split of images that their data names no split for.
WHOLE = "all"

# The splits that are assigned to them where one is used.
SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Shares:
    """The shares of train, val and test, assigned to images that no split is named for."""

    validation: float = 0.1
    test: float = 0.1
    # what is hashed of each image: those with equal names are in one split; None for the images' ids
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if min(self.validation, self.test) < 0 or self.validation + self.test > 1:
            raise UsageError(
                f"validation={self.validation} and test={self.test} are no shares of one collection",
                "give two numbers from 0 to 1 that add up to at most 1",
            )

    def split_of(self, name: str) -> str:
        """Return ``train``, ``val`` or ``test`` by a hash of ``name``: adding others never moves this one."""
        place = int(fingerprint("split", name)[:8], 16) / 16**8
        return "test" if place < self.test else "val" if place < self.test + self.validation else "train"


class ImageSource(Protocol):
    """The source of a collection's images: a folder of files, a table, a generator."""

    def read(self, row: int) -> Image:
        """Return the image of source row ``row``, upright, RGB.

        Raises:
            ImageError: it is missing or cannot be decoded; the message names it.
        """

    def content(self, row: int) -> str:
        """Return a fingerprint of the image's bytes."""


@dataclass(frozen=True, eq=False)
class Collection:
    """Images with their captions, splits and whatever else is known of them.

    Attributes:
        name: the dataset's name, as reports print it.
        image_ids: one unique id per image.
        captions: all captions, those of one image next to each other, in image order.
        caption_ids: one unique id per caption.
        caption_image: (n_captions,) int64, not decreasing; the row of each caption's image.
        splits: one split name per image; :data:`WHOLE` where the data names none.
        source: where images are read.
        source_rows: (n_images,) int64, each image's row in ``source``; -1 for an item that has no image, as
            some products have none.
        records: per image, what else is known (title, attributes, category path, facts; of products see
            :mod:`diptych.data.products`).
        caption_records: per caption, what else is known (the facts it states).
        notes: what the reader did that a reader of numbers should know, one line each.
        centric: what its images show: ``"scene"``, several objects and how they relate, or ``"object"``,
            one object described in detail (thesis ch. 2); None where it is not known.
        shares: how :meth:`divided` assigns the images of split ``all``; None: it does not.
        read_as: how it can be read again (``data``, ``split``, ``captions``), where it was read by name; a changed
            copy (:func:`dataclasses.replace`) has none.
    """

    name: str
    image_ids: Sequence[str]
    captions: Sequence[str]
    caption_ids: Sequence[str]
    caption_image: np.ndarray
    splits: Sequence[str]
    source: ImageSource
    source_rows: np.ndarray
    records: Sequence[Mapping[str, Any]] | None = None
    caption_records: Sequence[Mapping[str, Any]] | None = None
    notes: tuple[str, ...] = field(default=())
    centric: Centric | None = None
    shares: Shares | None = None
    read_as: Mapping[str, Any] | None = field(default=None, init=False)

    @classmethod
    def from_pairs(
        cls,
        images: Sequence[Path | str],
        captions: Sequence[str],
        folder: Path | str = ".",
        *,
        name: str = "pairs",
        **options: Any,
    ) -> Collection:
        """Return a collection of files below a folder and their captions; a file that comes again has several.

        Args:
            options: as of the reader ``pairs``, e.g. ``skip_bad_captions=True``.
        """
        from diptych.data.readers.pairs import read_pairs

        rows = zip(map(str, images), captions, strict=True)
        pairs = [{"image": image, "caption": text} for image, text in rows]
        return replace(read_pairs(pairs, folder, **options), name=name)

    def __post_init__(self) -> None:
        n_images, n_captions = len(self.image_ids), len(self.captions)
        for what, have, want in (
            ("splits", len(self.splits), n_images),
            ("source rows", len(self.source_rows), n_images),
            ("records", n_images if self.records is None else len(self.records), n_images),
            ("caption ids", len(self.caption_ids), n_captions),
            ("caption images", len(self.caption_image), n_captions),
            (
                "caption records",
                n_captions if self.caption_records is None else len(self.caption_records),
                n_captions,
            ),
        ):
            if have != want:
                raise DataError(f"{self.name}: {want} {what} expected, got {have}")
        if n_captions:
            images = self.caption_image
            if images[0] < 0 or images[-1] >= n_images or _decreases(images):
                raise DataError(
                    f"{self.name}: caption_image must not decrease and lie in [0, {n_images})",
                    "sort the captions by their image",
                )
        for what, ids in (("image", self.image_ids), ("caption", self.caption_ids)):
            whole = not isinstance(ids, Column) and len(set(ids)) == len(ids)
            if not whole and (twice := first_duplicate(ids)) is not None:
                raise DataError(f"{self.name}: {what} id {twice!r} occurs twice", "make ids unique")

    @property
    def n_images(self) -> int:
        return len(self.image_ids)

    @property
    def n_captions(self) -> int:
        return len(self.captions)

    @cached_property
    def caption_start(self) -> np.ndarray:
        """(n_images + 1,) int64: image i's captions are ``caption_start[i]:caption_start[i + 1]``."""
        counts = np.bincount(self.caption_image, minlength=self.n_images)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @cached_property
    def captions_per_image(self) -> np.ndarray:
        return np.diff(self.caption_start)

    def captions_of(self, image: int) -> list[str]:
        return list(self.captions[self.caption_start[image] : self.caption_start[image + 1]])

    def image(self, row: int) -> Image:
        """Return the image of row ``row``, upright, RGB.

        Raises:
            ImageError: it is missing or cannot be decoded, or there are only region features, or none; the
                message names it.
        """
        return self.source.read(self._place(row))

    def image_path(self, row: int) -> str:
        """Return the whole path of the file of image ``row``; empty where the image is no file."""
        path_of, place = getattr(self.source, "path", None), int(self.source_rows[row])
        return "" if path_of is None or place < 0 else os.path.abspath(path_of(place))

    @cached_property
    def pictured(self) -> np.ndarray:
        """(n_images,) booleans: whether an item has an image."""
        return self.source_rows >= 0

    def _place(self, row: int) -> int:
        place = int(self.source_rows[row])
        if place < 0:
            raise ImageError(f"{self.image_ids[row]} has no image", "leave it out, or fetch its image")
        return place

    @property
    def holds(self) -> Literal["pictures", "regions"]:
        """Return what :meth:`item` gives, and so what an encoder of this collection has to take."""
        return "regions" if isinstance(self.source, RegionSource) else "pictures"

    def item(self, row: int) -> Image | OverlaidPicture | np.ndarray:
        """Return what an encoder takes of image row ``row``: its (regions, d) float32 features where the
        collection has them, else its image, with an overlay where it has one.

        Raises:
            ImageError: it is missing or cannot be decoded; the message names it.
        """
        if isinstance(self.source, RegionSource):
            return self.source.regions(self._place(row))
        if isinstance(self.source, OverlaySource):
            overlay = self.source.overlay(self._place(row))
            return self.image(row) if overlay is None else OverlaidPicture(self.image(row), overlay)
        return self.image(row)

    def require_captions(self, what: str) -> None:
        """Raise a DataError where there are no captions, which ``what`` needs."""
        if not self.n_captions:
            raise DataError(
                f"{self.name} has {self.n_images:,} images and no captions, which {what} needs",
                "give a dataset with captions",
            )

    def images(self) -> Iterator[Image]:
        for row in range(self.n_images):
            yield self.image(row)

    @property
    def split_sizes(self) -> dict[str, int]:
        """Images per split, in the order of first appearance."""
        if isinstance(self.splits, Labels):
            return self.splits.sizes()
        sizes: dict[str, int] = {}
        for name in self.splits:
            sizes[name] = sizes.get(name, 0) + 1
        return sizes

    def divided(self) -> Collection:
        """Return it with train, val and test assigned, by a hash, to the images that no split is named for."""
        shares = self.shares
        if shares is None or WHOLE not in self.split_sizes:
            return self
        names = self.image_ids if shares.names is None else shares.names
        order = list(dict.fromkeys([*SPLITS, *self.split_sizes]))
        given = zip(self.splits, names, strict=True)
        assigned = (shares.split_of(key) if split == WHOLE else split for split, key in given)
        codes = np.fromiter(map(order.index, assigned), np.uint8, self.n_images)
        splits = Labels(order, codes)
        made = replace(self, splits=splits if isinstance(names, Column) else list(splits), shares=None)
        sizes = ", ".join(f"{name} {size:,}" for name, size in made.split_sizes.items())
        note = f"the data names no splits: {sizes} by a hash of names"
        return replace(made, notes=(*self.notes, note)).with_read_as(self.read_as)

    def split(self, name: str) -> Collection:
        """Return the images of split ``name`` with their captions.

        Where the data names no splits, train, val and test are assigned (:meth:`divided`).

        Raises:
            UnknownNameError: there is no such split; the message lists those there are.
        """
        if self.shares is not None and name in SPLITS and WHOLE in self.split_sizes:
            return self.divided().split(name)
        if isinstance(self.splits, Labels):
            rows = self.splits.rows_of(name)
        else:
            rows = np.flatnonzero(np.asarray(self.splits, dtype=object) == name)
        if not len(rows):
            raise UnknownNameError(f"split of {self.name}", name, self.split_sizes)
        return self if len(rows) == self.n_images else self.subset(rows)

    def part(self, name: str | None) -> tuple[Collection, str]:
        """Return a split or ``all``, and its name; without a name the split ``test`` where there is one."""
        name = name or ("test" if "test" in self.split_sizes else "all")
        return (self if name == "all" else self.split(name)), name

    def subset(self, rows: Sequence[int] | np.ndarray) -> Collection:
        """Return the images ``rows``, in that order, with all their captions."""
        rows = np.asarray(rows, dtype=np.int64)
        starts, counts = self.caption_start[rows], self.captions_per_image[rows]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._take(rows, np.repeat(starts, counts) + within, np.repeat(np.arange(len(rows)), counts))

    def first_captions(self, k: int = 1) -> Collection:
        """Return the same images with at most their first ``k`` captions each (a protocol choice)."""
        position = np.arange(self.n_captions) - self.caption_start[self.caption_image]
        keep = np.flatnonzero(position < k)
        first = "the first caption" if k == 1 else f"the first {k} captions"
        return self._keep(keep, f"{first} of each image")

    def random_captions(self, k: int = 1, *, seed: int) -> Collection:
        """Return the same images with at most ``k`` captions each, drawn without replacement (a protocol choice).

        An image's draw is a function of the seed, its id and the places of its captions, so it is the
        same in the whole collection, in a split and in any order. What is kept stays in order.
        """
        position = np.arange(self.n_captions) - self.caption_start[self.caption_image]
        draws = draw_uniform(seed, keys_of(self.image_ids)[self.caption_image], position)
        by_draw = np.lexsort((draws, self.caption_image))
        keep = np.sort(by_draw[position < k])  # the k smallest draws of each image, in the captions' order
        each = "1 caption" if k == 1 else f"{k} captions"
        return self._keep(keep, f"{each} of each image, drawn with seed {seed}")

    def _keep(self, captions: np.ndarray, note: str) -> Collection:
        made = self._take(np.arange(self.n_images), captions, self.caption_image[captions])
        return replace(made, notes=(*made.notes, note))

    def _take(self, images: np.ndarray, captions: np.ndarray, caption_image: np.ndarray) -> Collection:
        def pick(values: Sequence[Any] | None, rows: np.ndarray) -> Sequence[Any] | None:
            if isinstance(values, Column):
                return values.take(rows)
            return None if values is None else [values[row] for row in rows.tolist()]

        shares = self.shares
        if shares is not None and shares.names is not None:
            shares = replace(shares, names=pick(shares.names, images))
        return Collection(
            name=self.name,
            image_ids=pick(self.image_ids, images) or [],
            captions=pick(self.captions, captions) or [],
            caption_ids=pick(self.caption_ids, captions) or [],
            caption_image=caption_image.astype(np.int64),
            splits=pick(self.splits, images) or [],
            source=self.source,
            source_rows=self.source_rows[images],
            records=pick(self.records, images),
            caption_records=pick(self.caption_records, captions),
            notes=self.notes,
            centric=self.centric,
            shares=shares,
        )

    def with_read_as(self, read_as: Mapping[str, Any] | None) -> Collection:
        """Return the same collection, with how it can be read again."""
        same = replace(self)
        object.__setattr__(same, "read_as", read_as)
        return same

    def with_whole_folder(self) -> Collection | None:
        """Return it with all other ``.jpg`` files of its images' folders; None where not all images are files."""
        source = self.source
        if not isinstance(source, FolderSource) or not self.pictured.all():
            return None
        names = [source.names[row] for row in self.source_rows.tolist()]
        folders = {Path(name).parent for name in names}
        files = {folder / file.name for folder in folders for file in (source.root / folder).glob(_JPEGS)}
        others = sorted(map(str, files - {Path(name) for name in names}))
        return replace(
            self,
            image_ids=[*self.image_ids, *others],
            shares=None,
            splits=[*self.splits, *(["folder"] * len(others))],
            source=FolderSource(source.root, [*names, *others]),
            source_rows=np.arange(len(names) + len(others), dtype=np.int64),
            records=None if self.records is None else [*self.records, *({} for _ in others)],
            notes=(*self.notes, f"{len(others):,} more images of its folder are searched"),
        )

    @cached_property
    def text_fingerprint(self) -> str:
        """Fingerprint of ids, captions and which describes which; images' bytes are not read."""
        whose = map(int, self.caption_image)
        return fingerprint(*map(iter, (self.image_ids, self.captions, self.caption_ids, whose)))

    def __repr__(self) -> str:
        return f"<Collection {self.describe()}>"

    def describe(self) -> str:
        counts = self.captions_per_image
        per_image = (
            "no captions"
            if not self.n_captions
            else f"{counts.min()} captions per image"
            if counts.min() == counts.max()
            else f"{counts.min()}–{counts.max()} captions per image"
        )
        splits = ", ".join(f"{name} {size:,}" for name, size in self.split_sizes.items())
        images = "images" if self.holds == "pictures" else "images as region features"
        centric = f"; {self.centric}-centric" if self.centric else ""
        bare = self.n_images - int(np.count_nonzero(self.pictured))
        without = f" ({bare:,} of them without an image)" if bare else ""
        return (
            f"{self.name}: {self.n_images:,} {images}{without}, {self.n_captions:,} captions ({per_image}); "
            f"{splits}{centric}"
        )


def _decreases(values: np.ndarray) -> bool:
    """Return whether a value is smaller than the one before; looked at in blocks, for there may be many."""
    starts = range(0, len(values) - 1, _BLOCK)
    return any(bool(np.any(np.diff(values[start : start + _BLOCK + 1]) < 0)) for start in starts)
