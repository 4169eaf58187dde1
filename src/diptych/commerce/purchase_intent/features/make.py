"""Make tables of features: of the sessions of a log, one expression on any engine; and of tables of whole sessions."""

import csv
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from diptych.commerce.logs.log import SECOND, Log
from diptych.commerce.purchase_intent import options as intent
from diptych.commerce.purchase_intent.engine import Engine, open_engine, rows_of
from diptych.commerce.purchase_intent.features.fitting import (
    COLUMNS,
    FEATURES,
    NOTHING,
    PURPOSE,
    SessionsView,
    text_array,
)
from diptych.commerce.purchase_intent.features.table import (
    SESSIONS_FILE,
    WHOLE_SESSION,
    FeatureTable,
    open_features,
)
from diptych.commerce.purchase_intent.sessions import BUFFER, PASSES, TABLES, SessionTables, sessionise
from diptych.core.context import task, track
from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder, atomic_path
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.reading import open_text, read_toml

_PAGE = {"page_type": "page_type", "page_us": "t_us"}  # column of a step, of pages
_EXPORTED = ("dwell-mean", "dwell-deviation", "switch-probability")  # no columns, and without an encoder


def make_features(
    tables: SessionTables,
    *,
    folder: Path | str,
    options: intent.FeatureOptions | None = None,
    engine: Engine | None = None,
) -> FeatureTable:
    """Write all that is known of sessions one may predict on: those with pages for the last step and the buffer."""
    options, steps = options or intent.FeatureOptions(), int(tables.about["options"]["pages"])
    with (
        open_engine() if engine is None else nullcontext(engine) as runs,
        atomic_folder(folder, FeatureTable.marker()) as inside,
    ):
        files = {name: tables.files(name) for name in ("sessions", "pages")}
        long = f"count(*) FILTER (n_pages >= {steps + BUFFER}) AS long"
        counted = f"SELECT count(*) AS n, {long}, min(start_us) AS since FROM {{}}"
        n, long_enough, since_us = rows_of(runs, counted, files["sessions"])[0].values()
        frequent = f"SELECT page_type FROM {{}} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {options.types}"
        columns = (
            f"max(CASE WHEN position = {step} THEN {column} END) AS {name}_{step}"
            for step, (name, column) in product(range(1, steps + 1), _PAGE.items())
        )
        words = {
            **{name: runs.read(of).get_name() for name, of in files.items()},
            "least": steps + BUFFER,
            "opened": ", ".join(columns),
            "since": "NULL" if since_us is None else since_us,
            "day": 86_400 * SECOND,
        }
        query = Path(__file__).with_name("features.sql").read_text("utf-8").format(**words)
        with task("features of sessions", n, "sessions") as bar:
            runs.write(runs.sql(query).order_by("session_id"), inside / SESSIONS_FILE)
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
            "columns": dict(COLUMNS),
            "vocabulary": [row["page_type"] for row in rows_of(runs, frequent, files["pages"])],
            "counts": {"sessions": n, "too_short": n - long_enough, "population": long_enough},
            "fingerprint": fingerprint("features", FeatureTable.FORMAT, tables.fingerprint, given),
        }
        FeatureTable(about, **FeatureTable.read_files(inside, {"about": about})).write_header(inside)
    return open_features(folder)


def export_steps(table: FeatureTable, file: Path, *, as_csv: bool = False) -> int:
    """Write one row per session and step of its population, as Parquet and also as CSV; return how many.

    Columns: ``session_id``, ``setting``, ``step``, ``label``, ``page_type`` of the page opened last, the columns
    of the view (history is empty where the visitor is not known by then) and the features that are computed from
    them without an encoder. Scores of chains and conversion rates are not there: they belong to a training part.
    """
    pa, pq, pcsv = (require(f"pyarrow{name}", "commerce", PURPOSE) for name in ("", ".parquet", ".csv"))
    texts = {"setting", "page_type", *(name for name, kind in COLUMNS.items() if kind == "text")}
    n, writer = 0, None
    with ExitStack() as opened:
        written = opened.enter_context(atomic_path(file))
        for setting, step in track(list(product(table.settings, table.steps)), "exporting", unit="steps"):
            rows = table.population(setting, step)
            view, n = table.at(rows, step), n + len(rows)
            block: dict[str, Any] = {
                "session_id": table.session_ids[rows],
                "setting": [setting] * len(rows),
                "step": np.full(len(rows), step, dtype=np.int8),
                "label": table.labels[rows],
                "page_type": view.page_types[:, -1] if step else [NOTHING] * len(rows),
                **view.columns,
                **{name.replace("-", "_"): FEATURES.get(name).values(view) for name in _EXPORTED},
            }
            arrays = {
                name: pa.array(one, from_pandas=True) for name, one in block.items() if name not in texts
            }
            arrays |= {name: pa.array([one or None for one in block[name]], pa.string()) for name in texts}
            found = pa.table({name: arrays[name] for name in block})
            writer = writer or opened.enter_context(pq.ParquetWriter(written, found.schema))
            writer.write_table(found)
    if as_csv:
        rows = pq.ParquetFile(file)
        with atomic_path(file.with_suffix(".csv")) as path, pcsv.CSVWriter(path, rows.schema_arrow) as text:
            for batch in rows.iter_batches():
                text.write_batch(batch)
    return n


