"""The database of an import, a DuckDB that reaches the given files and nothing else; and its SQL of a file's rows.

Text is taken apart line by line, for DuckDB's own CSV reader loses the rest of a file in silence where a quotation mark
is never closed, rejects by the number of threads, and may read nothing with CRLF and LF in one file. So a line is a
row: values in quotation marks may hold delimiters, but no line breaks. A row with another number of values than the
first line, with bad quotation marks, NUL or bytes that are not UTF-8 is unreadable, and is counted.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diptych.commerce.logs.formats import CONSTANT, TARGETS, Layout, SourceFile
from diptych.commerce.logs.log import ACTION_WORDS, DEVICE_WORDS, MISSING_WORDS, YES_WORDS, zone_of
from diptych.core.context import Task
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.extras import require

DEFAULT_MEMORY = "2GB"  # enough for a bucket; one with a very busy client is spilled


QUOTE = '"'  # of names


def literal(text: object, mark: str = "'") -> str:
    return mark + str(text).replace(mark, 2 * mark) + mark


def literals(texts: Iterable[object]) -> str:
    return ", ".join(map(literal, texts))


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
    except duckdb.Error as error:
        line = str(error).strip().split("\n", 1)[0]
        if "format specifier" in line:
            raise UsageError(f"times have no such format: {line}", "see --time-format") from None
        if "No space left" in line:
            fix = "free some space and repeat the command"
            raise StorageError(f"the disk is full: {line}", fix) from None
        if isinstance(error, duckdb.OutOfMemoryException):
            fix = "give it more with --memory-limit, or take fewer threads or more --buckets; check the disk, too"
            raise StorageError(f"the memory does not suffice: {line}", fix) from None
        raise DataError(f"{what} cannot be read: {line}", "it is corrupt or gone: recreate it") from None
    except RuntimeError as error:
        if "interrupted" not in str(error).lower():  # what a key press becomes in some statements
            raise
        raise KeyboardInterrupt from None


class Database:
    """An open connection: queries, and long statements with their progress."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = (), what: str = "a table of the log") -> list[Any]:
        with duckdb_errors(what):
            return list(self._connection.execute(sql, list(values)).fetchall())

    def record(self, sql: str) -> dict[str, Any]:
        with duckdb_errors("a table of the log"):
            found = self._connection.execute(sql)
            return dict(zip([one[0] for one in found.description], found.fetchone(), strict=True))

    def run(self, sql: str, bar: Task, steps: int, what: str) -> list[Any]:
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
        bar.advance(steps - done)
        return work.result()


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
        zone_of(times_in)
        settings = {
            "TimeZone": times_in,
            "temp_directory": str(spill),
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


def _choose(value: str, *words: Mapping[str, Iterable[str]], otherwise: str = "NULL") -> str:
    """Return SQL of what a value means: the key under which the first of ``words`` lists it, in any capitals."""
    meanings: dict[str, str] = {}
    for meaning, spellings in (one for listed in words for one in listed.items()):
        for word in spellings:
            meanings.setdefault(word.lower(), meaning)
    # One by one: for a list of many words DuckDB would plan a join.
    cases = [f"WHEN {literal(word)} THEN {literal(meaning)}" for word, meaning in meanings.items()]
    return f"CASE lower({value}) {' '.join(cases)} ELSE {otherwise} END" if cases else otherwise


TIME_FORMATS = {
    "auto": "auto_us({})",  # seconds, milli-, micro- or nanoseconds since 1970, by their size; all else is iso
    "iso": "iso_us({})",  # ISO 8601, also with a blank in the middle, with an offset, Z, UTC, GMT or no zone
    "unix": "unix_us({}, 1e6)",
    "unix-ms": "unix_us({}, 1e3)",
    "unix-us": "unix_us({}, 1e0)",
}
"""Name → SQL of microseconds since 1970 UTC. Anything with a ``%`` in it is a format of ``strptime``."""


REJECTED = "SELECT count(DISTINCT (scan_id, file_id, line)) FROM reject_errors"
"""Counts lines read so far that never became rows: their bytes are not UTF-8, or more than two million."""

_IDENTITIES = ("client", "visitor", "session", "item")


def canonical_sql(file: SourceFile, layout: Layout, first_number: int) -> str:
    """Return SQL of a file's rows: columns of the table, those that rules look at, and marks."""
    taken = {column: f"text_{number}" for number, column in enumerate(dict.fromkeys(layout.columns.values()))}
    given = dict.fromkeys((*TARGETS, "is_twin"), "NULL")
    given |= {target: taken[column] for target, column in layout.columns.items()}
    given |= {target: literal(value) for target, value in layout.constants.items()}
    for target, sql in layout.sql.items():
        given[target] = sql.format_map(given)
    given |= {"raw_action": given["action"], "written": given["time"]}
    for target in CONSTANT:
        given[target] = _choose(given[target], layout.values.get(target, {}), otherwise=given[target])
    if given["raw_action"] == "NULL":
        given["action"] = f"CASE WHEN {given['query']} IS NULL THEN 'page' ELSE 'query' END"
    else:
        given["action"] = _choose(given["raw_action"], layout.values.get("action", {}), ACTION_WORDS)
    yes = {"yes": layout.values.get("purchase", {}).get("yes", YES_WORDS)}
    given["purchase"] = f"{_choose(given['purchase'], yes)} = 'yes'"
    how, zoneless = layout.time_format, "zoneless(given_written)"
    if "%" in how:
        given["time"] = f"epoch_us(CAST(TRY_STRPTIME({given['time']}, {literal(how)}) AS TIMESTAMPTZ))"
        zoneless = str("%z" not in how.lower())
    elif how in TIME_FORMATS:
        given["time"] = TIME_FORMATS[how].format(given["time"])
        zoneless = "false" if how.startswith("unix") else zoneless
    else:
        known = f"{', '.join(TIME_FORMATS)}, or one of strptime such as '%d/%m/%Y %H:%M'"
        raise UsageError(f"there is no time format {how!r}", known)
    missing = literals((*MISSING_WORDS, *layout.missing))
    return template(
        "canonical",
        rows=_rows_sql(file, taken, layout.bare > 0, first_number),
        given=", ".join(f"{sql} AS given_{part}" for part, sql in given.items()),
        identities=", ".join(
            f"CASE WHEN given_{part} NOT IN ({missing}) THEN given_{part} END AS {part}_identity"
            for part in _IDENTITIES
        ),
        device=_choose("given_device", DEVICE_WORDS, otherwise="lower(given_device)"),
        zoneless=zoneless,
    )


def template(name: str, **given: object) -> str:
    return Path(__file__).with_name(f"{name}.sql").read_text().format_map(given)


def _rows_sql(file: SourceFile, taken: Mapping[str, str], is_bare: bool, first_number: int) -> str:
    """Return SQL of ``event_id`` from ``first_number`` on, ``readable``, and the texts ``taken``."""
    path, steps = literal(str(file.path.resolve())), ["trimmed"]
    if file.kind == "parquet":
        texts = ", ".join(
            f"CAST({literal(one, QUOTE)} AS VARCHAR) AS {alias}" for one, alias in taken.items()
        )
        source = f"read_parquet({path}, hive_partitioning = false, binary_as_string = true)"
        number = f"row_number() OVER () - 1 + {first_number}"
        rows = f"SELECT {number} AS event_id, true AS readable, {texts} FROM {source}"
    else:
        if file.kind == "json":
            pointers = literals(file.pointers[column] for column in taken)
            fields = f"""CASE WHEN prefix(ltrim(line), '{{') AND json_valid(line)
                THEN json_extract_string(line, [{pointers}]) END"""
            places = {column: 1 + number for number, column in enumerate(taken)}
        else:
            other = file.delimiter.replace("|", r"\|").replace("\t", r"\t")
            fields = f"fields_of(line, {literals([file.delimiter, other])})"
            steps = ["trimmed", "unquoted", "trimmed"]
            places = {column: int(column) if is_bare else 1 + file.names.index(column) for column in taken}
        rows = template(
            "lines",
            path=path,
            texts=", ".join(f"fields[{places[one]}] AS {alias}" for one, alias in taken.items()),
            fields=fields,
            count=len(taken) if file.kind == "json" else len(file.names),
            skipped=int(file.kind == "text" and not is_bare),
            first_number=first_number,
            compression="gzip" if file.gzipped else "none",
        )
    # Every step is a query of its own: nested, each would be computed many times over.
    for step in steps:
        texts = ", ".join(f"{step}({alias}) AS {alias}" for alias in taken.values())
        rows = f"SELECT event_id, readable, {texts} FROM ({rows})"
    return rows
