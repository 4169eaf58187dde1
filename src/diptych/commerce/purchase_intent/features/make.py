"""From tables of sessions to a table of features, in one pass and block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.features.table import (
    FIXED,
    PAGE_TIMES,
    PAGE_TYPES,
    FeatureHeader,
    FeatureTable,
    count_populations,
    open_features,
    write_sessions,
)
from diptych.commerce.purchase_intent.features.view import (
    COLUMNS,
    EARLIER_DEVICES,
    NO_PAGE,
    NOTHING,
    text_array,
)
from diptych.commerce.purchase_intent.options import FeatureOptions
from diptych.commerce.purchase_intent.sessions import BUFFER
from diptych.core.context import task
from diptych.core.errors import StorageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder, create_array
from diptych.core.fingerprint import fingerprint

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from diptych.commerce.purchase_intent.engine import Engine
    from diptych.commerce.purchase_intent.sessions import SessionTables


BLOCK = 1 << 17
"""Rows that are held at once."""


def write_pages(
    folder: Path, files: Sequence[Path], session_ids: np.ndarray, steps: int, vocabulary: Sequence[str]
) -> None:
    """Write the arrays of pages, block by block.

    Args:
        session_ids: (n,) int64, rising; the rows of the arrays.
    """
    parquet = require("pyarrow.parquet", "commerce", "a table of features")
    n = len(session_ids)
    if n == 0 or steps == 0:  # there is no file of no bytes to map
        np.save(folder / PAGE_TYPES, np.zeros((n, steps), dtype=np.int32))
        np.save(folder / PAGE_TIMES, np.zeros((n, steps), dtype=np.int64))
        return
    types = create_array(folder / PAGE_TYPES, "int32", (n, steps))
    times = create_array(folder / PAGE_TIMES, "int64", (n, steps))
    for start in range(0, n, BLOCK):
        types[start : start + BLOCK] = NO_PAGE
    code_of = {name: code for code, name in enumerate(vocabulary)}
    sources = [parquet.ParquetFile(file) for file in files]
    total = sum(source.metadata.num_rows for source in sources)
    with task("reading pages", total, "pages") as bar:
        for source, file in zip(sources, files, strict=True):
            for batch in source.iter_batches(BLOCK, columns=["session_id", "position", "t_us", "page_type"]):
                ids, places = _numbers(batch, "session_id"), _numbers(batch, "position") - 1
                rows = np.searchsorted(session_ids, ids)
                fits = (places >= 0) & (places < steps) & (rows < n)
                if not (fits & (session_ids[np.minimum(rows, n - 1)] == ids)).all():
                    raise StorageError(
                        f"{file} has pages that belong to no session of the population",
                        "the tables of sessions are damaged: remove their folder and make them again",
                    )
                types[rows, places] = _codes(batch, code_of)
                times[rows, places] = _numbers(batch, "t_us")
                bar.advance(len(ids))
            source.close()


def _numbers(batch: Any, name: str) -> np.ndarray:
    numbers: np.ndarray = batch.column(name).to_numpy(zero_copy_only=False)
    return numbers


def _codes(batch: Any, code_of: dict[str, int]) -> np.ndarray:
    encoded = batch.column("page_type")
    if not hasattr(encoded, "dictionary"):
        encoded = encoded.dictionary_encode()
    codes = np.array([code_of.get(name, len(code_of)) for name in encoded.dictionary.to_pylist()], np.int32)
    found: np.ndarray = codes[encoded.indices.to_numpy(zero_copy_only=False)]
    return found


# What was known of a visitor when a session began: one expression, on any engine.
#
# Three streams per visitor are put in the order of time: sessions that ask, sessions that count, purchases that
# count; what an asking session gets is what was added up strictly before it. So nothing is compared with everything,
# and nobody sees the present session, one that begins later, or a purchase that comes later in an earlier one.
#
# A session counts from its start where its visitor was known before its first page. Where the visitor logged in
# later, it counts from its end: before the log-in nobody knew whose it was. The same holds for a purchase before
# the log-in.

HISTORY = (
    "sessions",
    "orders",
    "last_purchase_us",
    "devices",
    "switches",
    "pairs",
    *EARLIER_DEVICES,
)
"""Columns of the result, beside ``session_id``."""

_ASKS, _VISIT, _PURCHASE = 0, 1, 2
"""At one moment whoever asks comes first, so that it sees only what was strictly before."""


def visitor_history(sessions: ir.Table, least_pages: int) -> ir.Table:
    """The history of every session that has a visitor and at least that many pages."""
    ibis = require("ibis", "commerce", "history of visitors")
    known = sessions.filter(sessions.visitor_id.notnull())
    asking = known.filter(known.n_pages >= least_pages)
    known = known.semi_join(asking.select("visitor_id").distinct(), "visitor_id")
    visits = _visits(known)
    added = _added_up(asking, visits, _purchases(known))
    numbered = _numbered(visits)
    joined = added.left_join(
        numbered,
        [added.visitor_id == numbered.visitor_id, added.sessions == numbered.number],
    )
    return joined.select(
        added.session_id,
        added.sessions,
        added.orders,
        added.last_purchase_us,
        added.devices,
        ibis.coalesce(numbered.switches, 0).name("switches"),
        ibis.greatest(added.sessions - 1, 0).name("pairs"),
        *(numbered[name] for name in EARLIER_DEVICES),
    )


def _visits(known: ir.Table) -> ir.Table:
    ibis = require("ibis", "commerce", "history of visitors")
    return known.select(
        "visitor_id",
        "session_id",
        "device",
        at_us=ibis.ifelse(known.pages_before_identified == 0, known.start_us, known.end_us),
    )


def _purchases(known: ir.Table) -> ir.Table:
    ibis = require("ibis", "commerce", "history of visitors")
    bought = known.filter(known.first_purchase_us.notnull())
    was_known = (bought.pages_before_identified == 0) | (
        bought.pages_before_identified < bought.pages_before_purchase
    )
    return bought.select(
        "visitor_id",
        "session_id",
        "device",
        at_us=ibis.ifelse(was_known, bought.first_purchase_us, bought.end_us),
        bought_us=bought.first_purchase_us,
    )


def _added_up(asking: ir.Table, visits: ir.Table, purchases: ir.Table) -> ir.Table:
    """Counts of what was before each asking session."""
    ibis = require("ibis", "commerce", "history of visitors")
    nothing = ibis.null("int64")
    streams = (
        asking.select("visitor_id", "session_id", "device", at_us=asking.start_us).mutate(
            role=ibis.literal(_ASKS, "int64"), bought_us=nothing
        ),
        visits.mutate(role=ibis.literal(_VISIT, "int64"), bought_us=nothing),
        purchases.mutate(role=ibis.literal(_PURCHASE, "int64")),
    )
    columns = ("visitor_id", "session_id", "device", "at_us", "role", "bought_us")
    stream = ibis.union(*(one.select(*columns) for one in streams))
    so_far = {"order_by": ["at_us", "role"], "rows": (None, 0)}
    visit = (stream.role == _VISIT).cast("int64")
    stream = stream.mutate(
        visit=visit,
        on_device=visit.sum().over(ibis.window(group_by=["visitor_id", "device"], **so_far)),
    )
    by_visitor = ibis.window(group_by="visitor_id", **so_far)
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
    """The visits of each visitor, 1 is the first, with the devices of those before and the switches so far."""
    ibis = require("ibis", "commerce", "history of visitors")
    order = {"group_by": "visitor_id", "order_by": ["at_us", "session_id"]}
    in_turn = ibis.window(**order)
    first, *others = EARLIER_DEVICES
    numbered = visits.mutate(
        number=ibis.row_number().over(in_turn) + 1,
        **{first: visits.device},
        **{name: visits.device.lag(back).over(in_turn) for back, name in enumerate(others, start=1)},
    )
    switched = (numbered[others[0]].notnull() & (numbered.device != numbered[others[0]])).cast("int64")
    return numbered.mutate(switches=switched.sum().over(ibis.window(**order, rows=(None, 0))))


_DAY = 86_400 * SECOND
_NUMBERS = ("orders", "sessions", "devices", "switches", "pairs")
_POPULATION = ("session_id", "group", "start_us", "end_us", "purchase", "pages_before_purchase",
               "pages_before_identified", "channel", "device", "start_hour", "start_dow")  # fmt: skip


def make_features(
    tables: SessionTables,
    *,
    folder: Path | str,
    options: FeatureOptions | None = None,
    engine: Engine | None = None,
) -> FeatureTable:
    """Write everything that is known of the sessions one may predict on.

    A session is in the population if it has pages for the last step and the buffer; what a step leaves out
    besides is decided when it is asked for, and counted here.
    """
    from diptych.commerce.purchase_intent.engine import open_engine

    with nullcontext(engine) if engine is not None else open_engine() as runs:
        _make(tables, Path(folder), options or FeatureOptions(), runs)
    return open_features(folder)


def _make(tables: SessionTables, folder: Path, options: FeatureOptions, engine: Engine) -> None:
    last_step = int(tables.about["options"]["pages"])
    with atomic_folder(folder, FeatureHeader.marker()) as inside:
        sessions = engine.read(tables.files("sessions"))
        n_sessions, since_us = _size(engine, sessions)
        vocabulary = _vocabulary(engine, tables.files("pages"), options.types)
        population = inside / "population.parquet"
        with task("histories of visitors", n_sessions, "sessions") as bar:
            engine.write(_population(sessions, last_step + BUFFER), population)
            bar.advance(n_sessions)
        ids: list[np.ndarray] = []
        kinds = {column.name: column.kind for column in COLUMNS}
        n = write_sessions(inside, _blocks(population, since_us, ids), kinds)
        population.unlink()
        session_ids = np.concatenate([*ids, np.zeros(0, dtype=np.int64)])
        write_pages(inside, tables.files("pages"), session_ids, last_step, vocabulary)
        about = {
            "kind": "steps",
            "name": tables.log_name,
            "zone": tables.zone,
            "has_times": True,
            "since_us": since_us,
            "steps": list(range(last_step + 1)),
            "options": options.model_dump() | {"also": list(options.also)},
            "session_options": tables.about["options"],
            "sessions_fingerprint": tables.fingerprint,
            "columns": kinds,
            "vocabulary": vocabulary,
            "counts": {"sessions": n_sessions, "too_short": n_sessions - n, "population": n},
            "fingerprint": fingerprint(
                "features", FeatureHeader.FORMAT, tables.fingerprint, options.model_dump()
            ),
        }
        header = inside / FeatureHeader.marker()
        FeatureHeader(about).save(header)
        FeatureHeader(about | {"populations": count_populations(open_features(inside))}).save(header)


def _size(engine: Engine, sessions: ir.Table) -> tuple[int, int | None]:
    """How many sessions there are, and when the first begins."""
    counted = sessions.aggregate(n=sessions.count(), first=sessions.start_us.min())
    row = engine.to_arrow(counted).to_pylist()[0]
    return int(row["n"]), None if row["first"] is None else int(row["first"])


def _vocabulary(engine: Engine, files: list[Path], most: int) -> list[str]:
    """The most frequent page types, by count, then name."""
    ibis = require("ibis", "commerce", "a table of features")
    pages = engine.read(files)
    counted = pages.group_by("page_type").aggregate(n=pages.count())
    frequent = counted.order_by([ibis.desc("n"), "page_type"]).limit(most)
    return [str(name) for name in engine.to_arrow(frequent).column("page_type").to_pylist()]


def _population(sessions: ir.Table, least_pages: int) -> ir.Table:
    """All long enough sessions by rising ``session_id``, with their histories and a number of who it was."""
    ibis = require("ibis", "commerce", "a table of features")
    long = sessions.filter(sessions.n_pages >= least_pages)
    long = long.mutate(group=long.session_id.min().over(ibis.window(group_by="person")))
    history = visitor_history(sessions, least_pages)
    joined = long.select(*_POPULATION).left_join(history, "session_id")
    return joined.select(*_POPULATION, *HISTORY).order_by("session_id")


def _blocks(file: Path, since_us: int | None, ids: list[np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Blocks of the written population as :func:`write_sessions` takes them; their ids are put into ``ids``."""
    dataset = require("pyarrow.dataset", "commerce", "a table of features").dataset(file)
    last = -1
    for batch in dataset.to_batches(batch_size=BLOCK, use_threads=False):
        if not batch.num_rows:
            continue
        block = _block({name: batch.column(name) for name in batch.schema.names}, since_us)
        rising = np.diff(block["session_id"], prepend=last) > 0
        if not rising.all():
            raise StorageError("the engine wrote sessions out of order", "report this as a bug")
        last = int(block["session_id"][-1])
        ids.append(block["session_id"])
        yield block


