"""Make tables of features of the sessions of a log, one expression on any engine, and export them for other tools."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diptych.commerce.logs.log import Log
from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.features.fitting import FEATURES, page_names
from diptych.commerce.purchase_intent.features.table import SESSIONS_FILE, FeatureTable, open_features
from diptych.commerce.purchase_intent.features.view import COLUMNS, NOTHING, PURPOSE
from diptych.commerce.purchase_intent.features.whole import make_whole_features
from diptych.commerce.purchase_intent.options import (
    EngineOptions,
    FeatureOptions,
    SessionOptions,
    TableOptions,
)
from diptych.commerce.purchase_intent.sessions import BUFFER, sessionise
from diptych.core.context import task, track
from diptych.core.errors import UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder, atomic_path
from diptych.core.fingerprint import fingerprint

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from diptych.commerce.purchase_intent.sessions import SessionTables

STEPS_FILES = {"export": "steps.parquet", "csv": "steps.csv"}
_EXPORTED = ("dwell-mean", "dwell-deviation", "switch-probability")
"""Features without an encoder that are no column of the view already."""


def make_features(
    tables: SessionTables,
    *,
    folder: Path | str,
    options: FeatureOptions | None = None,
    engine: Engine | None = None,
) -> FeatureTable:
    """Write all that is known of sessions one may predict on: those with pages for the last step and the buffer."""
    from diptych.commerce.purchase_intent.features.rows import feature_rows

    options, steps = options or FeatureOptions(), int(tables.about["options"]["pages"])
    with (
        open_engine() if engine is None else nullcontext(engine) as runs,
        atomic_folder(folder, FeatureTable.marker()) as inside,
    ):
        sessions, pages = (runs.read(tables.files(name)) for name in ("sessions", "pages"))
        counted = sessions.aggregate(
            n=sessions.count(),
            long=sessions.count(where=sessions.n_pages >= steps + BUFFER),
            since_us=sessions.start_us.min(),
        )
        n, long, since_us = runs.to_arrow(counted).to_pylist()[0].values()
        with task("features of sessions", n, "sessions") as bar:
            runs.write(feature_rows(sessions, pages, steps, since_us), inside / SESSIONS_FILE)
            bar.advance(n)
        given = options.model_dump()
        about = {
            "kind": "steps",
            "name": tables.log_name,
            "zone": tables.zone,
            "has_times": True,
            "since_us": since_us,
            "steps": list(range(steps + 1)),
            "options": given | {"also": list(options.also)},
            "session_options": tables.about["options"],
            "sessions_fingerprint": tables.fingerprint,
            "columns": {column.name: column.kind for column in COLUMNS},
            "vocabulary": _vocabulary(runs, pages, options.types),
            "counts": {"sessions": n, "too_short": n - long, "population": long},
            "fingerprint": fingerprint("features", FeatureTable.FORMAT, tables.fingerprint, given),
        }
        FeatureTable(about, **FeatureTable.read_files(inside, {"about": about})).write_header(inside)
    return open_features(folder)


def _vocabulary(engine: Engine, pages: ir.Table, most: int) -> list[str]:
    """Return the most frequent page types, by count, then name."""
    ibis = require("ibis", "commerce", PURPOSE)
    counted = pages.group_by("page_type").aggregate(n=pages.count())
    frequent = counted.order_by([ibis.desc("n"), "page_type"]).limit(most)
    return [str(name) for name in engine.to_arrow(frequent).column("page_type").to_pylist()]


def export_steps(table: FeatureTable, *files: Path | str) -> int:
    """Write one row per session and step of its population, as Parquet or ``.csv``; return how many.

    Columns: ``session_id``, ``setting``, ``step``, ``label``, ``page_type`` of the page opened last, the columns
    of the view (history is empty where the visitor is not known by then) and the features that are computed from
    them without an encoder. Scores of chains and conversion rates are not there: they belong to a training part.
    """
    pa, parquet, csv = (require(f"pyarrow{name}", "commerce", PURPOSE) for name in ("", ".parquet", ".csv"))
    kinds = {"session_id": pa.int64(), "setting": pa.string(), "step": pa.int8(), "label": pa.bool_()}
    kinds |= {"page_type": pa.string()}
    kinds |= {one.name: pa.string() if one.kind == "text" else pa.float64() for one in COLUMNS}
    schema = pa.schema(kinds | {name.replace("-", "_"): pa.float64() for name in _EXPORTED})
    cells, n = list(product(table.settings, table.steps)), 0
    with ExitStack() as opened:
        writers = []
        for file in files:
            writer = csv.CSVWriter if str(file).endswith(".csv") else parquet.ParquetWriter
            writers.append(opened.enter_context(writer(opened.enter_context(atomic_path(file)), schema)))
        for setting, step in track(cells, "exporting", unit="steps"):
            rows = table.population(setting, step)
            view, n = table.at(rows, step), n + len(rows)
            last = page_names(view)[:, -1] if step else np.full(len(rows), NOTHING, dtype=object)
            block = dict(view.columns) | {"session_id": table.session_ids[rows], "label": view.labels}
            block |= {"setting": np.full(len(rows), setting, dtype=object), "step": np.full(len(rows), step)}
            block |= {name.replace("-", "_"): FEATURES.get(name).values(view) for name in _EXPORTED}
            block |= {"page_type": last}
            # No text and NaN are null, which other tools take for none.
            blank = {
                name: [text or None for text in of] if of.dtype.hasobject else of
                for name, of in block.items()
            }
            arrays = [pa.array(blank[one.name], one.type, from_pandas=True) for one in schema]
            for writer in writers:
                writer.write_table(pa.table(arrays, schema=schema))
    return n


def features_of_source(
    source: Path,
    *,
    folder: Path,
    options: FeatureOptions,
    sessions: SessionOptions,
    engine: EngineOptions,
    wanted: TableOptions,
) -> FeatureTable:
    """Make the features of a log, or of a table of whole sessions, and export them."""
    exports = [folder / STEPS_FILES[name] for name in STEPS_FILES if getattr(wanted, name)]
    if source.is_file():
        if exports or options.also or options.compat != "none":
            raise UsageError(
                f"{source} is a table of whole sessions, without steps",
                "leave --compat, --feature, --export and --csv out",
            )
        return make_whole_features(source, folder=folder, keep_leaking=wanted.keep_leaking)
    if wanted.keep_leaking:
        raise UsageError("--keep-leaking is for tables of whole sessions", "leave it out")
    with engine.open() as runs:
        tables = sessionise(Log.open(source), sessions, engine=runs)
        table = make_features(tables, options=options, engine=runs, folder=folder)
    if exports:
        export_steps(table, *exports)
    return table


def is_table(path: Path) -> bool:
    """Return whether it is a folder of features, or named as a table of whole sessions."""
    return FeatureTable.is_at(path) or path.name.endswith((".csv", ".csv.gz"))


@contextmanager
def opened_table(path: Path, keep_leaking: bool) -> Iterator[FeatureTable]:
    """Open a folder of features; or make those of a table of whole sessions, and remove them after the block."""
    if path.is_dir():
        yield open_features(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield make_whole_features(path, folder=Path(folder) / "features", keep_leaking=keep_leaking)
