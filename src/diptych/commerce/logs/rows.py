"""SQL of a file's rows as canonical events.

Text is read line by line and taken apart here. DuckDB's own CSV reader is not used, for three measured reasons:
a quotation mark that is never closed makes it lose the rest of the file in silence, what it rejects depends on
the number of threads, and with CRLF and LF in one file it may read nothing. So a line is a row: values in
quotation marks may hold delimiters, but no line breaks. A row with another number of values than the first line,
with bad quotation marks, with NUL or with bytes that are not UTF-8 is unreadable, and is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from diptych.commerce.logs.database import Database, identifier, literal, literals
from diptych.commerce.logs.formats import CONSTANT, TARGETS, Layout, SourceFile
from diptych.commerce.logs.schema import ACTION_WORDS, DEVICE_WORDS, MISSING_WORDS, YES_WORDS
from diptych.core.errors import DataError, UsageError

_IDENTITIES = ("client", "visitor", "session", "item")


def choose(value: str, *words: Mapping[str, Iterable[str]], otherwise: str = "NULL") -> str:
    """Return SQL of what a value means: the key under which the first of ``words`` lists it, in any capitals."""
    meanings: dict[str, str] = {}
    for listed in words:
        for meaning, spellings in listed.items():
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
"""Name → SQL of microseconds since 1970 UTC. Anything with a ``%`` in it is a format of ``strptime``.

A time that names no zone is in the zone the database was opened with. In an hour that the clocks repeat it is the
later one, and a note counts them; one that the clocks skipped is what it would have been without the change.
"""


def read_time(text: str, time_format: str) -> str:
    """Return SQL of microseconds since 1970 UTC, NULL where the text is no time."""
    if "%" in time_format:
        return f"epoch_us(CAST(TRY_STRPTIME({text}, {literal(time_format)}) AS TIMESTAMPTZ))"
    if time_format not in TIME_FORMATS:
        known = f"{', '.join(TIME_FORMATS)}, or one of strptime such as '%d/%m/%Y %H:%M'"
        raise UsageError(f"there is no time format {time_format!r}", known)
    return TIME_FORMATS[time_format].format(text)


def check_time_format(database: Database, time_format: str) -> None:
    """Raise a UsageError for what is no format of times."""
    try:
        database.rows(f"SELECT {read_time(literal(''), time_format)}")
    except DataError as error:
        raise UsageError(f"{time_format!r} is no format of times: {error.message}") from None


REJECTED = "SELECT count(DISTINCT (scan_id, file_id, line)) FROM reject_errors"
"""Counts, of all text that was read so far, lines that never became rows, for their bytes are not UTF-8 or they are
longer than two megabytes."""


def canonical_sql(file: SourceFile, layout: Layout, first_number: int) -> str:
    """Return SQL of a file's rows: columns of the table, those that rules look at, and marks."""
    taken = {column: f"text_{number}" for number, column in enumerate(dict.fromkeys(layout.columns.values()))}
    given = {target: taken[column] for target, column in layout.columns.items()}
    given |= {target: literal(value) for target, value in layout.constants.items()}
    for target, sql in layout.sql.items():
        given[target] = sql.format_map(given)
    given["raw_action"], given["written"] = given.get("action", "NULL"), given["time"]
    is_typed = layout.columns.get("time") in file.timed
    time_format = "iso" if is_typed else layout.time_format
    given["time"] = read_time(given["time"], time_format)
    for target in _IDENTITIES:
        for word in layout.missing:
            given[target] = f"nullif({given.get(target, 'NULL')}, {literal(word)})"
    for target in given.keys() & {*CONSTANT}:
        given[target] = choose(given[target], layout.values.get(target, {}), otherwise=given[target])
    if "action" in given:
        given["action"] = choose(given["raw_action"], layout.values.get("action", {}), ACTION_WORDS)
    else:
        given["action"] = f"CASE WHEN {given.get('query', 'NULL')} IS NULL THEN 'page' ELSE 'query' END"
    yes = {"yes": layout.values.get("purchase", {}).get("yes", YES_WORDS)}
    given["purchase"] = f"{choose(given.get('purchase', 'NULL'), yes)} = 'yes'"
    parts = (*TARGETS, "is_twin", "raw_action", "written")
    missing = literals(MISSING_WORDS)
    identities = ", ".join(
        f"CASE WHEN given_{part} NOT IN ({missing}) THEN given_{part} END AS {part}_identity"
        for part in _IDENTITIES
    )
    if "%" in time_format:
        zoneless = "false" if "%z" in time_format.lower() else "true"
    else:
        zoneless = "zoneless(given_written)" if time_format in ("auto", "iso") else "false"
    return _template(
        "canonical",
        rows=_rows_sql(file, taken, layout.bare > 0, first_number),
        given=", ".join(f"{given.get(part, 'NULL')} AS given_{part}" for part in parts),
        identities=identities,
        device=choose("given_device", DEVICE_WORDS, otherwise="lower(given_device)"),
        zoneless=zoneless,
    )


