"""Second pass of an import: one bucket at a time, which holds everything about its clients.

Events are held against others of their client, get the hour, week day and day of the log's zone, and are written
in the order of client, time and arrival. Memory is that of a bucket, and the database spills what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diptych.data.logs.canonical import STAGED
from diptych.data.logs.cleaning import Cleaning
from diptych.data.logs.database import Database
from diptych.data.logs.rules import BucketRule
from diptych.data.logs.schema import COLUMNS, SECOND
from diptych.data.logs.sql import literal
from diptych.data.logs.stage import KEPT, files_of

_ROW_GROUP = 122_880
_DAY, _HOUR = 86_400 * SECOND, 3_600 * SECOND
_THURSDAY = 3  # 1970-01-01 was one, and 0 is Monday
_NAMED = 10


@dataclass
class BucketCounts:
    """What the second pass found; of several buckets the counts are added up.

    Attributes:
        events: that were kept.
        clients: different ones.
        shared: clients with more than one visitor.
        busiest: most events of one client.
        dropped: rule → how many events.
        named: rule → what was dropped, and how often.
    """

    events: int = 0
    clients: int = 0
    shared: int = 0
    busiest: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    named: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, other: BucketCounts) -> None:
        """Count those of another bucket, too."""
        self.events += other.events
        self.clients += other.clients
        self.shared += other.shared
        self.busiest = max(self.busiest, other.busiest)
        for rule, dropped in other.dropped.items():
            self.dropped[rule] = self.dropped.get(rule, 0) + dropped
        for rule, names in other.named.items():
            both = sorted({**self.named.get(rule, {}), **names}.items(), key=lambda item: (-item[1], item[0]))
            self.named[rule] = dict(both[:_NAMED])


def arrow_schema() -> Any:
    """The canonical table's columns in Arrow."""
    import pyarrow as pa

    kinds = {"double": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
    return pa.schema(
        [
            pa.field(one.name, kinds.get(one.type) or pa.type_for_alias(one.type), one.nullable)
            for one in COLUMNS
        ]
    )


def write_bucket(
    database: Database,
    staged: Sequence[Path],
    rules: Sequence[BucketRule],
    cleaning: Cleaning,
    zone: str,
    target: Path,
) -> BucketCounts:
    """Clean the events of a bucket and write them to ``target``, which is not made where none is left."""
    counts = BucketCounts(dropped={rule.name: 0 for rule in rules})
    if not staged:
        return counts
    database.rows("CREATE OR REPLACE TEMP TABLE dropped (event_id BIGINT)")
    left = f"SELECT {', '.join(KEPT)} FROM {files_of(staged)} WHERE event_id NOT IN (SELECT event_id FROM dropped)"
    events = f"WITH events AS NOT MATERIALIZED ({left})"
    for rule in rules:
        if names := rule.names(cleaning):
            found = database.rows(f"{events} SELECT * FROM ({names}) ORDER BY 2 DESC, 1 LIMIT {_NAMED}")
            counts.named[rule.name] = {str(name): int(n) for name, n in found}
        counts.dropped[rule.name] = int(
            database.value(f"INSERT INTO dropped {events} {rule.drops(cleaning)}")
        )
    people = "SELECT count(*) AS n, count(DISTINCT visitor_id) AS visitors FROM events GROUP BY client_id"
    sums = (
        f"{events} SELECT count(*), coalesce(sum(n), 0), count(*) FILTER (visitors > 1), coalesce(max(n), 0) "
        f"FROM ({people})"
    )
    counts.clients, counts.events, counts.shared, counts.busiest = map(int, database.rows(sums)[0])
    if counts.clients:
        _write(database, left, zone, target)
    return counts


def _write(database: Database, events: str, zone: str, target: Path) -> None:
    """One Parquet file, whose bytes are the same whatever the number of threads."""
    import pyarrow.parquet as pq

    schema = arrow_schema()
    local = {
        "local_day": f"(local_us // {_DAY})::INTEGER",
        "local_hour": f"(local_us // {_HOUR} % 24)::TINYINT",
        "local_dow": f"((local_us // {_DAY} + {_THURSDAY}) % 7)::TINYINT",
    }
    columns = ", ".join(f"{local.get(column.name, column.name)} AS {column.name}" for column in COLUMNS)
    wall = "t_us" if zone == "UTC" else f"epoch_us(timezone({literal(zone)}, make_timestamptz(t_us)))"
    rows = f"""
        SELECT {columns} FROM (SELECT {", ".join(STAGED)}, {wall} AS local_us FROM ({events}))
        ORDER BY client_id, t_us, event_id"""
    counted = [field.name for field in schema if field.name in ("event_id", "t_us")]
    target.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(
        target,
        schema,
        compression="zstd",
        use_dictionary=[field.name for field in schema if field.name not in counted],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in counted},
    ) as writer:
        for batch in database.batches(rows, _ROW_GROUP):
            writer.write_table(batch.cast(schema), row_group_size=_ROW_GROUP)
