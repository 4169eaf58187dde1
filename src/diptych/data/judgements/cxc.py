"""Crisscrossed Captions as judgements: mean ratings of image–caption pairs from 0 to 5."""

from __future__ import annotations

from pathlib import Path

from diptych.core.errors import DataError
from diptych.data.extended_positives.cxc import read_ratings, sits_files
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
