"""Make tables of features: of the sessions of a log, one expression on any engine; and of tables of whole sessions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diptych.commerce.logs.log import Log
from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.features.fitting import FEATURES
from diptych.commerce.purchase_intent.features.table import (
    SESSION,
    SESSIONS_FILE,
    FeatureTable,
    open_features,
)
from diptych.commerce.purchase_intent.features.view import COLUMNS, NOTHING, PURPOSE, empty_column
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

_EXPORTED = ("dwell-mean", "dwell-deviation", "switch-probability")  # no columns, and without an encoder


def make_features(
    tables: SessionTables,
    *,
    folder: Path | str,
    options: FeatureOptions | None = None,
    engine: Engine | None = None,
) -> FeatureTable:
    """Write all that is known of sessions one may predict on: those with pages for the last step and the buffer."""
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
            runs.write(_feature_rows(sessions, pages, steps, since_us), inside / SESSIONS_FILE)
            bar.advance(n)
        given = options.model_dump(mode="json")
        about = {
            "kind": "steps",
            "name": tables.about["log"],
            "zone": tables.about["zone"],
            "has_times": True,
            "since_us": since_us,
            "steps": list(range(steps + 1)),
            "options": given,
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
    import ibis

    counted = pages.group_by("page_type").aggregate(n=pages.count())
    frequent = counted.order_by([ibis.desc("n"), "page_type"]).limit(most)
    return [str(name) for name in engine.to_arrow(frequent).column("page_type").to_pylist()]


def export_steps(table: FeatureTable, file: Path, *, csv: bool = False) -> int:
    """Write one row per session and step of its population, as Parquet and CSV beside it; return how many.

    Columns: ``session_id``, ``setting``, ``step``, ``label``, ``page_type`` of the page opened last, the columns
    of the view (history is empty where the visitor is not known by then) and the features that are computed from
    them without an encoder. Scores of chains and conversion rates are not there: they belong to a training part.
    """
    pa, pq, pcsv = (require(f"pyarrow{name}", "commerce", PURPOSE) for name in ("", ".parquet", ".csv"))
    n, writer = 0, None
    with ExitStack() as opened:
        written = opened.enter_context(atomic_path(file))
        for setting, step in track(list(product(table.settings, table.steps)), "exporting", unit="steps"):
            rows = table.population(setting, step)
            view, n = table.at(rows, step), n + len(rows)
            block = {
                "session_id": table.session_ids[rows],
                "setting": np.full(len(rows), setting, dtype=object),
                "step": np.full(len(rows), step, dtype=np.int8),
                "label": table.labels[rows],
                "page_type": view.page_names()[:, -1] if step else empty_column("text", len(rows)),
                **view.columns,
                **{name.replace("-", "_"): FEATURES.get(name).values(view) for name in _EXPORTED},
            }
            kinds = {name: pa.string() if one.dtype.hasobject else None for name, one in block.items()}
            block |= {
                name: np.where(block[name] == NOTHING, None, block[name]) for name in kinds if kinds[name]
            }
            found = pa.table(
                {name: pa.array(one, kinds[name], from_pandas=True) for name, one in block.items()}
            )
            writer = writer or opened.enter_context(pq.ParquetWriter(written, found.schema))
            writer.write_table(found)
    if csv:
        rows = pq.ParquetFile(file)
        with atomic_path(file.with_suffix(".csv")) as path, pcsv.CSVWriter(path, rows.schema_arrow) as text:
            for batch in rows.iter_batches():
                text.write_batch(batch)
    return n


def features_of_source(
    source: Path,
    *,
    folder: Path,
    options: FeatureOptions,
    sessions: SessionOptions,
    engine: EngineOptions,
    wanted: TableOptions | None = None,
) -> FeatureTable:
    """Make the features of a log, or of a table of whole sessions, and export them."""
    wanted = wanted or TableOptions()
    exports = wanted.export or wanted.csv
    if source.is_file():
        if exports or options.also or options.compat != "none":
            fix = "leave --compat, --feature, --export and --csv out"
            raise UsageError(f"{source} is a table of whole sessions, without steps", fix)
        return make_whole_features(source, folder=folder, keep_leaking=wanted.keep_leaking)
    if wanted.keep_leaking:
        raise UsageError("--keep-leaking is for tables of whole sessions", "leave it out")
    with engine.open() as runs:
        tables = sessionise(Log.open(source), sessions, engine=runs)
        table = make_features(tables, options=options, engine=runs, folder=folder)
    if exports:
        export_steps(table, folder / "steps.parquet", csv=wanted.csv)
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


def _feature_rows(sessions: ir.Table, pages: ir.Table, steps: int, since_us: int | None) -> ir.Table:
    """Return a row per session that has pages for the last step and the buffer; ``features.sql`` says how."""
    opened = {
        f"{name}_{step}": (kind, f"max(CASE WHEN position = {step} THEN {column} END) AS {name}_{step}")
        for step in range(1, steps + 1)
        for name, column, kind in (("page_type", "page_type", "string"), ("page_us", "t_us", "int64"))
    }
    types = SESSION | {name: kind for name, (kind, _) in opened.items()}
    types |= {one.name: "float64" if one.kind == "number" else "string" for one in COLUMNS}
    values = dict.fromkeys(types, "{}") | {
        name: "CAST({} AS DOUBLE)" for name in types if types[name] == "float64"
    }
    values |= {one.name: f"coalesce({{}}, '{NOTHING}')" for one in COLUMNS if one.kind == "text"}
    values["person"] = "number_of_person"
    words = {
        "sessions": sessions.get_name(),
        "pages": pages.get_name(),
        "least": steps + BUFFER,
        "opened": ", ".join(value for _, value in opened.values()),
        "columns": ", ".join(f"{value.format(name)} AS {name}" for name, value in values.items()),
        "since": "NULL" if since_us is None else since_us,
        "day": 86_400 * SECOND,
    }
    query = Path(__file__).with_name("features.sql").read_text("utf-8").format(**words)
    return sessions.get_backend().sql(query, schema=types, dialect="duckdb").order_by("session_id")
