"""Judgements: how relevant people found captions to images, read from files."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import DataError
from diptych.core.reading import read_lines
from diptych.core.registry import Registry
from diptych.data.extended_positives import HIGHEST_RATING, read_ratings
from diptych.data.lines import DelimitedTable
from diptych.data.rows_by_id import (
    Format,
    RowsById,
    caption_name,
    declared,
    format_and_path,
    image_name,
    in_none,
    line_of,
    mean_per_pair,
)


@dataclass(frozen=True, eq=False)
class Judged:
    what: str  # the format in a few words, for protocols
    pairs: list[tuple[str, str]]  # (image, caption) ids of each judged pair, in the file's order
    ratings: list[float]  # one per pair, the more the better; the mean where several people rated
    lowest: float  # the rating of a pair that has nothing to do with each other, where the scale begins
    highest: float  # where it ends


JUDGEMENTS: Registry[Format] = Registry("format of judgements", "diptych.data.judgements")


@declared(
    JUDGEMENTS,
    "cxc",
    "Crisscrossed Captions: sits_{val,test}.csv or their folder, ratings from 0 to 5",
    "Parekh et al., EACL 2021",
)
def read_cxc_judgements(path: Path | str) -> Judged:
    ratings = list(read_ratings(path))
    pairs = [(image, caption) for caption, image, _ in ratings]
    return Judged("cxc, mean rating", pairs, [score for *_, score in ratings], 0.0, HIGHEST_RATING)


# Flickr8k: lines of image, caption (``PICTURE#NUMBER``, numbers from 0) and three numbers, separated by tabs.
#
# Source: Hodosh, Young and Hockenmaier, Framing image description as a ranking task, JAIR 2013, section 4.


def _flickr8k(path: Path, name: str, columns: str, rate: Callable[[list[str]], float]) -> tuple[Any, Any]:
    """Return the pairs and ratings of a file, or of the one of that name in a folder, gzipped or not."""
    if path.is_dir():
        found = next((file for file in (path / name, path / f"{name}.gz") if file.is_file()), None)
        if found is None:
            raise DataError(f"no {name} in {path}", "give the file itself, or the folder it was unpacked to")
        path = found
    pairs, ratings = [], []
    for number, line in read_lines(path, error=DataError):
        if line.strip():
            image, caption, *votes = [*line.split("\t"), "", ""]
            try:
                ratings.append(rate(votes[:-2] if image and caption else []))
            except ValueError:
                what = f"{path}, line {number}: not {columns}, separated by tabs: {line[:80]!r}"
                raise DataError(what, f"give {name}") from None
            pairs.append((image, caption))
    if not pairs:
        raise DataError(f"{path} is empty", f"it should have lines of {columns}")
    return pairs, ratings


@declared(
    JUDGEMENTS,
    "flickr8k-expert",
    "ExpertAnnotations.txt of Flickr8k: three ratings from 1 to 4 per pair",
    "Hodosh, Young and Hockenmaier, JAIR 2013",
)
def read_flickr8k_expert(path: Path | str) -> Judged:
    """Read ``ExpertAnnotations.txt``, gzipped or not, or its folder: ratings from 1 (not at all) to 4 (no errors)."""

    def mean(votes: list[str]) -> float:
        first, second, third = map(int, votes)
        if min(first, second, third) < 1 or max(first, second, third) > 4:
            raise ValueError
        return (first + second + third) / 3

    columns = "image, caption and three ratings from 1 to 4"
    pairs, ratings = _flickr8k(Path(path), "ExpertAnnotations.txt", columns, mean)
    return Judged("flickr8k experts, mean of three ratings", pairs, ratings, 1, 4)


@declared(
    JUDGEMENTS,
    "flickr8k-crowd",
    "CrowdFlowerAnnotations.txt of Flickr8k: how many people found that a caption describes an image",
    "Hodosh, Young and Hockenmaier, JAIR 2013",
)
def read_flickr8k_crowd(path: Path | str) -> Judged:
    def share(votes: list[str]) -> float:
        share, yes, no = float(votes[0]) if votes else -1.0, *map(int, votes[1:])
        if not 0 <= share <= 1 or min(yes, no) < 0 or yes + no == 0:
            raise ValueError
        return share

    columns = "image, caption, share of yes, number of yes and of no"
    pairs, ratings = _flickr8k(Path(path), "CrowdFlowerAnnotations.txt", columns, share)
    return Judged("flickr8k crowd, share of yes", pairs, ratings, 0.0, 1.0)


@declared(
    JUDGEMENTS, "csv", "a CSV file of one's own with the columns image, caption and rating", citation=""
)
def read_judgement_table(path: Path | str) -> Judged:
    """Read a CSV file, gzipped or not; further columns are passed over.

    Its scale begins at 0, or at the lowest rating where that is below 0, and ends at the highest.
    """
    table, pairs, ratings = DelimitedTable(Path(path), delimiter="comma"), [], []
    places = [table.place(name, [name], name, "the first line") for name in ("image", "caption", "rating")]
    for line, fields in table.rows():
        image, caption, rating = ([*fields, "", "", ""][place] for place in places)
        try:
            value = float(rating) if image and caption else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DataError(f"{path}, line {line}: no image, caption and rating: {', '.join(fields)}")
        pairs.append((image, caption))
        ratings.append(value)
    if not pairs:
        raise DataError(f"{path} has no judgement", "a line is image,caption,rating")
    return Judged(f"judgements of {Path(path).name}", pairs, ratings, min([0.0, *ratings]), max(ratings))


_COUNTED = re.compile(r"(?P<image>.+)#(?P<number>[0-9]+)")
_ALL = "PICTURE#NUMBER says nothing where captions were drawn: evaluate with all captions"


@dataclass(frozen=True, eq=False)
class MatchedJudgements:
    """Judgements of a collection, by its rows; no pair twice."""

    what: str  # the format in a few words
    images: np.ndarray  # (n,) image rows
    captions: np.ndarray  # (n,) caption rows
    ratings: np.ndarray  # (n,) float64; of a pair that the file has more than once, their mean
    lowest: float  # where the scale begins
    highest: float  # where it ends
    missing: dict[str, int]  # images, captions and pairs that the collection does not hold
    repeated: int = 0  # how many of the file's pairs were there before
    by_place: int = 0  # how many of its captions were found as the first, second, … of their image

    def line(self) -> str:
        parts = [f"{len(self.ratings):,} pairs"]
        if self.repeated:
            parts.append(f"{self.repeated:,} more were repetitions, averaged")
        if self.by_place:
            parts.append(f"{self.by_place:,} captions by their place: PICTURE#0 is the first of an image")
        return line_of(self.what, parts, self.missing)


class _Captions:
    """Rows of captions by id, or by their image's name and number.

    ``PICTURE#0`` is the caption of such an id, whatever folder and suffix its image's name has; else, where
    the captions of each image begin with its first one (``in_order``), the first of that image.
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
    """Return what a file says of one collection; ``caption_image`` is (n_captions,) the image of each caption."""
    images = RowsById(image_ids, image_name)
    captions = _Captions(caption_ids, images, caption_image, in_order)
    image_row = {name: images.of(name) for name, _ in judged.pairs}
    caption_row = {name: captions.of(name) for _, name in judged.pairs}
    rows = np.array(
        [(image_row[image], caption_row[caption]) for image, caption in judged.pairs], dtype=np.int64
    ).reshape(-1, 2)
    found = (rows >= 0).all(axis=1)
    if not found.any():
        fix = "give the judgements of this very data set and split" if in_order else _ALL
        raise in_none(judged.what, judged.pairs, (image_ids, caption_ids), fix)
    pairs, ratings = mean_per_pair(rows, judged.ratings)
    return MatchedJudgements(
        what=judged.what,
        images=pairs[:, 0],
        captions=pairs[:, 1],
        ratings=ratings,
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
    reader, path = format_and_path(source, JUDGEMENTS, "judgements", "flickr8k-expert:ExpertAnnotations.txt")
    if not path.exists():
        raise DataError(f"{path} does not exist", f"check the path given with --judgements {reader.name}:…")
    found: Judged = reader.read(path)
    return found
