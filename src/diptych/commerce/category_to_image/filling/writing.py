"""What was filled in, as lines of JSON or as a table, and a summary beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from diptych.commerce.category_to_image.filling.fill import VERDICTS, Filled
from diptych.core.errors import UsageError
from diptych.core.files import atomic_path, write_csv, write_json
from diptych.data.taxonomy import SEPARATOR

COLUMNS = ("id", "title", "verdict", "category", "confidence", "own", "whole_path", "levels", "alternatives")
"""Of a table: ``category`` as far as it is sure enough; confidences of levels and of alternatives are in order."""


def check_ending(file: Path | str) -> None:
    """See that suggestions can be written to such a file."""
    if Path(file).suffix not in (".jsonl", ".csv"):
        raise UsageError(f"{file} ends in {Path(file).suffix or 'nothing'!r}", "use .jsonl or .csv")


def summary_path(file: Path | str) -> Path:
    """Where the summary of ``file`` is."""
    return Path(file).with_suffix(".summary.json")


def write_filled(
    filled: Iterable[Filled], file: Path | str, about: dict[str, Any], *, leave_out: tuple[str, ...] = ()
) -> dict[str, int]:
    """Write suggestions as they come, and a summary beside them; both whole or not at all."""
    file = Path(file)
    check_ending(file)
    counts: dict[str, int] = dict.fromkeys(VERDICTS, 0)

    def counted_ones() -> Iterator[Filled]:
        for one in filled:
            counts[one.verdict] += 1
            if one.verdict not in leave_out:
                yield one
        summary_path(file).unlink(missing_ok=True)  # killed from here on, no summary is of another file

    if file.suffix == ".csv":
        write_csv(file, COLUMNS, map(_cells, counted_ones()))
    else:
        with (
            atomic_path(file) as temporary,
            open(temporary, "w", encoding="utf-8", errors="replace", newline="") as handle,
        ):
            for one in counted_ones():
                handle.write(json.dumps(one.to_dict(), ensure_ascii=False) + "\n")
    counted = {name: count for name, count in counts.items() if count}
    write_json(
        summary_path(file),
        {
            "format": 1,
            **about,
            "products": sum(counts.values()),
            "counts": counted,
            "left_out": list(leave_out),
        },
    )
    return counted


def _cells(one: Filled) -> list[str]:
    return [
        one.id,
        one.title,
        one.verdict,
        SEPARATOR.join(one.path),
        f"{one.confidence:.6f}",
        "; ".join(one.own),
        SEPARATOR.join(name for name, _ in one.levels),
        " ".join(f"{value:.6f}" for _, value in one.levels),
        "; ".join(f"{text} ({value:.6f})" for text, value in one.alternatives),
    ]
