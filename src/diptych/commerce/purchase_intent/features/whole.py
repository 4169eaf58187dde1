"""Tables whose rows are whole sessions, their columns computed when they were over: UCI's shoppers."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from diptych.commerce.purchase_intent.features.table import WHOLE_SESSION, FeatureTable, open_features
from diptych.commerce.purchase_intent.features.view import NOTHING, PURPOSE, SessionsView, text_array
from diptych.commerce.purchase_intent.options import SessionOptions
from diptych.commerce.purchase_intent.sessions import TABLES, SessionTables
from diptych.core.errors import DataError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.reading import open_text

_DECLARED = tomllib.loads(Path(__file__).with_name("whole.toml").read_text("utf-8"))
SESSION_TABLES = {name: SimpleNamespace(**one) for name, one in _DECLARED.items()}


def recognise_session_table(file: Path) -> tuple[str, list[str]]:
    """Return the name of a known table of whole sessions, and its columns in their order."""
    with open_text(file, newline="", error=DataError, fix="give a CSV file in UTF-8") as text:
        header = [name.strip() for name in next(csv.reader(text), [])]
    for name, one in SESSION_TABLES.items():
        if {one.label, *one.numbers, *one.texts} <= {*header}:
            return name, header
    raise DataError(
        f"{file} is no known table of whole sessions (columns: {', '.join(header)[:120] or 'none'})",
        f"known: {', '.join(SESSION_TABLES)}; a log of events is imported first: diptych intent ingest",
    )


def is_session_table(file: Path) -> bool:
    """Return whether a file is a known table of whole sessions, by its header."""
    try:
        return bool(recognise_session_table(file))
    except DataError:
        return False


def make_whole_features(file: Path | str, *, folder: Path | str, keep_leaking: bool = False) -> FeatureTable:
    """Write the sessions of a known table, whatever the order of its columns; they are the features."""
    file = Path(file)
    table, header = recognise_session_table(file)
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
    view = SessionsView(found, pages, pages, (), labels, np.full(n, np.inf))
    FeatureTable(about, view, numbers, numbers, nothing, nothing, np.full(n, np.nan)).save(folder)
    return open_features(folder)


def _read(file: Path, label: str, columns: Mapping[str, str], header: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the label and the columns."""
    pa, pcsv = (require(name, "commerce", PURPOSE) for name in ("pyarrow", "pyarrow.csv"))
    types = {name: pa.string() if kind == "text" else pa.float64() for name, kind in columns.items()}
    convert = pcsv.ConvertOptions(
        column_types=types | {label: pa.bool_()},
        include_columns=[label, *columns],
        null_values=[""],
        true_values=["TRUE", "True", "true", "1"],
        false_values=["FALSE", "False", "false", "0"],
    )
    read = pcsv.ReadOptions(column_names=header, skip_rows=1, use_threads=False)
    try:
        rows = pcsv.read_csv(file, read, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise DataError(f"{file} cannot be read: {error}", "repair the file") from None
    found = {name: rows[name].to_numpy() for name in (label, *columns)}
    for name, kind in columns.items():
        if kind == "text":
            found[name] = text_array((text or NOTHING).strip() for text in found[name])
        elif np.isinf(found[name]).any():
            raise DataError(f"{file}: {name} is infinite in a row", "repair the file")
    if rows[label].null_count:
        raise DataError(f"{file}: {label} is missing in a row", "repair the file")
    return found


def known_visitors(table: FeatureTable) -> np.ndarray:
    """Return (n,) bool: the sessions of visitors who count as known."""
    column, value = SESSION_TABLES[table.about["name"]].known
    found: np.ndarray = table.view.columns[column] == value
    return found


def sessions_of_table(table: FeatureTable, folder: Path) -> None:
    """Write the sessions of such a table as :class:`SessionTables` into a folder."""
    pa, parquet = (require(name, "commerce", PURPOSE) for name in ("pyarrow", "pyarrow.parquet"))
    form, columns, known = SESSION_TABLES[table.about["name"]], table.view.columns, known_visitors(table)
    pages = np.nan_to_num(sum(columns[name] for name in form.pages)).astype(np.int64)
    numbers, nothing = np.arange(len(table)), np.zeros(len(table), dtype=np.int64)
    ids = numbers.astype(str).astype(object)
    sessions = {
        **dict.fromkeys(("start_us", "end_us", "start_day", "n_queries"), nothing),
        **dict.fromkeys(("length", "n_events", "n_pages"), pages),
        **{name: [f"{text} {code}" for code in columns[of]] for name, (of, text) in form.codes.items()},
        **{
            "session_id": numbers,
            "client_id": ids,
            "person": ids,
            "visitor_id": [one if is_so else None for one, is_so in zip(ids, known, strict=True)],
        },
        "n_visitors": known.astype(np.int64),
        "purchase": table.labels,
        "weekend": [text.upper() == "TRUE" for text in columns["Weekend"]],
    }
    for name, declared in TABLES.items():
        types = {one: pa.type_for_alias(kind) for one, kind in declared.items()}
        rows = pa.schema(types).empty_table()
        if name == "sessions":
            arrays = {one: pa.array(values, types.get(one)) for one, values in sessions.items()}
            rows = pa.concat_tables([rows, pa.table(arrays)], promote_options="default")
        (folder / name).mkdir(parents=True)
        parquet.write_table(rows, folder / name / "part-0000.parquet")
    counts = dict.fromkeys(("several_visitors", "pages", "queries"), 0)
    counts |= {"events": int(pages.sum()), "sessions": len(table), "identified": int(known.sum())}
    about = {
        "log": table.about["name"],
        "zone": "no zone",
        "log_fingerprint": table.fingerprint,
        "options": SessionOptions(by="given").model_dump(),
        "counts": counts | {"purchases": int(table.labels.sum())},
        "fingerprint": fingerprint("whole sessions", table.fingerprint),
        "notes": form.session_notes,
    }
    SessionTables(about).save(folder / SessionTables.marker())
