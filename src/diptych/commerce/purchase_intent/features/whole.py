"""Tables whose rows are whole sessions, their columns computed when they were over: UCI's shoppers."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diptych.commerce.purchase_intent.features.rows import PURPOSE
from diptych.commerce.purchase_intent.features.table import WHOLE_SESSION, FeatureTable, open_features
from diptych.commerce.purchase_intent.features.view import NOTHING, SessionsView, text_array
from diptych.core.errors import DataError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.reading import open_text


@dataclass(frozen=True)
class SessionTable:
    """A format."""

    name: str  # e.g. uci-shoppers
    label: str  # the column that says whether something was bought: true or false
    columns: Mapping[str, str]  # name → number, or text for categories; in order, without the label
    leaking: Mapping[str, str]  # columns that know the outcome, left out, and why
    notes: tuple[str, ...]  # what a reader of results has to know


_NUMBERS = """
    Administrative Administrative_Duration Informational Informational_Duration
    ProductRelated ProductRelated_Duration BounceRates ExitRates PageValues SpecialDay
"""
_TEXTS = (
    "Month OperatingSystems Browser Region TrafficType VisitorType Weekend"  # numbers of kinds, in no order
)

# UCI 468, Online Shoppers Purchasing Intention: 12,330 sessions of a shop in one year, one per user.
#
# Sakar, Polat, Katircioglu and Kastro, Real-time prediction of online shoppers' purchasing intention using
# multilayer perceptron and LSTM recurrent neural networks, 2019.
UCI_SHOPPERS = SessionTable(
    name="uci-shoppers",
    label="Revenue",
    columns={**dict.fromkeys(_NUMBERS.split(), "number"), **dict.fromkeys(_TEXTS.split(), "text")},
    leaking={
        "PageValues": "it is the value of transactions that followed the pages, this session's own among them"
    },
    notes=(
        "rows are whole sessions: how early in them a purchase could be foreseen is not known",
        "it is not known who a session is of: every row counts as another person",
        "of times only the month's name is there, so that sessions cannot be split by time",
    ),
)
SESSION_TABLES = (UCI_SHOPPERS,)


def recognise(file: Path) -> tuple[SessionTable, list[str]]:
    """Return the format of a file, by its header, whatever the order of columns; and that header."""
    with open_text(file, newline="", error=DataError, fix="give a CSV file in UTF-8") as text:
        header = [name.strip() for name in next(csv.reader(text), [])]
    for known in SESSION_TABLES:
        if {known.label, *known.columns} <= set(header):
            return known, header
    raise DataError(
        f"{file} is no known table of whole sessions (columns: {', '.join(header)[:120] or 'none'})",
        f"known: {', '.join(one.name for one in SESSION_TABLES)}; a log of events is imported first: "
        "diptych intent ingest",
    )


def make_whole_features(file: Path | str, *, folder: Path | str, keep_leaking: bool = False) -> FeatureTable:
    """Write the sessions of a known table as they are; its columns are the features."""
    file = Path(file)
    known, header = recognise(file)
    columns = {
        name: kind for name, kind in known.columns.items() if keep_leaking or name not in known.leaking
    }
    found = _read(file, known, columns, header)
    labels = found.pop(known.label)
    n = len(labels)
    about = {
        "kind": "whole",
        "name": known.name,
        "zone": None,
        "has_times": False,
        "since_us": None,
        "steps": [WHOLE_SESSION],
        "options": {"keep_leaking": keep_leaking},
        "columns": columns,
        "vocabulary": [],
        "left_out": [
            {"column": name, "why": why} for name, why in known.leaking.items() if name not in columns
        ],
        "kept_leaking": [name for name in known.leaking if name in columns],
        "notes": list(known.notes),
        "counts": {"sessions": n, "too_short": 0, "population": n},
        "fingerprint": fingerprint("whole", known.name, fingerprint_file(file), keep_leaking),
    }
    numbers, nothing = np.arange(n), np.zeros(n, dtype=np.int64)
    pages = np.zeros((n, 0), dtype=np.int64)
    view = SessionsView(found, pages, pages, (), labels, np.full(n, np.inf))
    FeatureTable(about, view, numbers, numbers, nothing, nothing, np.full(n, np.nan)).save(folder)
    return open_features(folder)


def _read(
    file: Path, known: SessionTable, columns: Mapping[str, str], header: list[str]
) -> dict[str, np.ndarray]:
    """Return the label and the columns."""
    pa, pc, pcsv = (require(f"pyarrow{name}", "commerce", PURPOSE) for name in ("", ".compute", ".csv"))
    types = {name: pa.string() if kind == "text" else pa.float64() for name, kind in columns.items()}
    convert = pcsv.ConvertOptions(
        column_types=types | {known.label: pa.bool_()},
        include_columns=[known.label, *columns],
        null_values=[""],
        true_values=["TRUE", "True", "true", "1"],
        false_values=["FALSE", "False", "false", "0"],
    )
    read = pcsv.ReadOptions(column_names=header, skip_rows=1, use_threads=False)
    try:
        rows = pcsv.read_csv(file, read, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise DataError(f"{file} cannot be read: {error}", "repair the file") from None
    infinite = [
        name for name, kind in columns.items() if kind == "number" and pc.any(pc.is_inf(rows[name])).as_py()
    ]
    if infinite or rows[known.label].null_count:
        wrong = [*infinite, known.label][0]
        raise DataError(f"{file}: {wrong} is infinite or missing in a row", "repair the file")
    found = {name: rows[name].to_numpy() for name in (known.label, *columns)}
    for name in (name for name, kind in columns.items() if kind == "text"):
        found[name] = text_array(pc.utf8_trim_whitespace(rows[name]).fill_null(NOTHING).to_pylist())
    return found
