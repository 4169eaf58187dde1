"""A DuckDB that reads the given files, writes into one folder, and can do nothing else.

Files come from strangers: once it is open, the database reaches no other file, loads no extension and its
settings cannot be changed. What does not fit into memory goes to the folder.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diptych.commerce.logs.schema import MISSING_WORDS
from diptych.commerce.logs.sql import check_zone, literal
from diptych.core.context import Task
from diptych.core.errors import DataError, DiptychError, StorageError, UsageError
from diptych.core.extras import require

_POLL = 0.1  # seconds
_WHOLE = 100.0  # per cent
_MEMORY = "2GB"  # enough for a bucket; a bucket with one very busy client is spilled

_MACROS = (
    # Blanks and tabs at the ends are cut; nothing left is nothing. Asking first is five times as fast as cutting.
    """trimmed(x) AS nullif(CASE WHEN prefix(x, ' ') OR suffix(x, ' ') OR prefix(x, chr(9)) OR suffix(x, chr(9))
       THEN trim(x, ' ' || chr(9)) ELSE x END, '')""",
    """unquoted(x) AS CASE WHEN prefix(x, '"') AND suffix(x, '"') AND length(x) > 1 THEN
         CASE WHEN contains(x, '""') THEN replace(substring(x, 2, length(x) - 2), '""', '"')
         ELSE substring(x, 2, length(x) - 2) END
       ELSE x END""",
    f"identity_of(x) AS CASE x {' '.join(f'WHEN {literal(word)} THEN NULL' for word in MISSING_WORDS)} ELSE x END",
    # A zone by name must not get to the cast: DuckDB 1.5 would read later times without one in that zone. So UTC
    # becomes Z, and in a second attempt what is ISO 8601 too: small letters, a decimal comma, no seconds.
    r"""mended(x) AS regexp_replace(regexp_replace(regexp_replace(replace(upper(x), ',', '.'),
         ' *(Z|UTC|GMT)$', 'Z'), '([0-9]) +([-+])', '\1\2'), '([T ][0-9]{2}:[0-9]{2})(Z|[-+])', '\1:00\2')""",
    """iso_us(x) AS epoch_us(coalesce(
         CASE WHEN regexp_full_match(x, '[-0-9T:.+ /]*(?:Z| UTC)?')
         THEN TRY_CAST(CASE WHEN suffix(x, ' UTC') THEN left(x, -4) || 'Z' ELSE x END AS TIMESTAMPTZ) END,
         CASE WHEN regexp_full_match(x, '(?i)[-0-9T:.,+ /]*(?:Z|UTC|GMT)?')
         THEN TRY_CAST(mended(x) AS TIMESTAMPTZ) END))""",
    "unix_us(x, factor) AS TRY_CAST(round(TRY_CAST(x AS DOUBLE) * factor) AS BIGINT)",
    "nano_us(x) AS TRY_CAST(x AS BIGINT) // 1000",
    "bucket_of(x, n) AS ('0x' || left(md5(x), 8))::UINTEGER % n",
)


class Database:
    """An open connection: queries, and long statements with their progress."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with _explained():
            return list(self._connection.execute(sql, list(values)).fetchall())

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Return the one value of a query."""
        return self.rows(sql, values)[0][0]

    def batches(self, sql: str, rows: int) -> Iterator[Any]:
        """Yield the result of a query as Arrow record batches of exactly so many rows, the last of fewer."""
        import pyarrow as pa

        with _explained():
            reader = self._connection.execute(sql).to_arrow_reader(rows)
            held = pa.Table.from_batches([], reader.schema)
            for batch in reader:
                held = pa.concat_tables([held, pa.Table.from_batches([batch])])
                while len(held) >= rows:
                    yield held.slice(0, rows)
                    held = held.slice(rows)
            if len(held):
                yield held

    def run(self, sql: str, bar: Task, steps: int, what: str) -> None:
        """Run a long statement, and advance ``bar`` by ``steps`` while it does; can be interrupted."""
        failed: list[BaseException] = []

        def work() -> None:
            try:
                self._connection.execute(sql)
            except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
                failed.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        said = 0
        try:
            while worker.is_alive():
                worker.join(_POLL)
                now = int(max(0.0, self._connection.query_progress()) / _WHOLE * steps)
                if now > said:
                    bar.advance(now - said)
                    said = now
        except BaseException:
            self._connection.interrupt()
            worker.join()
            raise
        with _explained(what):
            if failed:
                raise failed[0]
        bar.advance(steps - said)


@contextmanager
def open_database(
    files: Sequence[Path],
    folder: Path,
    *,
    times_in: str,
    memory_limit: str | None,
    threads: int | None,
) -> Iterator[Database]:
    """Open a database that reads ``files`` and ``folder`` and writes into ``folder`` only."""
    duckdb = require("duckdb", "commerce", "importing a log")
    connection, spill = duckdb.connect(), folder / "spill"
    try:
        for macro in _MACROS:
            connection.execute(f"CREATE TEMP MACRO {macro}")
        check_zone(Database(connection), times_in)
        settings = [
            ("TimeZone", times_in),
            ("temp_directory", str(spill)),
            ("partitioned_write_max_open_files", 1000),
            ("enable_progress_bar", True),
            ("enable_progress_bar_print", False),
            ("autoinstall_known_extensions", False),
            ("autoload_known_extensions", False),
            ("allow_community_extensions", False),
            ("allowed_paths", [str(file) for file in files]),
            ("allowed_directories", [str(folder)]),
            *([("threads", threads)] if threads is not None else []),
            ("memory_limit", memory_limit or _MEMORY),
            ("enable_external_access", False),
            ("lock_configuration", True),
        ]
        for name, value in settings:
            try:
                connection.execute(f"SET {name} = ?", [value])
            except duckdb.Error as error:
                raise UsageError(
                    f"{name.replace('_', ' ')} {value!r} cannot be: {_first_line(error)}",
                    "an amount and a unit, e.g. 2GB" if name == "memory_limit" else "",
                ) from None
        yield Database(connection)
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


@contextmanager
def _explained(what: str = "") -> Iterator[None]:
    """DuckDB's errors as ours; ``what`` was being read, or nothing but our own files."""
    import duckdb

    try:
        yield
    except DiptychError:
        raise
    except duckdb.OutOfMemoryException as error:
        fix = "give it more with --memory-limit, or take more --buckets; check the space on the disk, too"
        raise StorageError(f"the memory does not suffice: {_first_line(error)}", fix) from None
    except duckdb.Error as error:
        line = _first_line(error)
        if not what or "No space left" in line:
            raise StorageError(f"the log cannot be written: {line}", "check the space on the disk") from None
        raise DataError(f"{what} cannot be read: {line}", "it is damaged or of another kind") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
