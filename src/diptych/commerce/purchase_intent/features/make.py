"""Make tables of features: of the sessions of a log, one expression on any engine; or of a known CSV file."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.logs.log import Log
from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.features.fitting import FEATURES, OTHER_PAGE, ColumnKind
from diptych.commerce.purchase_intent.features.table import (
    SESSION,
    SESSIONS_FILE,
    WHOLE_SESSION,
    FeatureHeader,
    FeatureTable,
    open_features,
    save_header,
)
from diptych.commerce.purchase_intent.features.view import COLUMNS, EARLIER_DEVICES, NO_PAGE, NOTHING
from diptych.commerce.purchase_intent.options import EngineOptions, FeatureOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import BUFFER, sessionise
from diptych.core.context import task, track
from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder, atomic_path
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.reading import open_text

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from diptych.commerce.purchase_intent.engine import Engine
    from diptych.commerce.purchase_intent.sessions import SessionTables

STEPS_FILE = "steps.parquet"
_PURPOSE = "a table of features"
_DAY = 86_400 * SECOND


# What was known of a visitor when a session began.
#
# Three streams per visitor are put in the order of time: sessions that ask, sessions that count, purchases that
# count; what an asking session gets is what was added up strictly before it. So nothing is compared with everything,
# and no session sees itself, one that begins later, or a purchase that comes later in an earlier one.
#
# A session counts from its start where its visitor was known before its first page. Where the visitor logged in
# later, it counts from its end: before the log-in nobody knew whose it was. The same holds for a purchase before
# the log-in.

_ASKS, _VISIT, _PURCHASE = 0, 1, 2
"""At one moment whoever asks comes first, so that it sees only what was strictly before."""


def visitor_history(sessions: ir.Table, least_pages: int) -> ir.Table:
    """Return the history of every session that has a visitor and at least that many pages."""
    ibis = require("ibis", "commerce", _PURPOSE)
    known = sessions.filter(sessions.visitor_id.notnull())
    asking = known.filter(known.n_pages >= least_pages)
    known = known.semi_join(asking.select("visitor_id").distinct(), "visitor_id")
    on_arrival = known.pages_before_identified == 0
    visits = known.select(
        "visitor_id", "session_id", "device", at_us=ibis.ifelse(on_arrival, known.start_us, known.end_us)
    )
    bought = known.filter(known.first_purchase_us.notnull())
    was_known = bought.pages_before_identified < bought.pages_before_purchase
    was_known = (bought.pages_before_identified == 0) | was_known
    purchases = bought.select(
        "visitor_id",
        "session_id",
        "device",
        at_us=ibis.ifelse(was_known, bought.first_purchase_us, bought.end_us),
        bought_us=bought.first_purchase_us,
    )
    added = _added_up(asking, visits, purchases)
    numbered = _numbered(visits)
    same = [added.visitor_id == numbered.visitor_id, added.sessions == numbered.number]
    return added.left_join(numbered, same).select(
        *(added[name] for name in ("session_id", "sessions", "orders", "last_purchase_us", "devices")),
        ibis.coalesce(numbered.switches, 0).name("switches"),
        ibis.greatest(added.sessions - 1, 0).name("pairs"),
        *(numbered[name] for name in EARLIER_DEVICES),
    )


def _added_up(asking: ir.Table, visits: ir.Table, purchases: ir.Table) -> ir.Table:
    """Return counts of what was before each asking session."""
    ibis = require("ibis", "commerce", _PURPOSE)
    nothing = ibis.null("int64")
    asking = asking.select("visitor_id", "session_id", "device", at_us=asking.start_us, bought_us=nothing)
    streams = {_ASKS: asking, _VISIT: visits.mutate(bought_us=nothing), _PURCHASE: purchases}
    columns = ("visitor_id", "session_id", "device", "at_us", "role", "bought_us")
    marked = (one.mutate(role=ibis.literal(role, "int64")) for role, one in streams.items())
    stream = ibis.union(*(one.select(*columns) for one in marked))
    so_far = {"order_by": ["at_us", "role"], "rows": (None, 0)}
    by_visitor = ibis.window(group_by="visitor_id", **so_far)
    stream = stream.mutate(visit=(stream.role == _VISIT).cast("int64"))
    stream = stream.mutate(
        on_device=stream.visit.sum().over(ibis.window(group_by=["visitor_id", "device"], **so_far))
    )
    first_on_device = ((stream.visit == 1) & (stream.on_device == 1)).cast("int64")
    stream = stream.mutate(
        sessions=stream.visit.sum().over(by_visitor),
        orders=(stream.role == _PURCHASE).cast("int64").sum().over(by_visitor),
        last_purchase_us=stream.bought_us.max().over(by_visitor),
        earlier_devices=first_on_device.sum().over(by_visitor),
    )
    asked = stream.filter(stream.role == _ASKS)
    return asked.mutate(devices=asked.earlier_devices + (asked.on_device == 0).cast("int64"))


def _numbered(visits: ir.Table) -> ir.Table:
    """Return the visits of each visitor, 1 is the first, with the devices of those before and the switches so far."""
    ibis = require("ibis", "commerce", _PURPOSE)
    order = {"group_by": "visitor_id", "order_by": ["at_us", "session_id"]}
    in_turn = ibis.window(**order)
    numbered = visits.mutate(
        number=ibis.row_number().over(in_turn) + 1,
        **{
            name: visits.device.lag(back).over(in_turn) if back else visits.device
            for back, name in enumerate(EARLIER_DEVICES)
        },
    )
    before = numbered[EARLIER_DEVICES[1]]
    switched = (before.notnull() & (numbered.device != before)).cast("int64")
    return numbered.mutate(switches=switched.sum().over(ibis.window(**order, rows=(None, 0))))


def feature_rows(sessions: ir.Table, pages: ir.Table, steps: int, since_us: int | None) -> ir.Table:
    """Return the table of features: a row per session that has pages for the last step and the buffer."""
    ibis = require("ibis", "commerce", _PURPOSE)
    long = sessions.filter(sessions.n_pages >= steps + BUFFER)
    long = long.mutate(number_of_person=long.session_id.min().over(ibis.window(group_by="person")))
    history = visitor_history(sessions, steps + BUFFER)
    opened = {}
    for step in range(1, steps + 1):
        there = pages.position == step
        opened[f"page_type_{step}"] = pages.page_type.max(where=there)
        opened[f"page_us_{step}"] = pages.t_us.max(where=there)
    by_session = pages.group_by("session_id").aggregate(**opened)
    rows = long.left_join(history, "session_id").drop("session_id_right").left_join(by_session, "session_id")
    days = (rows.start_us - ibis.literal(since_us, "int64")) / _DAY
    rows = rows.mutate(
        person=rows.number_of_person,
        label=rows.purchase,
        days_since_purchase=(rows.start_us - rows.last_purchase_us) / _DAY,
        history_days=ibis.ifelse(rows.sessions.notnull(), days, ibis.null("float64")),
    )
    numbers = ["pages_before_purchase", "pages_before_identified"]
    numbers += [column.name for column in COLUMNS if column.kind == "number"]
    texts = [column.name for column in COLUMNS if column.kind == "text"]
    rows = rows.mutate(
        **{name: rows[name].cast("float64") for name in numbers},
        **{name: rows[name].fill_null(NOTHING) for name in texts},
    )
    return rows.select(*SESSION, *(column.name for column in COLUMNS), *opened).order_by("session_id")


def make_features(
    tables: SessionTables,
    *,
    folder: Path | str,
    options: FeatureOptions | None = None,
    engine: Engine | None = None,
) -> FeatureTable:
    """Write everything that is known of the sessions one may predict on.

    A session is in the table if it has pages for the last step and the buffer; what a step leaves out besides is
    decided when it is asked for, and counted here.
    """
    from diptych.commerce.purchase_intent.engine import open_engine

    options, steps = options or FeatureOptions(), int(tables.about["options"]["pages"])
    with (
        nullcontext(engine) if engine is not None else open_engine() as runs,
        atomic_folder(folder, FeatureHeader.marker()) as inside,
    ):
        sessions, pages = (runs.read(tables.files(name)) for name in ("sessions", "pages"))
        counted = sessions.aggregate(n=sessions.count(), since_us=sessions.start_us.min())
        size = runs.to_arrow(counted).to_pylist()[0]
        with task("features of sessions", size["n"], "sessions") as bar:
            runs.write(feature_rows(sessions, pages, steps, size["since_us"]), inside / SESSIONS_FILE)
            bar.advance(size["n"])
        metadata = require("pyarrow.parquet", "commerce", _PURPOSE).read_metadata(inside / SESSIONS_FILE)
        given, n = options.model_dump(), metadata.num_rows
        about = {
            "kind": "steps",
            "name": tables.log_name,
            "zone": tables.zone,
            "has_times": True,
            "since_us": size["since_us"],
            "steps": list(range(steps + 1)),
            "options": given | {"also": list(options.also)},
            "session_options": tables.about["options"],
            "sessions_fingerprint": tables.fingerprint,
            "columns": {column.name: column.kind for column in COLUMNS},
            "vocabulary": _vocabulary(runs, pages, options.types),
            "counts": {"sessions": size["n"], "too_short": size["n"] - n, "population": n},
            "fingerprint": fingerprint("features", FeatureHeader.FORMAT, tables.fingerprint, given),
        }
        save_header(inside, about)
    return open_features(folder)


def _vocabulary(engine: Engine, pages: ir.Table, most: int) -> list[str]:
    """Return the most frequent page types, by count, then name."""
    ibis = require("ibis", "commerce", _PURPOSE)
    counted = pages.group_by("page_type").aggregate(n=pages.count())
    frequent = counted.order_by([ibis.desc("n"), "page_type"]).limit(most)
    return [str(name) for name in engine.to_arrow(frequent).column("page_type").to_pylist()]


_COMPUTED = ("dwell-mean", "dwell-deviation", "switch-probability")
"""Features without parameters that are no column of the view already."""


def export_steps(table: FeatureTable, file: Path | str) -> int:
    """Write one row per session and step of its population, for other tools.

    Columns: ``session_id``, ``setting``, ``step``, ``label``, ``page_type`` of the page opened last, the columns
    of the view (history is empty where the visitor is not known by then) and the features that are computed from
    them alone. Scores of chains and conversion rates are not there: they belong to a training part.
    """
    pa, parquet = (require(name, "commerce", "an export of steps") for name in ("pyarrow", "pyarrow.parquet"))
    fields = [
        ("session_id", pa.int64()),
        ("setting", pa.string()),
        ("step", pa.int8()),
        ("label", pa.bool_()),
    ]
    fields += [("page_type", pa.string())]
    fields += [(one.name, pa.string() if one.kind == "text" else pa.float64()) for one in COLUMNS]
    schema = pa.schema(fields + [(name.replace("-", "_"), pa.float64()) for name in _COMPUTED])
    names = np.array([*table.view.vocabulary, OTHER_PAGE, None], dtype=object)  # NO_PAGE is -1: the last
    cells, n = [(setting, step) for setting in table.settings for step in table.steps], 0
    with atomic_path(file) as path, parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for setting, step in track(cells, "exporting", unit="steps"):
            rows = table.population(setting, step)
            view = table.at(rows, step)
            block = {
                "session_id": table.session_ids[rows],
                "setting": [setting] * len(rows),
                "step": [step] * len(rows),
                "label": view.labels,
                "page_type": names[view.page_types[:, -1] if step else np.full(len(rows), NO_PAGE)],
                **{one.name: _or_none(view.columns[one.name]) for one in COLUMNS},
                **{
                    one.replace("-", "_"): FEATURES.get(one).how.values(view, None)[:, 0] for one in _COMPUTED
                },
            }
            # from_pandas: NaN is written as null, which other tools take for none
            arrays = [pa.array(block[field.name], field.type, from_pandas=True) for field in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            n += len(rows)
    return n


def _or_none(values: np.ndarray) -> Any:
    return [text or None for text in values] if values.dtype == object else values


@dataclass(frozen=True)
class SessionTable:
    """A format of tables whose rows are whole sessions: their columns were computed when they were over."""

    name: str  # e.g. uci-shoppers
    label: str  # the column that says whether something was bought: true or false
    columns: Mapping[str, ColumnKind]  # name → number, or text for categories; in order, without the label
    leaking: Mapping[str, str] = field(
        default_factory=dict
    )  # columns that know the outcome, left out, and why
    notes: tuple[str, ...] = ()  # what a reader of results has to know


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
        "rows are whole sessions: nothing is said about how early in them a purchase could be foreseen",
        "nobody says who a session is of: every row counts as somebody else",
        "of times only the month's name is there, so that sessions cannot be split by time",
    ),
)
SESSION_TABLES = (UCI_SHOPPERS,)


def recognise_session_table(file: Path) -> tuple[SessionTable, list[str]]:
    """Return the format of a file, by its header, whatever the order of columns; and that header."""
    with open_text(file, newline="", error=DataError, fix="give a CSV file in UTF-8") as text:
        header = [name.strip() for name in next(csv.reader(text), [])]
    for known in SESSION_TABLES:
        if {known.label, *known.columns} <= set(header):
            return known, header
    shown, names = (
        shorten(", ".join(header), 120, placeholder=" …"),
        ", ".join(one.name for one in SESSION_TABLES),
    )
    raise DataError(
        f"{file} is no known table of whole sessions (columns: {shown or 'none'})",
        f"known: {names}; a log of events is imported first: diptych intent ingest",
    )


def make_whole_features(file: Path | str, *, folder: Path | str, keep_leaking: bool = False) -> FeatureTable:
    """Write the sessions of a known table as they are; its columns are the features."""
    file = Path(file)
    table, header = recognise_session_table(file)
    columns = {
        name: kind for name, kind in table.columns.items() if keep_leaking or name not in table.leaking
    }
    rows = _read_sessions(file, table, columns, header)
    left_out = [{"column": name, "why": why} for name, why in table.leaking.items() if name not in columns]
    with atomic_folder(folder, FeatureHeader.marker()) as inside:
        require("pyarrow.parquet", "commerce", _PURPOSE).write_table(rows, inside / SESSIONS_FILE)
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
            "counts": {"sessions": len(rows), "too_short": 0, "population": len(rows)},
            "fingerprint": fingerprint("whole", table.name, fingerprint_file(file), keep_leaking),
        }
        save_header(inside, about)
    return open_features(folder)


def _read_sessions(
    file: Path, table: SessionTable, columns: Mapping[str, ColumnKind], header: list[str]
) -> Any:
    """Return the rows of ``sessions.parquet``."""
    pa, pc, pcsv = (require(f"pyarrow{name}", "commerce", _PURPOSE) for name in ("", ".compute", ".csv"))
    types = {name: pa.string() if kind == "text" else pa.float64() for name, kind in columns.items()}
    convert = pcsv.ConvertOptions(
        column_types=types | {table.label: pa.bool_()},
        include_columns=[table.label, *columns],
        null_values=[""],
        true_values=["TRUE", "True", "true", "1"],
        false_values=["FALSE", "False", "false", "0"],
    )
    read = pcsv.ReadOptions(column_names=header, skip_rows=1, use_threads=False)
    try:
        found = pcsv.read_csv(file, read, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise DataError(f"{file} cannot be read: {error}", "repair the file") from None
    infinite = [
        name for name in columns if types[name] == pa.float64() and pc.any(pc.is_inf(found[name])).as_py()
    ]
    if infinite or found[table.label].null_count:
        raise DataError(
            f"{file}: {[*infinite, table.label][0]} is infinite or missing in a row", "repair the file"
        )
    numbers, nothing = np.arange(len(found)), np.zeros(len(found), dtype=np.int64)
    none = np.full(len(found), np.nan)
    session = dict(
        zip(SESSION, (numbers, numbers, nothing, nothing, found[table.label], none, none), strict=True)
    )
    values = {
        name: pc.utf8_trim_whitespace(found[name]) if kind == "text" else found[name]
        for name, kind in columns.items()
    }
    return pa.table(session | values)


def features_of_source(
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
        table = make_features(
            sessionise(log, sessions, engine=runs), options=options, engine=runs, folder=folder
        )
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
