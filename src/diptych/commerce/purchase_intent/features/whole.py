"""Tables of whole sessions: somebody else has computed the columns, when the sessions were over."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import IO

import numpy as np

from diptych.commerce.logs.log import Log
from diptych.commerce.purchase_intent.features.export import STEPS_FILE, export_steps
from diptych.commerce.purchase_intent.features.fitting import ColumnKind
from diptych.commerce.purchase_intent.features.make import make_features
from diptych.commerce.purchase_intent.features.table import (
    PAGE_TIMES,
    PAGE_TYPES,
    WHOLE_SESSION,
    FeatureHeader,
    FeatureTable,
    count_populations,
    open_features,
    write_sessions,
)
from diptych.commerce.purchase_intent.features.view import text_array
from diptych.commerce.purchase_intent.options import EngineOptions, FeatureOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.reading import open_text
from diptych.core.registry import Registry


@dataclass(frozen=True)
class SessionTable:
    """One format.

    Attributes:
        leaking: columns that know the outcome, and why; they are left out unless they are asked for.
    """

    name: str  # e.g. uci-shoppers
    description: str  # one line
    label: str  # the column that says whether something was bought: true or false
    columns: Mapping[str, ColumnKind]  # name → number, or text for categories; in order, without the label
    leaking: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a reader of results has to know

    def recognises(self, header: list[str]) -> bool:
        """Whether a file with this first line is of the format: it has all columns, in whatever order."""
        return {self.label, *self.columns} <= set(header)


SESSION_TABLES: Registry[SessionTable] = Registry(
    "table of sessions", "diptych.commerce.purchase_intent.features.whole"
)
"""All formats; each is declared in a file of its own."""


@contextmanager
def open_table(file: Path) -> Iterator[IO[str]]:
    """The text of a CSV file, packed with gzip or not."""
    with open_text(file, newline="", error=DataError, fix="give a CSV file in UTF-8") as text:
        yield text


def read_header(file: Path) -> list[str]:
    """Names of columns, in order."""
    with open_table(file) as text:
        return [name.strip() for name in next(csv.reader(text), [])]


def recognise_session_table(file: Path) -> SessionTable:
    """The format of a file, by its header."""
    header = read_header(file)
    for known in SESSION_TABLES:
        if known.recognises(header):
            return known
    shown = shorten(", ".join(header), 120, placeholder=" …")
    raise DataError(
        f"{file} is no known table of whole sessions (columns: {shown or 'none'})",
        f"known: {', '.join(SESSION_TABLES.names())}; a log of events is imported first: diptych intent ingest",
    )


# UCI 468, Online Shoppers Purchasing Intention: 12,330 sessions of a shop in one year, one per user.
#
# Sakar, Polat, Katircioglu and Kastro, Real-time prediction of online shoppers' purchasing intention using
# multilayer perceptron and LSTM recurrent neural networks, 2019.
UCI_SHOPPERS = SESSION_TABLES.add(
    SessionTable(
        name="uci-shoppers",
        description="online_shoppers_intention.csv of the UCI repository (468): 12,330 whole sessions",
        label="Revenue",
        columns={
            "Administrative": "number",
            "Administrative_Duration": "number",
            "Informational": "number",
            "Informational_Duration": "number",
            "ProductRelated": "number",
            "ProductRelated_Duration": "number",
            "BounceRates": "number",
            "ExitRates": "number",
            "PageValues": "number",
            "SpecialDay": "number",
            "Month": "text",
            "OperatingSystems": "text",  # numbers of kinds, in no order
            "Browser": "text",
            "Region": "text",
            "TrafficType": "text",
            "VisitorType": "text",
            "Weekend": "text",
        },
        leaking={
            "PageValues": "it is the value of transactions that followed the pages, this session's own among them"
        },
        notes=(
            "rows are whole sessions: nothing is said about how early in them a purchase could be foreseen",
            "nobody says who a session is of: every row counts as somebody else",
            "of times only the month's name is there, so that sessions cannot be split by time",
        ),
    )
)


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
    with atomic_folder(folder, FeatureHeader.marker()) as inside:
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
        header = inside / FeatureHeader.marker()
        FeatureHeader(about).save(header)
        FeatureHeader(about | {"populations": count_populations(open_features(inside))}).save(header)
    return open_features(folder)


def features_of(
    source: Path,
    *,
    folder: Path,
    options: FeatureOptions,
    sessions: SessionOptions,
    engine: EngineOptions,
    export: bool = False,
    keep_leaking: bool = False,
) -> FeatureTable:
    """Make the features of a log, or of a table of whole sessions; ``export`` writes one row per step, too."""
    if source.is_file():
        if export or options.also or options.compat != "none":
            raise UsageError(
                f"{source} is a table of whole sessions, without steps",
                "leave --compat, --feature and --export out",
            )
        return make_whole_features(source, folder=folder, keep_leaking=keep_leaking)
    if keep_leaking:
        raise UsageError("--keep-leaking is for tables of whole sessions", "leave it out")
    log = Log.open(source)
    with engine.open() as runs:
        made = sessionise(log, sessions, engine=runs)
        table = make_features(made, options=options, engine=runs, folder=folder)
    if export:
        export_steps(table, folder / STEPS_FILE)
    return table


def is_table(path: Path) -> bool:
    """Return whether it is a folder of features, or named as a table of whole sessions."""
    return FeatureHeader.is_at(path) or path.name.endswith((".csv", ".csv.gz"))


@contextmanager
def opened_table(path: Path, keep_leaking: bool) -> Iterator[FeatureTable]:
    """Open a folder of features; or make those of a table of whole sessions, and remove them after the block."""
    if path.is_dir():
        yield open_features(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield make_whole_features(path, folder=Path(folder) / "features", keep_leaking=keep_leaking)


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