def _block(columns: dict[str, Any], since_us: int | None) -> dict[str, np.ndarray]:
    numbers = {
        name: columns[name].cast("float64", safe=False).to_numpy(zero_copy_only=False)
        for name in (*_NUMBERS, "start_hour", "start_dow", "pages_before_purchase", "pages_before_identified")
    }
    start = columns["start_us"].to_numpy()
    bought = columns["last_purchase_us"]
    days = (start - bought.fill_null(0).to_numpy()) / _DAY
    has_visitor = ~np.isnan(numbers["sessions"])
    texts = {
        column.name: text_array(columns[column.name].fill_null(NOTHING).to_pylist())
        for column in COLUMNS
        if column.kind == "text"
    }
    block = {
        "session_id": columns["session_id"].to_numpy(),
        "person": columns["group"].to_numpy(),
        "start_us": start,
        "end_us": columns["end_us"].to_numpy(),
        "label": columns["purchase"].to_numpy(zero_copy_only=False),
        **numbers,
        **texts,
        "days_since_purchase": np.where(bought.is_valid().to_numpy(zero_copy_only=False), days, np.nan),
        "history_days": np.where(has_visitor, (start - (since_us or 0)) / _DAY, np.nan),
    }
    return {name: block[name] for name in (*FIXED, *(column.name for column in COLUMNS))}
