"""Crisscrossed Captions (CxC): people's ratings of COCO's image–caption, caption and image pairs.

``sits_{val,test}.csv`` rate captions against images from 0 to 5: ``caption,image,agg_score,
sampling_method``. A pair is positive when its rating is at least 3; the original pairs were rated too,
and of the test split's 25,000 all but 29 reach it. So CxC's image–text retrieval asks 5,000 images and
24,972 captions with 35,585 pairs. ``sts`` (caption–caption, 3) and ``sis`` (image–image, 2.5) rate
pairs within a modality; :func:`read_ratings` reads them all.

Source: Parekh, Baldridge, Cer, Waters and Yang, Crisscrossed Captions, EACL 2021, section 3.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import open_text
from diptych.data.extended_positives.declaration import EXTENDED_POSITIVES, Listed, PositivesReader

THRESHOLDS = {"sits": 3.0, "sts": 3.0, "sis": 2.5}
"""The least rating of a positive pair, per task."""

_HEADERS = {
    "caption,image,agg_score": "sits",
    "caption1,caption2,agg_score": "sts",
    "image1,image2,agg_score": "sis",
}
_HIGHEST = 5.0


@dataclass(frozen=True, eq=False)
class Ratings:
    """One file of ratings.

    Attributes:
        task: ``"sits"`` (caption, image), ``"sts"`` (captions) or ``"sis"`` (images).
        pairs: both ids of each pair, in the file's order and words.
        scores: the mean rating of each, from 0 to 5.
    """

    task: str
    pairs: list[tuple[str, str]]
    scores: list[float]


def read_ratings(path: Path | str) -> Ratings:
    """Read one ``{sits,sts,sis}_{val,test}.csv`` of CxC, gzipped or not."""
    path = Path(path)
    fix = "give CxC's data folder or its sits_test.csv"
    with open_text(path, newline="", error=DataError, fix=fix) as handle:
        lines = csv.reader(handle)
        header = next(lines, [])
        task = _HEADERS.get(",".join(header[:3]))
        if task is None:
            raise DataError(
                f"{path} is no CxC file of aggregated ratings: its columns are {', '.join(header) or 'none'}",
                "give {sits,sts,sis}_{val,test}.csv, not the raw ratings",
            )
        pairs, scores = [], []
        for fields in lines:
            try:
                left, right, score = fields[0], fields[1], float(fields[2])
            except (IndexError, ValueError):
                score = -1.0
            if not 0 <= score <= _HIGHEST:
                raise DataError(f"{path}, line {lines.line_num}: no pair with a rating from 0 to 5")
            pairs.append((left, right))
            scores.append(score)
    return Ratings(task, pairs, scores)


def sits_files(path: Path) -> list[Path]:
    """The files of image–caption ratings: the one given, or all of a folder."""
    if path.is_file():
        return [path]
    found = sorted(file for file in path.glob("sits_*.csv*") if "_raw" not in file.name)
    if not found:
        raise DataError(f"no sits_*.csv in {path}", "give CxC's data folder or its sits_test.csv")
    return found


def read_cxc(path: Path | str, threshold: float = THRESHOLDS["sits"]) -> Listed:
    """Read image–caption positives from ``sits_*.csv``: one file, or all of a folder."""
    if not isinstance(threshold, int | float) or not 0 < threshold <= _HIGHEST:
        raise UsageError(
            f"CxC's threshold is {threshold!r}, it must lie above 0 and not above 5", "CxC takes 3"
        )
    ratings = [(file, read_ratings(file)) for file in sits_files(Path(path))]
    for file, given in ratings:
        if given.task != "sits":
            raise DataError(
                f"{file} rates pairs within one modality ({given.task})", "give sits_test.csv or its folder"
            )
    judged = frozenset((image, caption) for _, given in ratings for caption, image in given.pairs)
    positive = frozenset(
        (image, caption)
        for _, given in ratings
        for (caption, image), score in zip(given.pairs, given.scores, strict=True)
        if score >= threshold
    )
    return Listed(
        what=f"cxc, rating ≥ {threshold:g}",
        i2t=positive,
        t2i=positive,
        images=frozenset(image for image, _ in judged),
        captions=frozenset(caption for _, caption in judged),
        judged=judged,
        grades={
            (image, caption): score
            for _, given in ratings
            for (caption, image), score in zip(given.pairs, given.scores, strict=True)
        },
    )


EXTENDED_POSITIVES.add(
    PositivesReader(
        "cxc",
        "Crisscrossed Captions: people's ratings of COCO pairs, sits_{val,test}.csv or their folder",
        "Parekh et al., EACL 2021",
        read_cxc,
        {"threshold": "the least rating of a positive pair (default: 3, as CxC)"},
    )
)
