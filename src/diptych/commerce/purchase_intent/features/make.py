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
from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.features.fitting import FEATURES, page_names
from diptych.commerce.purchase_intent.features.table import (
    SESSIONS_FILE,
    FeatureTable,
    open_features,
)
from diptych.commerce.purchase_intent.features.view import (
    COLUMNS,
    EARLIER_DEVICES,
    NOTHING,
    PURPOSE,
    SESSION,
)
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
_EXPORTED = (
    "dwell-mean",
    "dwell-deviation",
    "switch-probability",
)  # no columns of the view, without an encoder


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
        given = options.model_dump()
        about = {
            "kind": "steps",
            "name": tables.about["log"],
            "zone": tables.about["zone"],
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
    import ibis

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
            for name in (one.name for one in schema if one.type == pa.string()):
                block[name] = np.array([text or None for text in block[name]], object)  # null, as NaN becomes
            arrays = [pa.array(block[one.name], one.type, from_pandas=True) for one in schema]
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
    wanted: TableOptions | None = None,
) -> FeatureTable:
    """Make the features of a log, or of a table of whole sessions, and export them."""
    wanted = wanted or TableOptions()
    exports = [folder / STEPS_FILES[name] for name in STEPS_FILES if getattr(wanted, name)]
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


# What was known of a visitor when a session began.
#
# Three streams per visitor are put in the order of time: queries of long sessions, visits that count, purchases that
# count; what a query gets is what was added up strictly before it. So nothing is compared with everything, and no
# session sees itself, one that begins later, or a purchase that comes later in an earlier one.
#
# A session counts from its start where its visitor was known before its first page. Where the visitor logged in
# later, it counts from its end: before the log-in it was unknown whose it was. The same holds for a purchase before
# the log-in.

# At one moment queries come first, so that they see only what was strictly before.
_QUERY, _VISIT, _PURCHASE = 0, 1, 2


def _visitor_history(sessions: ir.Table, least_pages: int) -> ir.Table:
    """Return the history of every session that has a visitor and at least that many pages."""
    import ibis

    known = sessions.filter(sessions.visitor_id.notnull())
    queries = known.filter(known.n_pages >= least_pages)
    known = known.semi_join(queries.select("visitor_id").distinct(), "visitor_id")
    on_arrival = known.pages_before_identified == 0
    visits = known.mutate(at_us=ibis.ifelse(on_arrival, known.start_us, known.end_us))
    bought = known.filter(known.first_purchase_us.notnull())
    before_purchase = bought.pages_before_identified < bought.pages_before_purchase
    was_known = (bought.pages_before_identified == 0) | before_purchase
    purchases = bought.mutate(at_us=ibis.ifelse(was_known, bought.first_purchase_us, bought.end_us))
    counts, numbered = _counts(queries.mutate(at_us=queries.start_us), visits, purchases), _numbered(visits)
    same = [counts.visitor_id == numbered.visitor_id, counts.sessions == numbered.number]
    return counts.left_join(numbered, same).select(
        *(counts[name] for name in ("session_id", "sessions", "orders", "last_purchase_us", "devices")),
        ibis.coalesce(numbered.switches, 0).name("switches"),
        ibis.greatest(counts.sessions - 1, 0).name("pairs"),
        *(numbered[name] for name in EARLIER_DEVICES),
    )


def _counts(*streams: ir.Table) -> ir.Table:
    """Return counts of what was before each query; the streams are queries, visits and purchases."""
    import ibis

    stream = ibis.union(
        *(
            one.select(
                "visitor_id",
                "session_id",
                "device",
                "at_us",
                role=ibis.literal(role, "int64"),
                bought_us=one.first_purchase_us if role == _PURCHASE else ibis.null("int64"),
            )
            for role, one in enumerate(streams)
        )
    )
    so_far = {"order_by": ["at_us", "role"], "rows": (None, 0)}
    by_visitor = ibis.window(group_by="visitor_id", **so_far)
    by_device = ibis.window(group_by=["visitor_id", "device"], **so_far)
    stream = stream.mutate(visit=(stream.role == _VISIT).cast("int64"))
    stream = stream.mutate(on_device=stream.visit.sum().over(by_device))
    first_on_device = ((stream.visit == 1) & (stream.on_device == 1)).cast("int64")
    stream = stream.mutate(
        sessions=stream.visit.sum().over(by_visitor),
        orders=(stream.role == _PURCHASE).cast("int64").sum().over(by_visitor),
        last_purchase_us=stream.bought_us.max().over(by_visitor),
        earlier_devices=first_on_device.sum().over(by_visitor),
    )
    queries = stream.filter(stream.role == _QUERY)
    return queries.mutate(devices=queries.earlier_devices + (queries.on_device == 0).cast("int64"))


def _numbered(visits: ir.Table) -> ir.Table:
    """Return the visits of each visitor, 1 is the first, with their last devices and the switches so far."""
    import ibis

    order = {"group_by": "visitor_id", "order_by": ["at_us", "session_id"]}
    in_turn = ibis.window(**order)
    devices = [visits.device.lag(back).over(in_turn) for back in range(1, len(EARLIER_DEVICES))]
    numbered = visits.select(
        "visitor_id",
        "session_id",
        "at_us",
        number=ibis.row_number().over(in_turn) + 1,
        **dict(zip(EARLIER_DEVICES, [visits.device, *devices], strict=True)),
    )
    last, before = (numbered[name] for name in EARLIER_DEVICES[:2])
    switched = (before.notnull() & (last != before)).cast("int64")
    return numbered.mutate(switches=switched.sum().over(ibis.window(**order, rows=(None, 0))))


def _feature_rows(sessions: ir.Table, pages: ir.Table, steps: int, since_us: int | None) -> ir.Table:
    """Return a row per session that has pages for the last step and the buffer."""
    import ibis

    long = sessions.filter(sessions.n_pages >= steps + BUFFER)
    long = long.mutate(number_of_person=long.session_id.min().over(ibis.window(group_by="person")))
    opened = {}
    for step in range(1, steps + 1):
        there = pages.position == step
        opened[f"page_type_{step}"] = pages.page_type.max(where=there)
        opened[f"page_us_{step}"] = pages.t_us.max(where=there)
    history = _visitor_history(sessions, steps + BUFFER)
    by_session = pages.group_by("session_id").aggregate(**opened)
    rows = long.left_join(history, "session_id").drop("session_id_right").left_join(by_session, "session_id")
    since = ibis.ifelse(rows.sessions.notnull(), ibis.literal(since_us, "int64"), ibis.null("int64"))
    rows = rows.mutate(since_us=since, person=rows.number_of_person, label=rows.purchase)
    rows = rows.mutate(**{name: rows[name].cast("float64") for name in SESSION if name.startswith("pages_")})
    columns = {one.name: one.value(rows) for one in COLUMNS}
    return rows.select(*SESSION, *opened, **columns).order_by("session_id")
