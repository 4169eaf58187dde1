"""Extended positives: which captions describe which images beyond a collection's own pairs, read from files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_json
from diptych.core.registry import Registry
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

# The ids of an image and of a caption.
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Listed:
    what: str  # the format and its options in a few words, for the protocol
    i2t: frozenset[Pair]  # pairs whose caption is relevant to the image as a query
    t2i: frozenset[Pair]  # pairs whose image is relevant to the caption as a query
    images: frozenset[str]  # images that are queries
    captions: frozenset[str]  # captions that are queries
    # all judged pairs, relevant or not; a collection's own pair that was not judged stays relevant.
    # None: every pair of an evaluated query was judged
    judged: frozenset[Pair] | None = None
    # graded relevance of the rated pairs, 0 or more, relevant or not; None where the format has no grades
    grades: Mapping[Pair, float] | None = None


EXTENDED_POSITIVES: Registry[Format] = Registry(
    "format of extended positives", "diptych.data.extended_positives"
)


# Crisscrossed Captions (CxC): people's ratings of COCO's image–caption pairs.
#
# ``sits_{val,test}.csv`` rate captions against images from 0 to 5: ``caption,image,agg_score,sampling_method``. A pair
# is positive when its rating is at least 3; the original pairs were rated too, and of the test split's 25,000 all but
# 29 reach it. So CxC's image–text retrieval has 5,000 images and 24,972 captions as queries, and 35,585 pairs. ``sts``
# (caption–caption) and ``sis`` (image–image) rate pairs within a modality.
#
# Source: Parekh, Baldridge, Cer, Waters and Yang, Crisscrossed Captions, EACL 2021, section 3.

_THRESHOLD = 3.0
_COLUMNS = "caption,image,agg_score"
HIGHEST_RATING = 5.0


def read_ratings(path: Path | str) -> Iterator[tuple[str, str, float]]:
    """Yield caption, image and mean rating from 0 to 5 of each pair of ``sits_*.csv``, or of all in a folder."""
    path, fix = Path(path), "give CxC's data folder or its sits_test.csv"
    found = sorted(file for file in path.glob("sits_*.csv*") if "_raw" not in file.name)
    if not found and not path.is_file():
        raise DataError(f"no sits_*.csv in {path}", fix)
    for file in [path] if path.is_file() else found:
        table = DelimitedTable(file, delimiter="comma")
        header = ",".join(table.columns[:3])
        if header != _COLUMNS:
            raise DataError(f"{file} is no CxC file of sits ratings: its columns are {header}", fix)
        for line, fields in table.rows():
            try:
                left, right, score = fields[0], fields[1], float(fields[2])
            except (IndexError, ValueError):
                score = -1.0
            if not 0 <= score <= HIGHEST_RATING:
                raise DataError(f"{file}, line {line}: no pair with a rating from 0 to 5")
            yield left, right, score


@declared(
    EXTENDED_POSITIVES,
    "cxc",
    "Crisscrossed Captions: people's ratings of COCO pairs, sits_{val,test}.csv or their folder",
    "Parekh et al., EACL 2021",
    threshold="the least rating of a positive pair (default: 3, as CxC)",
)
def read_cxc(path: Path | str, threshold: float = _THRESHOLD) -> Listed:
    if not isinstance(threshold, int | float) or not 0 < threshold <= HIGHEST_RATING:
        raise UsageError(
            f"CxC's threshold is {threshold!r}, it must lie above 0 and not above 5", "CxC takes 3"
        )
    ratings = [(image, caption, score) for caption, image, score in read_ratings(path)]
    judged = frozenset((image, caption) for image, caption, _ in ratings)
    positive = frozenset((image, caption) for image, caption, score in ratings if score >= threshold)
    return Listed(
        what=f"cxc, rating ≥ {threshold:g}",
        i2t=positive,
        t2i=positive,
        images=frozenset(image for image, _ in judged),
        captions=frozenset(caption for _, caption in judged),
        judged=judged,
        grades={(image, caption): score for image, caption, score in ratings},
    )


Lists = Mapping[str, frozenset[str]]


def as_lists(document: Any, where: str) -> Lists:
    """Check ``{id: [ids]}``; whole numbers are ids too."""
    shape = "expected {query id: [ids of what is relevant to it]}"
    if not isinstance(document, dict):
        raise DataError(f"{where} is no JSON object", shape)
    for query, relevant in document.items():
        if not isinstance(relevant, list) or any(type(one) not in (str, int) for one in relevant):
            raise DataError(f"{where}: what belongs to {query!r} is no list of ids", shape)
    return {query: frozenset(map(str, relevant)) for query, relevant in document.items()}


def listed_of(what: str, i2t: Lists | None, t2i: Lists | None) -> Listed:
    """Return both directions of the lists; a direction that is not given has the other's pairs."""
    images = frozenset((image, text) for image, texts in (i2t or {}).items() for text in texts)
    texts = frozenset((image, text) for text, images in (t2i or {}).items() for image in images)
    return Listed(
        what,
        images if i2t is not None else texts,
        texts if t2i is not None else images,
        frozenset(i2t if i2t is not None else (image for image, _ in texts)),
        frozenset(t2i if t2i is not None else (text for _, text in images)),
    )


