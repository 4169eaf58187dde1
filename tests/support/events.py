"""Small logs from a few dicts: canonical events as an import would write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from diptych.commerce.logs.log import COLUMNS, EVENTS, SECOND, Log
from diptych.core.fingerprint import fingerprint

_DAY = 86_400
_DEFAULTS: dict[str, Any] = {
    "client_id": "c",
    "visitor_id": None,
    "given_session": None,
    "device": "pc",
    "channel": "direct",
    "country": None,
    "action": "page",
    "page_type": None,
    "query": None,
    "item_id": None,
    "price": None,
    "is_purchase": False,
}


def canonical(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Whole rows: ``t`` is seconds since 1970-01-01 UTC; what is not said is a page by client ``c`` on a pc."""
    rows = []
    for number, given in enumerate(events):
        event = {**_DEFAULTS, "event_id": number, **given}
        seconds = event.pop("t")
        day = int(seconds // _DAY)
        event |= {
            "t_us": round(seconds * SECOND),
            "local_day": day,
            "local_hour": int(seconds % _DAY // 3600),
            "local_dow": (day + 3) % 7,  # 1970-01-01 was a Thursday
        }
        rows.append({name: event[name] for name in COLUMNS})
    return rows


def write_log(folder: Path, events: Iterable[Mapping[str, Any]], buckets: int = 1) -> Log:
    """Write a log of ``canonical(events)``, in UTC."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = canonical(events)
    kinds = {"double": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
    schema = pa.schema({name: kinds.get(kind) or getattr(pa, kind)() for name, kind in COLUMNS.items()})
    of_bucket: dict[int, list[dict[str, Any]]] = {number: [] for number in range(buckets)}
    for row in sorted(rows, key=lambda row: (row["client_id"], row["t_us"], row["event_id"])):
        of_bucket[sum(row["client_id"].encode()) % buckets].append(row)
    for number, inside in of_bucket.items():
        if inside or number == 0:
            target = folder / EVENTS / f"bucket={number:02d}"
            target.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(inside, schema), target / "part.parquet")
    log = Log(
        {
            "name": folder.name,
            "importer": "test",
            "sources": [],
            "zone": "UTC",
            "options": {},
            "events": len(rows),
            "rows_read": len(rows),
            "rules": [],
            "notes": [],
            "first": "",
            "last": "",
            "buckets": buckets,
            "fingerprint": fingerprint(rows),
        }
    )
    log.save(folder / Log.marker())
    return Log.open(folder)
