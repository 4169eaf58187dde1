"""One row per session and step for other tools: what is known without any fitting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from diptych.commerce.purchase_intent.features.fitting import FEATURES
from diptych.commerce.purchase_intent.features.kinds import OTHER_PAGE
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.features.view import COLUMNS, NO_PAGE, NOTHING, SessionsView
from diptych.core.context import track
from diptych.core.errors import UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_path

STEPS_FILE = "steps.parquet"

_COMPUTED = ("dwell-mean", "dwell-deviation", "switch-probability")
"""Features without parameters that are no column of the view already."""

_BLOCK = 1 << 16


def export_steps(table: FeatureTable, file: Path | str) -> int:
    """Write one row per session and step of its population.

    Columns: ``session_id``, ``setting``, ``step``, ``label``, ``page_type`` of the page opened last, the columns
    of the view (history is empty where the visitor is not known by then) and the features that are computed from
    them alone. Scores of chains and conversion rates are not there: they belong to a training part.
    """
    if table.is_whole:
        raise UsageError(f"{table.about['name']} has whole sessions, without steps", "leave --export out")
    pa, parquet = (require(name, "commerce", "an export of steps") for name in ("pyarrow", "pyarrow.parquet"))
    numbers, texts = pa.float64(), pa.string()
    schema = pa.schema(
        [
            pa.field("session_id", pa.int64()),
            pa.field("setting", texts),
            pa.field("step", pa.int8()),
            pa.field("label", pa.bool_()),
            pa.field("page_type", texts),
            *(pa.field(column.name, texts if column.kind == "text" else numbers) for column in COLUMNS),
            *(pa.field(_column(name), numbers) for name in _COMPUTED),
        ]
    )
    cells = [(setting, step) for setting in table.settings for step in table.steps]
    n = 0
    with (
        atomic_path(file) as temporary,
        parquet.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        for setting, step in track(cells, "exporting", unit="steps"):
            for block in _blocks(table, setting, step):
                # from_pandas: NaN is written as null, which other tools take for none
                arrays = [pa.array(block[field.name], field.type, from_pandas=True) for field in schema]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
                n += len(arrays[0])
    return n


def _blocks(table: FeatureTable, setting: str, step: int) -> Iterator[dict[str, np.ndarray]]:
    population = table.population(setting, step)
    for start in range(0, len(population), _BLOCK):
        rows = population[start : start + _BLOCK]
        view = table.at(rows, step)
        assert view.labels is not None
        texts = [column.name for column in COLUMNS if column.kind == "text"]
        yield {
            "session_id": table.session_ids[rows],
            "setting": np.full(len(rows), setting, dtype=object),
            "step": np.full(len(rows), step),
            "label": view.labels,
            "page_type": _last_page(view),
            **view.columns,
            **{name: _without(view.columns[name], NOTHING) for name in texts},
            **{_column(name): FEATURES.get(name).how.values(view, None)[:, 0] for name in _COMPUTED},
        }


def _column(feature: str) -> str:
    return feature.replace("-", "_")


def _last_page(view: SessionsView) -> np.ndarray:
    """(n,) names of the page opened last, None before the first."""
    last = np.full(len(view), None, dtype=object)
    if view.page_types.shape[1]:
        names = np.array([*view.vocabulary, OTHER_PAGE], dtype=object)
        codes = view.page_types[:, -1]
        opened = codes != NO_PAGE
        last[opened] = names[codes[opened]]
    return last


def _without(texts: np.ndarray, nothing: str) -> np.ndarray:
    """The same with None for ``nothing``."""
    found = texts.copy()
    found[texts == nothing] = None
    return found
