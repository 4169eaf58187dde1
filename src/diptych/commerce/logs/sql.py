"""Pieces of SQL, put together without ever pasting in what a stranger wrote.

Names of columns and values of a log only ever go through :func:`identifier` and :func:`literal`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from diptych.commerce.logs.schema import SECOND
from diptych.core.errors import StorageError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.logs.database import Database


def identifier(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + _whole(name).replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + _whole(text).replace("'", "''") + "'"


def literals(texts: Iterable[str]) -> str:
    """Texts in single quotes, separated by commas."""
    return ", ".join(map(literal, texts))


def choose(value: str, words: Mapping[str, Iterable[str]], otherwise: str = "NULL") -> str:
    """Return what a value means: the key of ``words`` under which it is listed, in whatever capitals."""
    # One by one: for a list of many words DuckDB would plan a join.
    meanings = {word.lower(): meaning for meaning, said in [*words.items()][::-1] for word in said}
    cases = [f"WHEN {literal(word)} THEN {literal(meaning)}" for word, meaning in meanings.items()]
    return f"CASE lower({value}) {' '.join(cases)} ELSE {otherwise} END" if cases else otherwise


def _whole(text: str) -> str:
    if "\0" in text:
        raise UsageError("a name or value holds a NUL character", "leave it out")
    return text


# How a log writes times: ISO 8601, seconds since 1970, or a format of its own; SQL of whole microseconds.
#
# A time that names no zone is in the zone the database was opened with. In the hour that a change of the clocks
# repeats, such a time is taken as the later one, and a note counts them; one that the clocks skipped is taken as it
# would have gone on.


EARLIEST = 86_400 * SECOND
"""Times are later than the first day of 1970: a clock that shows it has been reset."""

LATEST = 7_258_118_400 * SECOND
"""Times are before the year 2200."""

TIME_FORMATS = {
    "auto": "a number is seconds, milli-, micro- or nanoseconds since 1970, by its size; all else is iso",
    "iso": "ISO 8601, also with a blank in the middle, with an offset, Z, UTC, GMT or no zone",
    "unix": "seconds since 1970, with or without a fraction",
    "unix-ms": "milliseconds since 1970",
    "unix-us": "microseconds since 1970",
}
"""By name. Anything with a ``%`` in it is a format of ``strptime``."""

# A number below the first is seconds (to the year 5138), below the second milliseconds (from 1973), and so on.
_MILLI, _MICRO, _NANO = "1e11", "1e14", "1e17"


def read_time(text: str, time_format: str = "auto") -> str:
    """SQL of microseconds since 1970 UTC, from SQL of a text; NULL where it is no time."""
    if time_format == "iso":
        return f"iso_us({text})"
    factors = {"unix": "1e6", "unix-ms": "1e3", "unix-us": "1e0"}
    if time_format in factors:
        return f"unix_us({text}, {factors[time_format]})"
    if time_format == "auto":
        size = f"abs(TRY_CAST({text} AS DOUBLE))"
        return (
            f"CASE WHEN {size} IS NULL THEN iso_us({text}) WHEN {size} < {_MILLI} THEN unix_us({text}, 1e6) "
            f"WHEN {size} < {_MICRO} THEN unix_us({text}, 1e3) WHEN {size} < {_NANO} THEN unix_us({text}, 1e0) "
            f"ELSE nano_us({text}) END"
        )
    if "%" in time_format:
        return f"epoch_us(CAST(TRY_STRPTIME({text}, {literal(time_format)}) AS TIMESTAMPTZ))"
    raise UsageError(
        f"there is no time format {time_format!r}",
        f"{', '.join(TIME_FORMATS)}, or one of strptime such as '%d/%m/%Y %H:%M'",
    )


def typed_time(column: str) -> str:
    """SQL of microseconds since 1970 UTC, from SQL of a column of dates or timestamps."""
    return f"epoch_us(CAST({column} AS TIMESTAMPTZ))"


def check_time_format(database: Database, time_format: str) -> None:
    """See that a format is one."""
    try:
        database.rows(f"SELECT {read_time(literal(''), time_format)}")
    except StorageError as error:
        raise UsageError(f"{time_format!r} is no format of times: {error.message}") from None


def check_zone(database: Database, name: str) -> None:
    """See that a zone exists, with its name in the usual capitals."""
    names = [row[0] for row in database.rows("SELECT name FROM pg_timezone_names()")]
    if name in names:
        return
    by_lower = {known.lower(): known for known in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    guess = ", ".join(by_lower[one] for one in near)
    hint = f"did you mean {guess}?" if near else "names are like Europe/Amsterdam, or UTC"
    raise UsageError(f"there is no time zone {name!r}", hint)


def moment(database: Database, text: str, zone: str) -> int:
    """Microseconds of an ISO 8601 date or time; one that names no zone is in ``zone``."""
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time", "e.g. 2019-10-01, or 2019-10-01T12:00:00+02:00") from None
    if given.tzinfo is None:
        naive = given.isoformat(sep=" ")
        return int(database.value("SELECT epoch_us(timezone(?, ?::TIMESTAMP))", [zone, naive]))
    passed = given - datetime(1970, 1, 1, tzinfo=UTC)
    return passed // timedelta(microseconds=1)
