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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.reading import open_text, read_json
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


_SHAPE = "expected {query id: [ids of what is relevant to it]}"

Lists = Mapping[str, frozenset[str]]


def read_document(path: Path | str) -> Any:
    """A JSON file's content."""
    try:
        return read_json(path)
    except StorageError as error:
        raise DataError(error.message, "check the path given with --positives") from None


def as_lists(document: Any, where: str) -> Lists:
    """Check ``{id: [ids]}``; whole numbers are ids too."""
    if not isinstance(document, dict):
        raise DataError(f"{where} is no JSON object", _SHAPE)
    for query, relevant in document.items():
        if not isinstance(relevant, list) or not all(
            isinstance(one, str | int) and not isinstance(one, bool) for one in relevant
        ):
            raise DataError(f"{where}: what belongs to {query!r} is no list of ids", _SHAPE)
    return {query: frozenset(str(one) for one in relevant) for query, relevant in document.items()}


def read_lists(path: Path | str) -> Lists:
    """Read ``{id: [ids]}``."""
    return as_lists(read_document(path), str(path))


def listed_of(what: str, i2t: Lists | None, t2i: Lists | None) -> Listed:
    """Both directions of the lists; a direction that is not given has the other's pairs."""
    from_images = {(image, text) for image, texts in (i2t or {}).items() for text in texts}
    from_texts = {(image, text) for text, images in (t2i or {}).items() for image in images}
    pairs_i2t = from_images if i2t is not None else from_texts
    pairs_t2i = from_texts if t2i is not None else from_images
    return Listed(
        what=what,
        i2t=frozenset(pairs_i2t),
        t2i=frozenset(pairs_t2i),
        images=frozenset(i2t if i2t is not None else (image for image, _ in pairs_i2t)),
        captions=frozenset(t2i if t2i is not None else (text for _, text in pairs_t2i)),
    )


# ECCV Caption: machine-and-human-verified positives of COCO's test split, as its package ships them.
#
# ``eccv_image_to_caption.json`` and ``eccv_caption_to_image.json``: ``{id: [ids]}`` with COCO's image
# ids and sentence ids, for 1,261 images and 1,332 captions that ask; the galleries are the whole split.
# Its measures are R@1, R-precision and mAP@R. The same folder holds ``original_*`` and ``cxc_*``.
#
# Source: Chun, Kim, Park, Chang and Oh, ECCV Caption, ECCV 2022 (package ``eccv_caption``, ``data/``).


_I2T, _T2I = "image_to_caption", "caption_to_image"


def read_eccv(path: Path | str, variant: str = "eccv") -> Listed:
    """Read the two JSON files of one variant."""
    folder = Path(path)
    if folder.is_file():
        variant = folder.name.split(f"_{_I2T}")[0].split(f"_{_T2I}")[0]
        folder = folder.parent
    files = [folder / f"{variant}_{name}.json" for name in (_I2T, _T2I)]
    for file in files:
        if not file.is_file():
            raise DataError(f"{file} does not exist", "give the data folder of the package eccv_caption")
    i2t, t2i = (read_lists(file) for file in files)
    return listed_of(f"{variant} of ECCV Caption", i2t, t2i)


EXTENDED_POSITIVES.add(
    PositivesReader(
        "eccv",
        "ECCV Caption: verified COCO positives, the data folder of the package eccv_caption",
        "Chun et al., ECCV 2022",
        read_eccv,
        {"variant": "which of the folder's lists: eccv, cxc, original or pm (default: eccv)"},
    )
)


_DIRECTIONS = ("i2t", "t2i")


def read_positive_pairs(path: Path | str) -> Listed:
    """Read a JSON file of relevant pairs.

    With one direction alone, the other has the same pairs. What is listed for a query is all that is
    relevant to it, and the listed queries are the ones that ask; the option ``originals`` of
    :func:`~diptych.data.extended_positives.match.read_extended_positives` adds the collection's own.
    """
    document = read_document(path)
    if not isinstance(document, dict) or not document or not set(document) <= set(_DIRECTIONS):
        keys = ", ".join(map(str, document)) if isinstance(document, dict) else type(document).__name__
        raise DataError(
            f"{path} has {keys or 'no key'} where 'i2t', 't2i' or both are expected",
            'write {"i2t": {image id: [caption ids]}, "t2i": {caption id: [image ids]}}',
        )
    lists = {name: as_lists(document[name], f"{path}, {name}") for name in _DIRECTIONS if name in document}
    return listed_of(f"pairs of {Path(path).name}", lists.get("i2t"), lists.get("t2i"))


EXTENDED_POSITIVES.add(
    PositivesReader(
        "pairs",
        'a JSON file of one\'s own: {"i2t": {image id: [caption ids]}, "t2i": {caption id: [image ids]}}',
        "",
        read_positive_pairs,
        {},
    )
)
