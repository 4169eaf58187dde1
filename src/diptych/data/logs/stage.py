"""First pass of an import: every file is read once, rows are judged, and go to the bucket of their client.

Memory is that of a few thousand rows. Rows are numbered in the order in which they arrive, so one thread reads;
rows that a rule drops go to a bucket of their own and are counted from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from diptych.core.context import task
from diptych.data.logs.canonical import MARKS, STAGED, canonical_query
from diptych.data.logs.cleaning import Cleaning, Period
from diptych.data.logs.database import Database
from diptych.data.logs.declaration import Given
from diptych.data.logs.rows import REJECTED
from diptych.data.logs.rules import UNREADABLE_ROW, RowRule
from diptych.data.logs.source_files import SourceFile
from diptych.data.logs.sql import literal, literals

KEPT = (*STAGED, "address", "is_twin")
"""Columns of rows that wait for the second pass."""

_NAMED = 20  # things that a rule names of what it dropped
_MB = 1 << 20


@dataclass
class Staged:
    """What the first pass found.

    Attributes:
        folder: where the rows wait.
        rows: that were read, also those that were dropped.
        dropped: rule → how many rows.
        named: rule → what was dropped, and how often, the most frequent first.
        marks: what was counted beside.
    """

    folder: Path
    rows: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    named: dict[str, dict[str, int]] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)

    def bucket(self, number: int) -> list[Path]:
        """The files of one bucket."""
        return sorted(self.folder.glob(f"*/bucket={number}/*.parquet"))


def stage(
    database: Database,
    files: Sequence[SourceFile],
    given: Callable[[SourceFile], Given],
    rules: Sequence[RowRule],
    cleaning: Cleaning,
    period: Period,
    buckets: int,
    folder: Path,
) -> Staged:
    """Read files, drop rows by rules, and write the others to their buckets in ``folder``."""
    staged = Staged(folder)
    sizes = [1 + file.size // _MB for file in files]
    with task("reading", total=sum(sizes), unit="MB") as bar:
        for number, (file, size) in enumerate(zip(files, sizes, strict=True)):
            target = folder / f"{number:05d}"
            rows = _judged(canonical_query(given(file), staged.rows), rules, cleaning, period, buckets)
            copy = f"COPY ({rows}) TO {literal(str(target))} (FORMAT parquet, PARTITION_BY (bucket))"
            database.run(copy, bar, size, file.name)
            written = sorted(target.glob("*/*.parquet"))
            if written:
                staged.rows += int(database.value(f"SELECT count(*) FROM {files_of(written)}"))
    every = sorted(folder.glob("*/*/*.parquet"))
    if every:
        counts = [f"count(*) FILTER ({name} AND {of})" for name, (of, _) in MARKS.items()]
        found = database.rows(f"SELECT {', '.join(counts)} FROM {files_of(every)}")[0]
        staged.marks = dict(zip(MARKS, map(int, found), strict=True))
    _count_dropped(database, staged, rules, staged.bucket(buckets))
    if any(file.kind != "parquet" for file in files):
        rejected = int(database.value(REJECTED))
        staged.dropped[UNREADABLE_ROW] += rejected
        staged.rows += rejected
    return staged


def files_of(paths: Sequence[Path]) -> str:
    """SQL of the table of some Parquet files of ours."""
    return f"read_parquet([{literals(str(path) for path in paths)}], hive_partitioning = false)"


def _judged(rows: str, rules: Sequence[RowRule], cleaning: Cleaning, period: Period, buckets: int) -> str:
    """SQL of rows with the number of the rule that drops them, or 0, and the bucket they go to."""
    drops = [f"WHEN {rule.drops(cleaning, period)} THEN {number}" for number, rule in enumerate(rules, 1)]
    names = [f"WHEN {number} THEN {rule.names}" for number, rule in enumerate(rules, 1)]
    bucket = "0" if buckets == 1 else f"bucket_of(client_id, {buckets})"
    return f"""
        SELECT {", ".join([*KEPT, *MARKS])}, rule, (CASE rule {" ".join(names)} END)::VARCHAR AS named,
            CASE WHEN rule = 0 THEN {bucket} ELSE {buckets} END::INTEGER AS bucket
        FROM (SELECT *, CASE {" ".join(drops)} ELSE 0 END::INTEGER AS rule FROM ({rows}))"""


def _count_dropped(
    database: Database, staged: Staged, rules: Sequence[RowRule], files: Sequence[Path]
) -> None:
    staged.dropped = {rule.name: 0 for rule in rules}
    if not files:
        return
    by_number = dict(enumerate(rules, 1))
    for number, dropped in database.rows(f"SELECT rule, count(*) FROM {files_of(files)} GROUP BY rule"):
        staged.dropped[by_number[number].name] = int(dropped)
    named = f"""
        SELECT rule, named, n FROM (
            SELECT rule, named, count(*) AS n,
                row_number() OVER (PARTITION BY rule ORDER BY count(*) DESC, named) AS place
            FROM {files_of(files)} WHERE named IS NOT NULL GROUP BY rule, named)
        WHERE place <= {_NAMED} ORDER BY rule, place"""
    for number, name, dropped in database.rows(named):
        staged.named.setdefault(by_number[number].name, {})[name] = int(dropped)
