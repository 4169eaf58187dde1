"""A folder of features: what is known of every session, and the first pages of each.

::

    FEATURES/
      features.json      what it was made of and how, what was left out, the columns and page types
      sessions.parquet   one row per session, by rising session_id
      page_types.npy     (sessions, steps) int32 codes
      page_times.npy     (sessions, steps) int64 microseconds
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.features.view import text_array
from diptych.commerce.purchase_intent.sessions.schema import BUFFER
from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError
from diptych.core.extras import require

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


SESSIONS_FILE = "sessions.parquet"
PAGE_TYPES = "page_types.npy"
PAGE_TIMES = "page_times.npy"

FIXED = {
    "session_id": "int64",
    "person": "int64",
    "start_us": "int64",
    "end_us": "int64",
    "label": "bool",
    "pages_before_purchase": "number",
    "pages_before_identified": "number",
}
"""Columns that every table has before those of its view; numbers are float64 with NaN for none."""

_PURPOSE = "a table of features"
_GROUP = 1 << 17


@dataclass(frozen=True)
class FeatureHeader(Artifact, kind="features", recreate="diptych intent features LOG --out FEATURES"):
    """What a table of features was made of and how, what was left out, the columns and page types."""

    about: dict[str, Any]


def write_sessions(
    folder: Path, blocks: Iterable[Mapping[str, np.ndarray]], columns: Mapping[str, str]
) -> int:
    """Write ``sessions.parquet`` block by block.

    Args:
        blocks: name → (m,) values of :data:`FIXED` and of ``columns``.
    """
    pa, parquet = require("pyarrow", "commerce", _PURPOSE), require("pyarrow.parquet", "commerce", _PURPOSE)
    types = {"int64": pa.int64(), "bool": pa.bool_(), "number": pa.float64(), "text": pa.string()}
    kinds = {**FIXED, **columns}
    schema = pa.schema([pa.field(name, types[kind]) for name, kind in kinds.items()])
    n = 0
    with parquet.ParquetWriter(folder / SESSIONS_FILE, schema, compression="zstd") as writer:
        for block in blocks:
            # NaN is stored as such: it means none, and null would only be a second way to say so.
            arrays = [pa.array(block[name], types[kind], from_pandas=False) for name, kind in kinds.items()]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=_GROUP)
            n += len(arrays[0])
    return n


def read_columns(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Name and (n,) values of some columns of ``sessions.parquet``, one after the other.

    Equal texts of a column are one object.
    """
    pa, parquet = require("pyarrow", "commerce", _PURPOSE), require("pyarrow.parquet", "commerce", _PURPOSE)
    try:
        with parquet.ParquetFile(folder / SESSIONS_FILE) as file:
            for name in names:
                column = file.read([name]).column(0).combine_chunks()
                if pa.types.is_string(column.type):
                    encoded = column.dictionary_encode()
                    texts = text_array(encoded.dictionary.to_pylist())
                    yield name, texts[encoded.indices.to_numpy()]
                else:
                    yield name, column.to_numpy(zero_copy_only=False)
    except (OSError, pa.ArrowException, KeyError, IndexError) as error:
        raise StorageError(
            f"{folder / SESSIONS_FILE} cannot be read: {error}", "make the features again"
        ) from None


# Who is in the population of a setting and a step (thesis section 6.5.1).
#
# Sessions have at least twelve pages: the last step and a buffer of two, so that nobody predicts at the very end.
# The thesis leaves it at that; but a session of thirty pages whose purchase comes with the fifth tells a model of
# step ten its outcome by the page that confirms it. So, by default, at step k only sessions are left whose first
# purchase, if any, comes after k + 2 pages at least; and a session is identified at step k only if its visitor is
# known by then: on arrival, or logged in before page k. ``compat="published"`` does neither: all sessions stay, and
# who logs in at any page is identified from the beginning.


COMPATS = ("none", "published")


def is_undecided(pages_before_purchase: np.ndarray, step: int, compat: str = "none") -> np.ndarray:
    """(n,) bool: whether no purchase lies before the step and its buffer.

    Args:
        pages_before_purchase: (n,) float64, infinity where there was none.
    """
    if compat == "published":
        return np.ones(len(pages_before_purchase), dtype=bool)
    undecided: np.ndarray = pages_before_purchase >= step + BUFFER
    return undecided


def is_identified(pages_before_identified: np.ndarray, step: int, compat: str = "none") -> np.ndarray:
    """(n,) bool: whether the visitor is known once ``step`` pages are open.

    Args:
        pages_before_identified: (n,) float64, NaN where the visitor was never known.
    """
    before = pages_before_identified
    if compat == "published":
        known: np.ndarray = ~np.isnan(before)
        return known
    identified: np.ndarray = (before == 0) | (before < step)
    return identified


def count_populations(table: FeatureTable) -> list[dict[str, Any]]:
    """For every setting and step: sessions, purchases among them, and those left out for their early purchase."""
    rows = []
    for setting in table.settings:
        for step in table.steps:
            chosen = table.population(setting, step)
            in_setting = len(table)
            if not table.is_whole:
                identified = int(table.identified(step).sum())
                in_setting = identified if setting == "identified" else len(table) - identified
            rows.append(
                {
                    "setting": setting,
                    "step": step,
                    "sessions": len(chosen),
                    "purchases": int(table.labels[chosen].sum()),
                    "bought_too_early": in_setting - len(chosen),
                }
            )
    return rows
