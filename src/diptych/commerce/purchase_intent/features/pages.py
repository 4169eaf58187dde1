"""First pages of sessions as two arrays: types and times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.storage import PAGE_TIMES, PAGE_TYPES
from diptych.commerce.purchase_intent.features.view import NO_PAGE
from diptych.core.errors import StorageError
from diptych.core.extras import require
from diptych.core.files import create_array
from diptych.core.progress import task

__all__ = ["BLOCK", "write_pages"]

BLOCK = 1 << 17
"""Rows that are held at once."""


def write_pages(
    folder: Path, files: Sequence[Path], session_ids: np.ndarray, steps: int, vocabulary: Sequence[str]
) -> None:
    """Write the arrays of pages, block by block.

    Args:
        folder: to write to.
        files: of pages, in any order.
        session_ids: (n,) int64, rising; the rows of the arrays.
        steps: columns of the arrays.
        vocabulary: page types in the order of their codes; all others share the code behind them.

    Raises:
        StorageError: a page of a session that is not among ``session_ids``, or of a position beyond ``steps``.
    """
    parquet = require("pyarrow.parquet", "commerce", "a table of features")
    n = len(session_ids)
    if n == 0 or steps == 0:  # there is no file of no bytes to map
        np.save(folder / PAGE_TYPES, np.zeros((n, steps), dtype=np.int32))
        np.save(folder / PAGE_TIMES, np.zeros((n, steps), dtype=np.int64))
        return
    types = create_array(folder / PAGE_TYPES, "int32", (n, steps))
    times = create_array(folder / PAGE_TIMES, "int64", (n, steps))
    for start in range(0, n, BLOCK):
        types[start : start + BLOCK] = NO_PAGE
    code_of = {name: code for code, name in enumerate(vocabulary)}
    sources = [parquet.ParquetFile(file) for file in files]
    total = sum(source.metadata.num_rows for source in sources)
    with task("reading pages", total, "pages") as bar:
        for source, file in zip(sources, files, strict=True):
            for batch in source.iter_batches(BLOCK, columns=["session_id", "position", "t_us", "page_type"]):
                ids, places = _numbers(batch, "session_id"), _numbers(batch, "position") - 1
                rows = np.searchsorted(session_ids, ids)
                fits = (places >= 0) & (places < steps) & (rows < n)
                if not (fits & (session_ids[np.minimum(rows, n - 1)] == ids)).all():
                    raise StorageError(
                        f"{file} has pages that belong to no session of the population",
                        "the tables of sessions are damaged: remove their folder and make them again",
                    )
                types[rows, places] = _codes(batch, code_of)
                times[rows, places] = _numbers(batch, "t_us")
                bar.advance(len(ids))
            source.close()


def _numbers(batch: Any, name: str) -> np.ndarray:
    numbers: np.ndarray = batch.column(name).to_numpy(zero_copy_only=False)
    return numbers


def _codes(batch: Any, code_of: dict[str, int]) -> np.ndarray:
    encoded = batch.column("page_type")
    if not hasattr(encoded, "dictionary"):
        encoded = encoded.dictionary_encode()
    codes = np.array([code_of.get(name, len(code_of)) for name in encoded.dictionary.to_pylist()], np.int32)
    found: np.ndarray = codes[encoded.indices.to_numpy(zero_copy_only=False)]
    return found
