"""From a file's ids to a collection's rows: who is found and who is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.data.judgements.declaration import JUDGEMENTS, Judged
from diptych.data.rows_by_id import RowsById, caption_name, image_name

_COUNTED = re.compile(r"(?P<image>.+)#(?P<number>[0-9]+)")
_ALL = "PICTURE#NUMBER says nothing where captions were drawn: evaluate with all captions"


@dataclass(frozen=True, eq=False)
class MatchedJudgements:
    """Judgements of a collection, by its rows; no pair twice.

    Attributes:
        what: the format in a few words.
        images: (n,) image rows.
        captions: (n,) caption rows.
        ratings: (n,) float64; of a pair that the file has more than once, their mean.
        lowest: where the scale begins.
        highest: where it ends.
        missing: what the file names and the collection does not hold: images, captions, and pairs.
        repeated: how many of the file's pairs were there before.
        by_place: how many of its captions were found as the first, second, … of their picture.
    """

    what: str
    images: np.ndarray
    captions: np.ndarray
    ratings: np.ndarray
    lowest: float
    highest: float
    missing: dict[str, int]
    repeated: int = 0
    by_place: int = 0

    def line(self) -> str:
        """What a protocol says: how many pairs, and how many were not found."""
        parts = [f"{len(self.ratings):,} pairs"]
        if self.repeated:
            parts.append(f"{self.repeated:,} more were repetitions, averaged")
        if self.by_place:
            parts.append(f"{self.by_place:,} captions by their place: PICTURE#0 is the first of a picture")
        lost = [f"{count:,} {what}" for what, count in self.missing.items() if count]
        if lost:
            parts.append(f"not in the collection: {', '.join(lost)}")
        return f"{self.what} ({'; '.join(parts)})"


class _Captions:
    """Rows of captions by id, or by their picture's name and number.

    ``PICTURE#0`` is the caption of such an id, whatever folder and suffix its picture's name has; else, where
    the captions of each picture begin with its first one (``in_order``), the first of that picture.
    """

    def __init__(
        self, ids: Sequence[str], images: RowsById, caption_image: np.ndarray, in_order: bool
    ) -> None:
        self._by_id, self._images, self._in_order = RowsById(ids, caption_name), images, in_order
        self._of: dict[int, list[int]] = {}
        self._numbered: dict[int, dict[int, int]] = {}
        for caption, (name, image) in enumerate(zip(ids, np.asarray(caption_image).tolist(), strict=True)):
            self._of.setdefault(image, []).append(caption)
            counted = _COUNTED.fullmatch(name)
            if counted is not None and images.of(counted["image"]) == image:
                self._numbered.setdefault(image, {})[int(counted["number"])] = caption
        self.by_place: set[str] = set()

    def of(self, name: str) -> int:
        """The row, -1 for none."""
        row = self._by_id.of(name)
        counted = _COUNTED.fullmatch(name)
        if row >= 0 or counted is None:
            return row
        image, number = self._images.of(counted["image"]), int(counted["number"])
        if image in self._numbered:
            return self._numbered[image].get(number, -1)
        captions = self._of.get(image, []) if self._in_order else []
        if number >= len(captions):
            return -1
        self.by_place.add(name)
        return captions[number]


def match_judgements(
    judged: Judged,
    image_ids: Sequence[str],
    caption_ids: Sequence[str],
    caption_image: np.ndarray,
    *,
    in_order: bool = True,
) -> MatchedJudgements:
    """What a file says of one collection.

    Args:
        caption_image: (n_captions,) the picture of each caption.
    """
    images = RowsById(image_ids, image_name)
    captions = _Captions(caption_ids, images, caption_image, in_order)
    image_row = {name: images.of(name) for name, _ in judged.pairs}
    caption_row = {name: captions.of(name) for _, name in judged.pairs}
    rows = np.array(
        [(image_row[image], caption_row[caption]) for image, caption in judged.pairs], dtype=np.int64
    ).reshape(-1, 2)
    found = (rows >= 0).all(axis=1)
    if not found.any():
        example = judged.pairs[0] if judged.pairs else ("none", "none")
        theirs = f"{next(iter(image_ids), 'none')!r} and {next(iter(caption_ids), 'none')!r}"
        raise DataError(
            f"{judged.what}: none of its {len(judged.pairs):,} pairs is in the collection of "
            f"{len(image_ids):,} images and {len(caption_ids):,} captions: it names {example[0]!r} and "
            f"{example[1]!r}, the collection {theirs}",
            "give the judgements of this very data set and split" if in_order else _ALL,
        )
    pairs, which = np.unique(rows[found], axis=0, return_inverse=True)
    ratings = np.asarray(judged.ratings, dtype=np.float64)[found]
    counts = np.bincount(which.reshape(-1))
    return MatchedJudgements(
        what=judged.what,
        images=pairs[:, 0],
        captions=pairs[:, 1],
        ratings=np.bincount(which.reshape(-1), weights=ratings) / counts,
        lowest=judged.lowest,
        highest=judged.highest,
        missing={
            "images": sum(row < 0 for row in image_row.values()),
            "captions": sum(row < 0 for row in caption_row.values()),
            "pairs": int(np.sum(~found)),
        },
        repeated=int(found.sum()) - len(pairs),
        by_place=len(captions.by_place),
    )


def read_judgements(source: str) -> Judged:
    """Read how relevant people found captions to pictures."""
    name, colon, path = source.partition(":")
    if not colon or not path:
        known = ", ".join(JUDGEMENTS.names())
        raise UsageError(
            f"judgements {source!r} are not FORMAT:PATH",
            f"for example flickr8k-expert:ExpertAnnotations.txt; formats: {known}",
        )
    reader = JUDGEMENTS.get(name)
    if not Path(path).exists():
        raise DataError(f"{path} does not exist", f"check the path given with --judgements {name}:…")
    return reader.read(Path(path))
