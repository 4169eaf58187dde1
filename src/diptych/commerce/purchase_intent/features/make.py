"""From tables of sessions to a table of features, in one pass and block by block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.features.columns import COLUMNS, NOTHING, text_array
from diptych.commerce.purchase_intent.features.declaration import FEATURES
from diptych.commerce.purchase_intent.features.history import HISTORY, visitor_history
from diptych.commerce.purchase_intent.features.pages import BLOCK, write_pages
from diptych.commerce.purchase_intent.features.population import COMPATS, count_populations
from diptych.commerce.purchase_intent.features.storage import (
    FIXED,
    FORMAT,
    MARKER,
    write_marker,
    write_sessions,
)
from diptych.commerce.purchase_intent.features.table import FeatureTable, open_features
from diptych.commerce.purchase_intent.sessions.schema import BUFFER
from diptych.core.errors import StorageError, UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import task
from diptych.data.logs.schema import SECOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from diptych.commerce.purchase_intent.engine import Engine
    from diptych.commerce.purchase_intent.sessions import SessionTables

__all__ = ["FeatureOptions", "make_features"]

_DAY = 86_400 * SECOND
_NUMBERS = ("orders", "sessions", "devices", "switches", "pairs")
_POPULATION = ("session_id", "group", "start_us", "end_us", "purchase", "pages_before_purchase",
               "pages_before_identified", "channel", "device", "start_hour", "start_dow")  # fmt: skip


@dataclass(frozen=True)
class FeatureOptions:
    """How a table of features is made.

    Attributes:
        compat: ``published``: as the thesis describes its populations, see
            :mod:`diptych.commerce.purchase_intent.features.population`.
        also: optional features that the extended set shall have.
        types: how many page types, the most frequent, are told apart; all others are one.

    Raises:
        UnknownNameError: no such compat or feature.
        UsageError: a feature that is in the extended set anyway, or no page types.
    """

    compat: str = "none"
    also: tuple[str, ...] = ()
    types: int = 200

    def __post_init__(self) -> None:
        if self.compat not in COMPATS:
            raise UnknownNameError("compat", self.compat, COMPATS)
        if self.types < 1:
            raise UsageError(f"{self.types} page types are told apart", "1 or more")
        for name in self.also:
            if FEATURES.get(name).default:
                raise UsageError(f"the feature {name} is in the extended set anyway", "leave it out")


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

    Args:
        tables: of sessions.
        folder: of the result; an older one is replaced when the new one is whole.
        options: what and how.
        engine: that computes histories; DuckDB by default.

    Raises:
        UsageError: the folder holds other things.
        StorageError: the tables are damaged, or a write failed.
    """
    from diptych.commerce.purchase_intent.engine import open_engine

    with nullcontext(engine) if engine is not None else open_engine() as runs:
        _make(tables, Path(folder), options or FeatureOptions(), runs)
    return open_features(folder)


def _make(tables: SessionTables, folder: Path, options: FeatureOptions, engine: Engine) -> None:
    last_step = int(tables.about["options"]["pages"])
    with atomic_folder(folder, MARKER) as inside:
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
            "options": asdict(options) | {"also": list(options.also)},
            "session_options": tables.about["options"],
            "sessions_fingerprint": tables.fingerprint,
            "columns": kinds,
            "vocabulary": vocabulary,
            "counts": {"sessions": n_sessions, "too_short": n_sessions - n, "population": n},
            "fingerprint": fingerprint("features", FORMAT, tables.fingerprint, asdict(options)),
        }
        write_marker(inside, about)
        write_marker(inside, about | {"populations": count_populations(open_features(inside))})


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
