"""The worlds of many points as one log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diptych.commerce.purchase_intent.features.leak.altered import Event, Point, Worlds
from diptych.commerce.purchase_intent.features.leak.gathered import Gathered
from diptych.core.extras import require
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.data.logs.log import EVENTS, MARKER, Log
from diptych.data.logs.schema import COLUMNS

__all__ = ["largest_event_id", "write_altered_log"]

_PURPOSE = "a shift test"


def largest_event_id(log: Log) -> int:
    """0 where there is no event."""
    dataset, compute = (require(f"pyarrow.{name}", "commerce", _PURPOSE) for name in ("dataset", "compute"))
    events = dataset.dataset(list(map(str, log.buckets)), partitioning=None)
    largest = (compute.max(batch.column(0)).as_py() for batch in events.to_batches(columns=["event_id"]))
    return max((one for one in largest if one is not None), default=0)


def write_altered_log(
    folder: Path, log: Log, since_us: int, points: Sequence[Point], gathered: Gathered, worlds: Worlds
) -> Log:
    """Write all worlds, numbered from 1 on as the points are.

    Args:
        folder: of the new log.
        log: that they come from.
        since_us: when its first session began: a client of its own begins the new log then.
        points: sessions at steps.
        gathered: their events, and those of their visitors.
        worlds: how their other ends are made.
    """
    events: list[Event] = []
    for number, point in enumerate(points, start=1):
        session = gathered.session(point.session_id)
        if not events:
            nobody = {"client_id": "first", "given_session": "first", "visitor_id": None}
            events.append({**session[0], **nobody, "event_id": 0, "t_us": since_us})
        events += worlds.events(number, point, session, gathered.others(point.session_id))
    pa, parquet = (require(name, "commerce", _PURPOSE) for name in ("pyarrow", "pyarrow.parquet"))
    schema = pa.schema(
        [pa.field(one.name, pa.type_for_alias(one.type), nullable=one.nullable) for one in COLUMNS]
    )
    events.sort(key=lambda one: (one["client_id"], one["t_us"], one["event_id"]))
    target = folder / EVENTS / "bucket=00"
    target.mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(events, schema), target / "part.parquet")
    about = {**log.about, "events": len(events), "buckets": 1, "fingerprint": fingerprint(events)}
    write_json(folder / MARKER, about)
    return Log.open(folder)
