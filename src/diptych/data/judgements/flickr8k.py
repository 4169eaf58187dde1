"""Flickr8k: how well captions of other pictures describe a picture, by experts and by a crowd.

``ExpertAnnotations.txt``: picture, caption, three ratings from 1 (not at all) to 4 (without any errors), 5,822
pairs. ``CrowdFlowerAnnotations.txt``: picture, caption, share of people who said yes, how many said yes and
no, 47,830 pairs. Both are separated by tabs; a caption is ``PICTURE#NUMBER``, numbers from 0. The rating of a
pair is the mean of the experts, or the share of yes.

Source: Hodosh, Young and Hockenmaier, Framing image description as a ranking task, JAIR 2013, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from diptych.core.errors import DataError
from diptych.core.reading import read_lines
from diptych.data.judgements.declaration import JUDGEMENTS, Judged, JudgementReader

_EXPERT, _CROWD = "ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"
_LOWEST, _HIGHEST = 1, 4
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
        if min(values) < _LOWEST or max(values) > _HIGHEST:
            raise DataError(
                f"{path}, line {number}: the ratings are {', '.join(votes)}, not three whole numbers from "
                f"{_LOWEST} to {_HIGHEST}",
                "give ExpertAnnotations.txt, not the crowd's file",
            )
        pairs.append((image, caption))
        ratings.append(sum(values) / len(values))
    return Judged("flickr8k experts, mean of three ratings", pairs, ratings, _LOWEST, _HIGHEST)


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