def _template(name: str, **given: object) -> str:
    return Path(__file__).with_name(f"{name}.sql").read_text().format_map(given)


def _rows_sql(file: SourceFile, taken: Mapping[str, str], is_bare: bool, first_number: int) -> str:
    """Return SQL of ``event_id`` from ``first_number`` on, ``readable``, and the texts ``taken``."""
    path = literal(str(file.path.resolve()))
    if file.kind == "parquet":
        texts = ", ".join(f"CAST({identifier(one)} AS VARCHAR) AS {alias}" for one, alias in taken.items())
        source = f"read_parquet({path}, hive_partitioning = false, binary_as_string = true)"
        number = f"row_number() OVER () - 1 + {first_number}"
        rows = f"SELECT {number} AS event_id, true AS readable, {texts} FROM {source}"
    else:
        rows = _lines_sql(file, path, taken, is_bare, first_number)
    # Every step is a query of its own: nested, each would be computed many times over.
    for step in ("trimmed", "unquoted", "trimmed") if file.kind == "text" else ("trimmed",):
        texts = ", ".join(f"{step}({alias}) AS {alias}" for alias in taken.values())
        rows = f"SELECT event_id, readable, {texts} FROM ({rows})"
    return rows


def _lines_sql(
    file: SourceFile, path: str, taken: Mapping[str, str], is_bare: bool, first_number: int
) -> str:
    if file.kind == "json":
        pointers = literals(file.pointers[column] for column in taken)
        fields = f"""CASE WHEN prefix(ltrim(line), '{{') AND json_valid(line)
            THEN json_extract_string(line, [{pointers}]) END"""
        places = {column: 1 + number for number, column in enumerate(taken)}
        count, skipped = len(taken), 0
    else:
        fields, count, skipped = _fields_sql(file.delimiter), len(file.names), int(not is_bare)
        places = {column: int(column) if is_bare else 1 + file.names.index(column) for column in taken}
    return _template(
        "lines",
        path=path,
        texts=", ".join(f"fields[{places[one]}] AS {alias}" for one, alias in taken.items()),
        fields=fields,
        count=count,
        skipped=skipped,
        first_number=first_number,
        compression="gzip" if file.gzipped else "none",
    )


def _fields_sql(delimiter: str) -> str:
    """Return SQL of the fields of ``line``, NULL where a quotation mark is where none may be."""
    apart, other = literal(delimiter), delimiter.replace("|", r"\|").replace("\t", r"\t")

    def pattern(inside: str) -> str:
        field = f'(?: *"(?:{inside}|"")*" *| *[^" {other}][^{other}]*| *)'
        return literal(f"{field}(?:{other}{field})*")

    # Cut at quotation marks, every second piece was inside: only outside of it a delimiter divides.
    divided = f"""array_to_string(list_transform(string_split(line, '"'),
        lambda piece, place: CASE WHEN place % 2 = 1 THEN replace(piece, {apart}, chr(0)) ELSE piece END), '"')"""
    simple, general = pattern(f'[^"{delimiter}]'), pattern('[^"]')
    return f"""CASE
        WHEN NOT contains(line, '"') OR regexp_full_match(line, {simple}) THEN string_split(line, {apart})
        WHEN regexp_full_match(line, {general}) THEN string_split({divided}, chr(0)) END"""
