"""What a log holds, for tests: imports of a few lines, and the events as dicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from diptych.commerce.logs import Log, ingest


def events_of(log: Log) -> list[dict[str, Any]]:
    """The events of all buckets, in the order of arrival."""
    rows = [row for file in log.buckets for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted(rows, key=lambda row: row["event_id"])


def dropped_of(log: Log) -> dict[str, int]:
    """Rule → rows, of the rules that dropped any."""
    return {rule["rule"]: rule["dropped"] for rule in log.about["rules"] if rule["dropped"]}


def import_text(folder: Path, content: str | bytes, file: str = "events.csv", **options: Any) -> Log:
    """Import one file of this content."""
    path = folder / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return ingest(path, folder / f"{file}.log", **options)