# ECCV Caption: machine-and-human-verified positives of COCO's test split, as its package ships them.
#
# ``eccv_image_to_caption.json`` and ``eccv_caption_to_image.json``: ``{id: [ids]}`` with COCO's image
# ids and sentence ids, for 1,261 images and 1,332 captions as queries; the galleries are the whole split.
# Its measures are R@1, R-precision and mAP@R. The same folder holds ``original_*`` and ``cxc_*``.
#
# Source: Chun, Kim, Park, Chang and Oh, ECCV Caption, ECCV 2022 (package ``eccv_caption``, ``data/``).


_I2T, _T2I = "image_to_caption", "caption_to_image"


@declared(
    EXTENDED_POSITIVES,
    "eccv",
    "ECCV Caption: verified COCO positives, the data folder of the package eccv_caption",
    "Chun et al., ECCV 2022",
    variant="which of the folder's lists: eccv, cxc, original or pm (default: eccv)",
)
def read_eccv(path: Path | str, variant: str = "eccv") -> Listed:
    folder = Path(path)
    if folder.is_file():
        variant = folder.name.split(f"_{_I2T}")[0].split(f"_{_T2I}")[0]
        folder = folder.parent
    files = [folder / f"{variant}_{name}.json" for name in (_I2T, _T2I)]
    for file in files:
        if not file.is_file():
            raise DataError(f"{file} does not exist", "give the data folder of the package eccv_caption")
    i2t, t2i = (as_lists(read_json(file, error=DataError), str(file)) for file in files)
    return listed_of(f"{variant} of ECCV Caption", i2t, t2i)


_DIRECTIONS = ("i2t", "t2i")


@declared(
    EXTENDED_POSITIVES,
    "pairs",
    'a JSON file of one\'s own: {"i2t": {image id: [caption ids]}, "t2i": {caption id: [image ids]}}',
    citation="",
)
def read_positive_pairs(path: Path | str) -> Listed:
    """Read a JSON file of relevant pairs.

    Where one direction is given, the other has the same pairs. What is listed for a query is all that is
    relevant to it, and only the listed queries are evaluated; the option ``originals`` of
    :func:`read_extended_positives` adds the collection's own.
    """
    document = read_json(path, error=DataError, fix="check the path given with --positives")
    if not isinstance(document, dict) or not document or not set(document) <= set(_DIRECTIONS):
        raise DataError(
            f"{path} has {str(document)[:40]} where 'i2t', 't2i' or both are expected",
            'write {"i2t": {image id: [caption ids]}, "t2i": {caption id: [image ids]}}',
        )
    lists = {name: as_lists(document[name], f"{path}, {name}") for name in document}
    return listed_of(f"pairs of {Path(path).name}", lists.get("i2t"), lists.get("t2i"))


@dataclass(frozen=True, eq=False)
class ExtendedPositives:
    """Relevant pairs of a collection, by its rows; the two directions need not agree."""

    what: str  # format and options, in a few words
    i2t: tuple[
        np.ndarray, np.ndarray
    ]  # image and caption rows, (n_pairs,) int64: captions relevant to images
    t2i: tuple[np.ndarray, np.ndarray]  # image and caption rows: images relevant to captions
    evaluated: dict[str, np.ndarray]  # per direction, the rows of the evaluated queries; empty when all are
    before: dict[str, int]  # per direction, pairs of the collection's own among the evaluated queries
    added: dict[str, int]  # per direction, pairs that the collection does not have
    removed: dict[str, int]  # per direction, the collection's own pairs that are no longer relevant
    missing: dict[str, int]  # images, captions and pairs that the collection does not hold
    silent: dict[str, int]  # per direction, queries that are not evaluated: no positive is left to them
    # image rows, caption rows and grades, (n_graded,) each; None where the format has none
    grades: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def line(self) -> str:
        """Return what the protocol says: what was added to how many, what was taken away, what was not found."""
        changes = {
            name: f"{self.before[name]:,} + {self.added[name]:,} − {self.removed[name]:,}"
            for name in _DIRECTIONS
        }
        same = changes["i2t"] == changes["t2i"]
        shown = changes["i2t"] if same else ", ".join(map(" ".join, changes.items()))
        silent = [f"{count:,} {name} queries lost all" for name, count in self.silent.items() if count]
        return line_of(self.what, [f"{shown} pairs", *silent], self.missing)


