"""The database of an import: a DuckDB that reaches the files that were given and nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diptych.core.context import Task
from diptych.core.errors import DataError, StorageError, UsageError, nearest
from diptych.core.extras import require

DEFAULT_MEMORY = "2GB"
"""Enough for a bucket; a bucket with one very busy client is spilled."""


def identifier(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + _checked(name).replace('"', '""') + '"'


def literal(text: object) -> str:
    """Return a text in single quotes."""
    return "'" + _checked(str(text)).replace("'", "''") + "'"


def literals(texts: Iterable[object]) -> str:
    """Return texts in single quotes, separated by commas."""
    return ", ".join(map(literal, texts))


def _checked(text: str) -> str:
    if "\0" in text:
        raise UsageError("a name or value holds a NUL character", "leave it out")
    return text


def mebibytes(text: str) -> int:
    """Parse ``"1GB"``, ``"700 MB"``, ``"2GiB"`` as whole MiB, at least 1; a unit always counts 1024."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:I?B)?\s*", text.upper())
    if found is None or not float(found[1]):
        raise UsageError(f"the memory limit is {text!r}", "an amount and a unit, e.g. 1GB or 700MB")
    return max(1, int(float(found[1]) * 1024 ** ("KMGT".find(found[2] or "B") - 1)))


@contextmanager
def duckdb_errors(what: str = "a table") -> Iterator[None]:
    """Turn DuckDB's errors into ours; ``what`` is read or written."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException as error:
        fix = "give it more with --memory-limit, or take fewer threads or more --buckets; check the disk, too"
        raise StorageError(f"the memory does not suffice: {_first_line(error)}", fix) from None
    except duckdb.Error as error:
        line = _first_line(error)
        if "No space left" in line:
            raise StorageError(
                f"the disk is full: {line}", "free some space and repeat the command"
            ) from None
        raise DataError(f"{what} cannot be read: {line}", "it is corrupt or gone: recreate it") from None
    except RuntimeError as error:
        if "interrupted" not in str(error).lower():  # what a key press becomes in some statements
            raise
        raise KeyboardInterrupt from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]


class Database:
    """An open connection: queries, and long statements with their progress."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = (), what: str = "a table of the log") -> list[Any]:
        """Return the rows of a query."""
        with duckdb_errors(what):
            return list(self._connection.execute(sql, list(values)).fetchall())

    def value(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Return the one number of a query."""
        return int(self.rows(sql, values)[0][0])

    def run(self, sql: str, bar: Task, steps: int, what: str) -> None:
        """Run a long statement, and advance ``bar`` by ``steps`` meanwhile; can be interrupted."""
        done = 0
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(self.rows, sql, (), what)
            try:
                while not wait([work], timeout=0.1).done:
                    now = max(done, int(self._connection.query_progress() / 100 * steps))
                    bar.advance(now - done)
                    done = now
            except BaseException:
                self._connection.interrupt()
                raise
            work.result()
        bar.advance(steps - done)

    def check_zone(self, name: str) -> None:
        """Raise a UsageError for what is no time zone."""
        names = [row[0] for row in self.rows("SELECT name FROM pg_timezone_names()")]
        if name not in names:
            fix = nearest(name, names) or "names are like Europe/Amsterdam, or UTC"
            raise UsageError(f"there is no time zone {name!r}", fix.strip())


@contextmanager
def open_database(
    files: Iterable[Path],
    folder: Path,
    times_in: str = "UTC",
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Iterator[Database]:
    """Open a DuckDB that reads ``files``, writes into ``folder``, and can do nothing else.

    Files are untrusted: once it is open, the database reaches no other file, loads no extension and its settings
    cannot be changed. What does not fit into memory goes to the folder.
    """
    connection, spill = require("duckdb", "commerce", "importing a log").connect(), folder / "spill"
    database = Database(connection)
    try:
        connection.execute(Path(__file__).with_name("macros.sql").read_text())
        database.check_zone(times_in)
        settings = {
            "TimeZone": times_in,
            "temp_directory": str(spill),
            "partitioned_write_max_open_files": 1000,
            "enable_progress_bar": True,
            "enable_progress_bar_print": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allowed_paths": [str(file) for file in files],
            "allowed_directories": [str(folder)],
            "memory_limit": f"{mebibytes(memory_limit or DEFAULT_MEMORY)}MiB",
            **({} if threads is None else {"threads": threads}),
            "enable_external_access": False,
            "lock_configuration": True,
        }
        for name, value in settings.items():
            database.rows(f"SET {name} = ?", [value])
        yield database
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)
