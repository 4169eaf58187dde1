"""Judgements of one's own: a CSV file with the columns image, caption and rating."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from diptych.core.errors import DataError
from diptych.core.reading import read_lines
from diptych.data.judgements.declaration import JUDGEMENTS, Judged, JudgementReader

_COLUMNS = ("image", "caption", "rating")


def read_judgement_table(path: Path | str) -> Judged:
    """Read a CSV file, gzipped or not; further columns are passed over.

    Its scale begins at 0, or at the lowest rating where that is below 0, and ends at the highest.
    """
    path = Path(path)
    lines = csv.reader(line for _, line in read_lines(path, error=DataError))
    pairs, ratings = [], []
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        missing = [name for name in _COLUMNS if name not in header]
        if missing:
            raise DataError(
                f"{path} has no column {missing[0]!r}: its columns are {', '.join(header) or 'none'}",
                f"the first line is {','.join(_COLUMNS)}",
            )
        image, caption, rating = (header.index(name) for name in _COLUMNS)
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
        raise DataError(f"{path} has no judgement", f"a line is {','.join(_COLUMNS)}")
    return Judged(f"judgements of {path.name}", pairs, ratings, min([0.0, *ratings]), max(ratings))


JUDGEMENTS.add(
    JudgementReader(
        "csv",
        "a CSV file of one's own with the columns image, caption and rating",
        "",
        read_judgement_table,
    )
)
