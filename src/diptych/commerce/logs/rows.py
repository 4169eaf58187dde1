"""The rows of a file as texts: SQL that reads any kind of file, and gives for every row what it says.

Text is read line by line and taken apart here. DuckDB's own CSV reader is not used, for three measured reasons:
a quotation mark that is never closed makes it lose the rest of the file without a word, what it rejects depends
on the number of threads, and with CRLF and LF in one file it may read nothing. So a line is a row: values in
quotation marks may hold delimiters, but no line breaks. A row with another number of values than the first line,
with bad quotation marks, with NUL or with bytes that are not UTF-8 is unreadable, and is counted. A blank line is
no row.
"""

from __future__ import annotations

from diptych.commerce.logs.source_files import SourceFile
from diptych.commerce.logs.sql import identifier, literal, literals, read_time, typed_time
from diptych.core.errors import UsageError


class Row:
    """The row of a file in SQL: what a format takes from it is what is read."""

    def __init__(self, file: SourceFile, header: bool = True) -> None:
        self.file = file
        self.header = header and file.kind == "text"
        bare = file.kind == "text" and not header
        self.columns = tuple(str(1 + n) for n in range(len(file.first))) if bare else file.first
        self._taken: dict[str, str] = {}
        self._typed: dict[str, str] = {}

    def __getitem__(self, column: str) -> str:
        """SQL of a column's text, without blanks at its ends, NULL where it is empty."""
        self._check(column)
        return self._taken.setdefault(column, f"text_{len(self._taken)}")

    def time(self, column: str, time_format: str = "auto") -> str:
        """SQL of a column's microseconds since 1970 UTC, NULL where it is no time."""
        if column not in self.file.timed:
            return read_time(self[column], time_format)
        self._check(column)
        return typed_time(self._typed.setdefault(column, f"time_{len(self._typed)}"))

    def _check(self, column: str) -> None:
        count = self.columns.count(column)
        if count != 1:
            what = "no column" if not count else f"{count} columns"
            raise UsageError(
                f"{self.file.name} has {what} {column!r}", f"its columns: {', '.join(self.columns)}"
            )

    def query(self, first_number: int) -> str:
        """SQL of rows: ``event_id`` from ``first_number`` on, ``readable``, and what was taken."""
        file = self.file
        path = literal(str(file.path.resolve()))
        if file.kind == "parquet":
            texts = [f"CAST({identifier(one)} AS VARCHAR) AS {alias}" for one, alias in self._taken.items()]
            typed = [f"{identifier(one)} AS {alias}" for one, alias in self._typed.items()]
            rows = (
                f"SELECT row_number() OVER () - 1 + {first_number} AS event_id, true AS readable, "
                f"{', '.join([*texts, *typed])} "
                f"FROM read_parquet({path}, hive_partitioning = false, binary_as_string = true)"
            )
            return self._cleaned(rows, quoted=False)
        if file.kind == "json":
            fields, count = _json_values(file, tuple(self._taken)), len(self._taken)
            places = {column: 1 + number for number, column in enumerate(self._taken)}
        else:
            fields, count = _fields(file.delimiter), len(self.columns)
            places = {column: 1 + self.columns.index(column) for column in self._taken}
        skipped = 1 if self.header else 0
        texts = [f"fields[{places[one]}] AS {alias}" for one, alias in self._taken.items()]
        rows = f"""
            SELECT number + {first_number} AS event_id, readable, {", ".join(texts)}
            FROM (
                SELECT *, coalesce(len(fields) = {count}, false) AS readable,
                FROM (
                    SELECT number, CASE WHEN line IS NOT NULL AND rest IS NULL THEN {fields} END AS fields
                    FROM (
                        SELECT row_number() OVER () - {1 + skipped} AS number, line, rest
                        FROM {_lines(path, file)}
                        WHERE line IS NULL OR rest IS NOT NULL OR NOT prefix(line, ' ') OR trim(line, ' ') <> ''
                    )
                    WHERE number >= 0
                )
            )"""
        return self._cleaned(rows, quoted=file.kind == "text")

    def _cleaned(self, rows: str, quoted: bool) -> str:
        """Return every step is a query of its own: nested, each would be computed many times over."""
        for step in ("trimmed", "unquoted", "trimmed") if quoted else ("trimmed",):
            texts = [f"{step}({alias}) AS {alias}" for alias in self._taken.values()]
            rows = f"SELECT event_id, readable, {', '.join([*texts, *self._typed.values()])} FROM ({rows})"
        return rows


REJECTED = "SELECT count(DISTINCT (scan_id, file_id, line)) FROM reject_errors"
"""Of all text that was read so far: lines that never became rows, for their bytes are not UTF-8 or they are
longer than two megabytes."""


def _lines(path: str, file: SourceFile) -> str:
    """Return lines as one column; NUL is the delimiter, so whatever is in the second column says that there was one."""
    packed = "gzip" if file.gzipped else "none"
    return f"""read_csv({path}, auto_detect = false, header = false, delim = chr(0), quote = '', escape = '',
        comment = '', nullstr = chr(1), columns = {{'line': 'VARCHAR', 'rest': 'VARCHAR'}}, null_padding = true,
        strict_mode = false, store_rejects = true, rejects_limit = 0, compression = '{packed}',
        hive_partitioning = false)"""


def _fields(delimiter: str) -> str:
    """SQL of the fields of ``line``, NULL where a quotation mark is where none may be."""
    apart = literal(delimiter)
    simple, general = (literal(_line_pattern(delimiter, inside)) for inside in (f'[^"{delimiter}]', '[^"]'))
    # Cut at quotation marks, every second piece was inside: only outside of it a delimiter divides.
    divided = f"""array_to_string(list_transform(string_split(line, '"'),
        lambda piece, place: CASE WHEN place % 2 = 1 THEN replace(piece, {apart}, chr(0)) ELSE piece END), '"')"""
    return f"""CASE
        WHEN NOT contains(line, '"') OR regexp_full_match(line, {simple}) THEN string_split(line, {apart})
        WHEN regexp_full_match(line, {general}) THEN string_split({divided}, chr(0)) END"""


def _line_pattern(delimiter: str, inside: str) -> str:
    """Return a regular expression of a whole line, whose quoted fields are made of ``inside`` and doubled marks."""
    other = delimiter.replace("|", r"\|").replace("\t", r"\t")
    blank = " *"
    field = f'(?:{blank}"(?:{inside}|"")*"{blank}|{blank}[^" {other}][^{other}]*|{blank})'
    return f"{field}(?:{other}{field})*"


def _json_values(file: SourceFile, columns: tuple[str, ...]) -> str:
    """SQL of values of the JSON object in ``line`` as texts, NULL where it is no object."""
    pointers = literals(file.pointers[column] for column in columns)
    return f"""CASE WHEN prefix(ltrim(line), '{{') AND json_valid(line)
        THEN json_extract_string(line, [{pointers}]) END"""
