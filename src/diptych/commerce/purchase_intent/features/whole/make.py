"""From a table of whole sessions to a table of features."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from diptych.commerce.purchase_intent.features.columns import text_array
from diptych.commerce.purchase_intent.features.population import count_populations
from diptych.commerce.purchase_intent.features.storage import (
    MARKER,
    PAGE_TIMES,
    PAGE_TYPES,
    write_marker,
    write_sessions,
)
from diptych.commerce.purchase_intent.features.table import WHOLE_SESSION, FeatureTable, open_features
from diptych.commerce.purchase_intent.features.whole.declaration import (
    SessionTable,
    open_table,
    recognise_session_table,
)
from diptych.core.errors import DataError
from diptych.core.files import atomic_folder
from diptych.core.fingerprint import fingerprint, fingerprint_file

_BLOCK = 1 << 16
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def make_whole_features(file: Path | str, *, folder: Path | str, keep_leaking: bool = False) -> FeatureTable:
    """Write the sessions of a known table as they are; its columns are the features."""
    file, folder = Path(file), Path(folder)
    table = recognise_session_table(file)
    columns = {
        name: kind for name, kind in table.columns.items() if keep_leaking or name not in table.leaking
    }
    left_out = [{"column": name, "why": why} for name, why in table.leaking.items() if name not in columns]
    with atomic_folder(folder, MARKER) as inside:
        n = write_sessions(inside, _blocks(file, table, dict(columns)), columns)
        np.save(inside / PAGE_TYPES, np.zeros((n, 0), dtype=np.int32))
        np.save(inside / PAGE_TIMES, np.zeros((n, 0), dtype=np.int64))
        about = {
            "kind": "whole",
            "name": table.name,
            "zone": None,
            "has_times": False,
            "since_us": None,
            "steps": [WHOLE_SESSION],
            "options": {"keep_leaking": keep_leaking},
            "columns": columns,
            "vocabulary": [],
            "left_out": left_out,
            "kept_leaking": [name for name in table.leaking if name in columns],
            "notes": list(table.notes),
            "counts": {"sessions": n, "too_short": 0, "population": n},
            "fingerprint": fingerprint("whole", table.name, fingerprint_file(file), keep_leaking),
        }
        write_marker(inside, about)
        write_marker(inside, about | {"populations": count_populations(open_features(inside))})
    return open_features(folder)


def _blocks(file: Path, table: SessionTable, columns: dict[str, str]) -> Iterator[dict[str, np.ndarray]]:
    """Blocks as :func:`write_sessions` takes them."""
    with open_table(file) as text:
        reader = csv.DictReader(text, strict=True)
        reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
        start = 0
        while rows := list(islice(reader, _BLOCK)):
            for number, row in enumerate(rows, start=start):
                if None in row or None in row.values():
                    raise DataError(
                        f"row {number + 1} of {file} has not as many values as the header", "repair the file"
                    )
            where = f"{file}, row"
            numbers = np.arange(start, start + len(rows))
            nothing, none = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), np.nan)
            block = {
                "session_id": numbers,
                "person": numbers,
                "start_us": nothing,
                "end_us": nothing,
                "label": np.array(
                    [
                        _bool(row[table.label], f"{where} {i + 1}")
                        for i, row in zip(numbers, rows, strict=True)
                    ]
                ),
                "pages_before_purchase": none,
                "pages_before_identified": none,
            }
            for name, kind in columns.items():
                values = [row[name].strip() for row in rows]
                if kind == "text":
                    block[name] = text_array(values)
                else:
                    found = zip(numbers, values, strict=True)
                    block[name] = np.array([_number(value, f"{where} {i + 1}, {name}") for i, value in found])
            yield block
            start += len(rows)


def _bool(value: str, where: str) -> bool:
    try:
        return _BOOLS[value.strip().lower()]
    except KeyError:
        raise DataError(f"{where} says {value!r} for whether something was bought", "TRUE or FALSE") from None


def _number(value: str, where: str) -> float:
    """NaN where there is none."""
    try:
        number = float(value) if value else np.nan
    except ValueError:
        raise DataError(f"{where} is {value!r}, not a number", "repair the file") from None
    if np.isinf(number):
        raise DataError(f"{where} is {value!r}", "a finite number, or nothing")
    return number