# Tables whose rows are whole sessions, their columns computed when they were over: UCI's shoppers.

_WHOLE = read_toml(Path(__file__).with_name("whole.toml"))
SESSION_TABLES = {name: SimpleNamespace(**one) for name, one in _WHOLE.items()}


def recognise_session_table(file: Path) -> tuple[str, list[str]]:
    """Return the name of a known table of whole sessions, empty for none, and its columns in their order."""
    with open_text(file, newline="", error=DataError, fix="give a CSV file in UTF-8") as text:
        header = [name.strip() for name in next(csv.reader(text), [])]
    fits = (
        name for name, one in SESSION_TABLES.items() if {one.label, *one.numbers, *one.texts} <= {*header}
    )
    return next(fits, ""), header


def make_whole_features(file: Path | str, *, folder: Path | str, keep_leaking: bool = False) -> FeatureTable:
    """Write the sessions of a known table, whatever the order of its columns; they are the features."""
    file = Path(file)
    table, header = recognise_session_table(file)
    if not table:
        wrong = f"{file} is no known table of whole sessions (columns: {', '.join(header)[:120] or 'none'})"
        fix = f"known: {', '.join(SESSION_TABLES)}; a log of events is imported first: diptych intent ingest"
        raise DataError(wrong, fix)
    known = SESSION_TABLES[table]
    left_out = {} if keep_leaking else known.leaking
    kinds = dict.fromkeys(known.numbers, "number") | dict.fromkeys(known.texts, "text")
    columns = {name: kind for name, kind in kinds.items() if name not in left_out}
    found = _read(file, known.label, columns, header)
    labels = found.pop(known.label)
    n = len(labels)
    about = {
        "kind": "whole",
        "name": table,
        "zone": None,
        "has_times": False,
        "since_us": None,
        "steps": [WHOLE_SESSION],
        "options": {"keep_leaking": keep_leaking},
        "columns": columns,
        "vocabulary": [],
        "left_out": [{"column": name, "why": why} for name, why in left_out.items()],
        "kept_leaking": [name for name in known.leaking if name in columns],
        "notes": known.notes,
        "counts": {"sessions": n, "too_short": 0, "population": n},
        "fingerprint": fingerprint("whole", table, fingerprint_file(file), keep_leaking),
    }
    numbers, nothing, pages = np.arange(n), np.zeros(n, dtype=np.int64), np.zeros((n, 0), dtype=np.int64)
    view = SessionsView(found, pages.astype(object), pages, labels, np.full(n, np.inf))
    FeatureTable(about, view, numbers, numbers, nothing, nothing, np.full(n, np.nan)).save(folder)
    return open_features(folder)