def match(
    listed: Listed,
    image_ids: Sequence[str],
    caption_ids: Sequence[str],
    caption_image: np.ndarray,
    *,
    originals: bool = False,
) -> ExtendedPositives:
    """Return what a file says of one collection; ``caption_image`` is (n_captions,) the image of each caption."""
    images, captions = RowsById(image_ids, image_name), RowsById(caption_ids, caption_name)
    n_captions = max(len(caption_ids), 1)

    def codes(pairs: Iterable[Pair]) -> np.ndarray:
        rows = ((images.of(image), captions.of(caption)) for image, caption in pairs)
        return np.array(sorted({i * n_captions + c for i, c in rows if i >= 0 and c >= 0}), dtype=np.int64)

    relevant = {"i2t": codes(listed.i2t), "t2i": codes(listed.t2i)}
    named = listed.i2t | listed.t2i
    if not len(relevant["i2t"]) and not len(relevant["t2i"]):
        fix = "give the file of this very split"
        raise in_none(listed.what, sorted(named), (image_ids, caption_ids), fix)
    own = np.asarray(caption_image, dtype=np.int64) * n_captions + np.arange(len(caption_ids))
    judged = None if listed.judged is None else codes(listed.judged)
    evaluated: dict[str, np.ndarray] = {}
    silent, before, added, removed = (dict.fromkeys(_DIRECTIONS, 0) for _ in range(4))
    for side, (name, queries, rows) in enumerate(
        (("i2t", listed.images, images), ("t2i", listed.captions, captions))
    ):
        counted = np.arange(len((image_ids, caption_ids)[side]))  # queries whose pairs are counted
        if not originals:
            known = np.array(sorted({rows.of(one) for one in queries} - {-1}), dtype=np.int64)
            # Queries that are not evaluated keep their own pairs: no number depends on them.
            seen = (
                np.isin(np.divmod(own, n_captions)[side], known) if judged is None else np.isin(own, judged)
            )
            relevant[name] = np.union1d(relevant[name], own[~seen])
            answered = np.isin(known, np.divmod(relevant[name], n_captions)[side])
            evaluated[name] = counted = known[answered]
            silent[name] = int(np.sum(~answered))
        else:
            relevant[name] = np.union1d(relevant[name], own)
        for counts, of in (
            (before, own),
            (added, np.setdiff1d(relevant[name], own)),
            (removed, np.setdiff1d(own, relevant[name])),
        ):
            counts[name] = int(np.isin(np.divmod(of, n_captions)[side], counted).sum())
    return ExtendedPositives(
        what=f"{listed.what}, originals kept" if originals else listed.what,
        i2t=np.divmod(relevant["i2t"], n_captions),
        t2i=np.divmod(relevant["t2i"], n_captions),
        evaluated=evaluated,
        before=before,
        added=added,
        removed=removed,
        missing={
            "images": sum(images.of(one) < 0 for one in listed.images | {image for image, _ in named}),
            "captions": sum(captions.of(one) < 0 for one in listed.captions | {text for _, text in named}),
            "pairs": sum(images.of(image) < 0 or captions.of(text) < 0 for image, text in named),
        },
        silent=silent,
        grades=None if listed.grades is None else _graded(listed.grades, images, captions),
    )


def _graded(
    grades: Mapping[Pair, float], images: RowsById, captions: RowsById
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows and grade of each pair of the collection; of two names for one pair, their mean."""
    named = [(images.of(image), captions.of(caption)) for image, caption in grades]
    pairs, mean = mean_per_pair(np.array(named, dtype=np.int64).reshape(-1, 2), list(grades.values()))
    return pairs[:, 0], pairs[:, 1], mean


def read_extended_positives(
    source: str,
    image_ids: Sequence[str],
    caption_ids: Sequence[str],
    caption_image: np.ndarray,
    **options: Any,
) -> ExtendedPositives:
    """Read relevant pairs beyond a collection's own; ``caption_image`` is (n_captions,) the image of each caption."""
    reader, path = format_and_path(source, EXTENDED_POSITIVES, "positives", "cxc:FOLDER")
    originals = options.pop("originals", False)
    if not isinstance(originals, bool):
        raise UsageError(f"originals is {originals!r}, it must be true or false")
    for key in options:
        if key not in reader.options:
            own = ", ".join([*reader.options, "originals"])
            raise UsageError(f"positives {reader.name!r} have no option {key!r}", f"their options: {own}")
    listed: Listed = reader.read(path, **options)
    return match(listed, image_ids, caption_ids, caption_image, originals=originals)
