"""Time zones by name, as the database knows them."""

from __future__ import annotations

import difflib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.data.logs.database import Database


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