def _read(file: Path, label: str, columns: Mapping[str, str], header: Sequence[str]) -> dict[str, np.ndarray]:
    pa, pcsv = (require(name, "commerce", PURPOSE) for name in ("pyarrow", "pyarrow.csv"))
    types = {name: pa.string() if kind == "text" else pa.float64() for name, kind in columns.items()}
    how: dict[str, Any] = {"column_types": types | {label: pa.bool_()}, "include_columns": [label, *columns]}
    how |= {"true_values": ["TRUE", "True", "true", "1"], "false_values": ["FALSE", "False", "false", "0"]}
    convert = pcsv.ConvertOptions(null_values=[""], **how)
    read = pcsv.ReadOptions(column_names=header, skip_rows=1, use_threads=False)
    try:
        rows = pcsv.read_csv(file, read, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise DataError(f"{file} cannot be read: {error}", "repair the file") from None
    found = {name: rows[name].to_numpy() for name in (label, *columns)}
    wrong = {f"{label} is missing": rows[label].null_count}
    for name, kind in columns.items():
        if kind == "text":
            found[name] = text_array((text or NOTHING).strip() for text in found[name])
        else:
            wrong[f"{name} is infinite"] = np.isinf(found[name]).any()
    for what in (one for one, is_so in wrong.items() if is_so):
        raise DataError(f"{file}: {what} in a row", "repair the file")
    return found


def known_visitors(table: FeatureTable) -> np.ndarray:
    """Return (n,) bool: the sessions of visitors who count as known."""
    column, value = SESSION_TABLES[table.about["name"]].known
    found: np.ndarray = table.view.columns[column] == value
    return found


def sessions_of_table(table: FeatureTable, folder: Path) -> None:
    """Write the sessions of such a table as :class:`SessionTables` into a folder."""
    pa, parquet, duckdb = (
        require(name, "commerce", PURPOSE) for name in ("pyarrow", "pyarrow.parquet", "duckdb")
    )
    form, own = SESSION_TABLES[table.about["name"]], {"place": np.arange(len(table)), "bought": table.labels}
    with duckdb.connect() as database:
        database.register("given", pa.table({**table.view.columns, **own, "known": known_visitors(table)}))
        sessions = database.sql(form.sessions).to_arrow_table()
        database.register("sessions", sessions)
        counted = database.sql(PASSES["queries"]["counts"].format("sessions"))
        counts = dict(zip(counted.columns, counted.fetchone(), strict=True))
    for name, declared in TABLES.items():
        rows = pa.schema({one: pa.type_for_alias(kind) for one, kind in declared.items()}).empty_table()
        if name == "sessions":
            rows = pa.concat_tables([rows, sessions], promote_options="default")
        (folder / name).mkdir(parents=True)
        parquet.write_table(rows, folder / name / "part-0000.parquet")
    about = {
        "log": table.about["name"],
        "zone": "no zone",
        "log_fingerprint": table.fingerprint,
        "options": intent.SessionOptions(by="given").model_dump(),
        "counts": dict.fromkeys(("several_visitors", "pages", "queries"), 0) | counts,
        "fingerprint": fingerprint("whole sessions", table.fingerprint),
        "notes": form.session_notes,
    }
    SessionTables(about).save(folder / SessionTables.marker())


# Sources: logs, tables of whole sessions, folders of features.


def features_of_source(
    source: Path,
    *,
    folder: Path,
    options: intent.FeatureOptions | None = None,
    sessions: intent.SessionOptions | None = None,
    engine: intent.EngineOptions | None = None,
    files: intent.TableOptions | None = None,
) -> FeatureTable:
    """Make the features of a log, or of a table of whole sessions, and export them."""
    files, options = files or intent.TableOptions(), options or intent.FeatureOptions()
    exports = files.export or files.csv
    if source.is_file():
        if exports or options.also or options.compat != "none":
            fix = "leave --compat, --feature, --export and --csv out"
            raise UsageError(f"{source} is a table of whole sessions, without steps", fix)
        return make_whole_features(source, folder=folder, keep_leaking=files.keep_leaking)
    if files.keep_leaking:
        raise UsageError("--keep-leaking is for tables of whole sessions", "leave it out")
    engine = engine or intent.EngineOptions()
    with open_engine(engine.engine, memory_limit=engine.memory_limit) as runs:
        tables = sessionise(Log.open(source), sessions, engine=runs)
        table = make_features(tables, options=options, engine=runs, folder=folder)
    if exports:
        export_steps(table, folder / "steps.parquet", as_csv=files.csv)
    return table


def is_table(path: Path) -> bool:
    """Return whether it is a folder of features, or named as a table of whole sessions."""
    return FeatureTable.is_at(path) or path.name.endswith((".csv", ".csv.gz"))


@contextmanager
def opened_table(path: Path, keep_leaking: bool = False) -> Iterator[FeatureTable]:
    """Open a folder of features; or make those of a log or a table of whole sessions, and remove them afterwards."""
    if path.is_dir() and not Log.is_at(path):
        yield open_features(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        files = intent.TableOptions(keep_leaking=keep_leaking)
        yield features_of_source(path, folder=Path(folder) / "features", files=files)
