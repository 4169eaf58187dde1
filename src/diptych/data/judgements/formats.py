"""Crisscrossed Captions as judgements: mean ratings of image–caption pairs from 0 to 5."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from diptych.core.errors import DataError
from diptych.core.reading import read_lines
from diptych.data.extended_positives.formats import read_ratings, sits_files
from diptych.data.judgements.declaration import JUDGEMENTS, Judged, JudgementReader

_HIGHEST = 5.0


def read_cxc_judgements(path: Path | str) -> Judged:
    """Read ``sits_{val,test}.csv``, gzipped or not: one file, or all of a folder."""
    pairs: list[tuple[str, str]] = []
    ratings: list[float] = []
    for file in sits_files(Path(path)):
        given = read_ratings(file)
        if given.task != "sits":
            raise DataError(
                f"{file} rates pairs within one modality ({given.task})", "give sits_test.csv or its folder"
            )
        pairs += [(image, caption) for caption, image in given.pairs]
        ratings += given.scores
    return Judged("cxc, mean rating", pairs, ratings, 0.0, _HIGHEST)


JUDGEMENTS.add(
    JudgementReader(
        "cxc",
        "Crisscrossed Captions: sits_{val,test}.csv or their folder, ratings from 0 to 5",
        "Parekh et al., EACL 2021",
        read_cxc_judgements,
    )
)


# Flickr8k: how well captions of other pictures describe a picture, by experts and by a crowd.
#
# ``ExpertAnnotations.txt``: picture, caption, three ratings from 1 (not at all) to 4 (without any errors), 5,822
# pairs. ``CrowdFlowerAnnotations.txt``: picture, caption, share of people who said yes, how many said yes and
# no, 47,830 pairs. Both are separated by tabs; a caption is ``PICTURE#NUMBER``, numbers from 0. The rating of a
# pair is the mean of the experts, or the share of yes.
#
# Source: Hodosh, Young and Hockenmaier, Framing image description as a ranking task, JAIR 2013, section 4.


_EXPERT, _CROWD = "ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"
_LOWEST, _FLICKR8K_HIGHEST = 1, 4
_COLUMNS = 5


def _file(path: Path, name: str) -> Path:
    """The file given, or the one of that name in a folder, gzipped or not."""
    if not path.is_dir():
        return path
    for file in (path / name, path / f"{name}.gz"):
        if file.is_file():
            return file
    raise DataError(f"no {name} in {path}", "give the file itself, or the folder it was unpacked to")


def _rows(path: Path, columns: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and fields of lines that are not empty."""
    some = False
    for number, line in read_lines(path, error=DataError):
        if not line.strip():
            continue
        fields = line.strip("\n").split("\t")
        if len(fields) != _COLUMNS or not fields[0] or not fields[1]:
            raise DataError(
                f"{path}, line {number} has {len(fields)} columns separated by tabs, not {_COLUMNS}",
                f"they are {columns}",
            )
        some = True
        yield number, fields
    if not some:
        raise DataError(f"{path} is empty", f"it should have lines of {columns}")


def read_flickr8k_expert(path: Path | str) -> Judged:
    """Read ``ExpertAnnotations.txt``, gzipped or not, or the folder it is in."""
    path = _file(Path(path), _EXPERT)
    pairs, ratings = [], []
    for number, (image, caption, *votes) in _rows(path, "picture, caption and three ratings"):
        try:
            values = [int(vote) for vote in votes]
        except ValueError:
            values = [0]
        if min(values) < _LOWEST or max(values) > _FLICKR8K_HIGHEST:
            raise DataError(
                f"{path}, line {number}: the ratings are {', '.join(votes)}, not three whole numbers from "
                f"{_LOWEST} to {_FLICKR8K_HIGHEST}",
                "give ExpertAnnotations.txt, not the crowd's file",
            )
        pairs.append((image, caption))
        ratings.append(sum(values) / len(values))
    return Judged("flickr8k experts, mean of three ratings", pairs, ratings, _LOWEST, _FLICKR8K_HIGHEST)


def read_flickr8k_crowd(path: Path | str) -> Judged:
    """Read ``CrowdFlowerAnnotations.txt``, gzipped or not, or the folder it is in."""
    path = _file(Path(path), _CROWD)
    pairs, ratings = [], []
    for number, (image, caption, *votes) in _rows(path, "picture, caption, share of yes, yes and no"):
        try:
            share, yes, no = float(votes[0]), int(votes[1]), int(votes[2])
        except ValueError:
            share, yes, no = -1.0, 0, 0
        if not 0 <= share <= 1 or min(yes, no) < 0 or yes + no == 0:
            raise DataError(
                f"{path}, line {number}: {', '.join(votes)} are not a share from 0 to 1 and how many said yes "
                "and no",
                "give CrowdFlowerAnnotations.txt, not the experts' file",
            )
        pairs.append((image, caption))
        ratings.append(share)
    return Judged("flickr8k crowd, share of yes", pairs, ratings, 0.0, 1.0)


JUDGEMENTS.add(
    JudgementReader(
        "flickr8k-expert",
        "ExpertAnnotations.txt of Flickr8k: three ratings from 1 to 4 per pair",
        "Hodosh, Young and Hockenmaier, JAIR 2013",
        read_flickr8k_expert,
    )
)
JUDGEMENTS.add(
    JudgementReader(
        "flickr8k-crowd",
        "CrowdFlowerAnnotations.txt of Flickr8k: how many people found that a caption describes a picture",
        "Hodosh, Young and Hockenmaier, JAIR 2013",
        read_flickr8k_crowd,
    )
)


_TABLE_COLUMNS = ("image", "caption", "rating")


def read_judgement_table(path: Path | str) -> Judged:
    """Read a CSV file, gzipped or not; further columns are passed over.

    Its scale begins at 0, or at the lowest rating where that is below 0, and ends at the highest.
    """
    path = Path(path)
    lines = csv.reader(line for _, line in read_lines(path, error=DataError))
    pairs, ratings = [], []
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        missing = [name for name in _TABLE_COLUMNS if name not in header]
        if missing:
            raise DataError(
                f"{path} has no column {missing[0]!r}: its columns are {', '.join(header) or 'none'}",
                f"the first line is {','.join(_TABLE_COLUMNS)}",
            )
        image, caption, rating = (header.index(name) for name in _TABLE_COLUMNS)
        for fields in lines:
            if not fields:
                continue
            try:
                pair, value = (fields[image], fields[caption]), float(fields[rating])
            except (IndexError, ValueError):
                pair, value = ("", ""), math.nan
            if not all(pair) or not math.isfinite(value):
                raise DataError(
                    f"{path}, line {lines.line_num}: no image, caption and rating: {', '.join(fields)}"
                )
            pairs.append(pair)
            ratings.append(value)
    except csv.Error as error:
        raise DataError(f"{path}, line {lines.line_num} cannot be read: {error}") from None
    if not pairs:
        raise DataError(f"{path} has no judgement", f"a line is {','.join(_TABLE_COLUMNS)}")
    return Judged(f"judgements of {path.name}", pairs, ratings, min([0.0, *ratings]), max(ratings))


JUDGEMENTS.add(
    JudgementReader(
        "csv",
        "a CSV file of one's own with the columns image, caption and rating",
        "",
        read_judgement_table,
    )
)
