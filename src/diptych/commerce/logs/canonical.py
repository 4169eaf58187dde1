"""What a row of a log says, what a format declares, and the columns of the canonical table made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from diptych.commerce.logs.rows import Row
from diptych.commerce.logs.schema import COLUMNS, DEVICE_WORDS, UNKNOWN
from diptych.commerce.logs.source_files import SourceFile
from diptych.commerce.logs.sql import choose, literal
from diptych.core.registry import Registry


@dataclass(frozen=True)
class Given:
    """What a row of a log says, each as SQL over the row; NULL where the log does not have it.

    All are texts but ``time`` (microseconds since 1970 UTC), ``purchase`` and ``is_twin`` (true or false).
    """

    row: Row  # the row they are taken from
    time: str  # when
    written: str = "NULL"  # the same as the log writes it, to be listed where it is no time
    client: str = "NULL"  # the browser: a cookie
    visitor: str = "NULL"  # the customer, where known
    session: str = "NULL"  # the log's own
    device: str = "NULL"  # type, in the log's words
    channel: str = "NULL"  # in the log's words
    country: str = "NULL"  # two letters
    action: str = "'page'"  # a canonical action, or NULL for one that is not known
    said: str = "NULL"  # what the log calls the action, to be listed where it is not known
    page_type: str = "NULL"  # of pages
    query: str = "NULL"  # what was typed
    item: str = "NULL"  # the product
    price: str = "NULL"  # of it
    purchase: str = "false"  # whether the event means that something was bought, besides the action purchase
    agent: str = "NULL"  # the browser's user agent; it is looked at and not kept
    address: str = "NULL"  # of the page; it tells events of different pages apart and is not kept
    # whether the event is dropped where another one of this client, time and address says more
    is_twin: str = "false"


@dataclass(frozen=True)
class LogFormat:
    """How one format of logs is recognised and read.

    Attributes:
        name: what ``--format`` calls it.
        description: one line for help texts.
        recognises: whether a file of events looks like this format.
        given: what its rows say.
        notes: what a reader of the imported log must know.
        general: of several formats that recognise a file, the least general one reads it.
        others: names of files, without endings, that come with the log and hold no events.
        files: the files of a folder that is marked as this format's, None where it is not.
        zone: the zone such a folder says its days are in.
    """

    name: str
    description: str
    recognises: Callable[[SourceFile], bool]
    given: Callable[[SourceFile], Given]
    notes: tuple[str, ...] = ()
    general: int = 0
    others: tuple[str, ...] = ()
    files: Callable[[Path], list[Path] | None] | None = None
    zone: Callable[[Path], str] | None = None


LOG_FORMATS: Registry[LogFormat] = Registry("log format", "diptych.commerce.logs.formats")


VISITOR_CLIENT = "visitor:"
"""A visitor without a client is a client of this name and the visitor's."""

_LATER = ("local_day", "local_hour", "local_dow")  # follow from the time, see diptych.commerce.logs.stage

STAGED = tuple(column.name for column in COLUMNS if column.name not in _LATER)
"""Columns of the table that a file's rows are first written with."""

COMPARED = tuple(name for name in STAGED if name != "event_id")
"""Columns in which duplicates are equal."""

MARKS: Mapping[str, tuple[str, str]] = {
    "out_of_order": ("true", "rows are earlier than the row before them in their file"),
    "visitor_clients": (
        "rule = 0",
        f"events have a visitor and no client: each such visitor is a client {VISITOR_CLIENT}VISITOR",
    ),
    "bad_countries": ("rule = 0", "events have a country that is no two letters, read as missing"),
    "bad_prices": ("rule = 0", "events have a price that is no number, read as missing"),
}
"""What is counted beside the rules: name → among which rows, and what a note says."""


def canonical_query(given: Given, first_number: int) -> str:
    """SQL of a file's rows: columns of the table, what rules look at beside them, and marks."""
    parts = [part.name for part in fields(Given) if part.name != "row"]
    said = ", ".join(f"{getattr(given, part)} AS given_{part}" for part in parts)
    identities = ", ".join(
        f"identity_of(given_{part}) AS {part}_identity" for part in ("client", "visitor", "session", "item")
    )
    # Literal NULLs would have no type: as texts they have.
    words = choose("given_device", DEVICE_WORDS, otherwise="lower(given_device)")
    return f"""
        SELECT
            event_id,
            coalesce(client_identity, {literal(VISITOR_CLIENT)} || visitor_identity)::VARCHAR AS client_id,
            visitor_identity::VARCHAR AS visitor_id,
            session_identity::VARCHAR AS given_session,
            given_time::BIGINT AS t_us,
            coalesce({words}, {literal(UNKNOWN)})::VARCHAR AS device,
            coalesce(lower(given_channel), {literal(UNKNOWN)})::VARCHAR AS channel,
            CASE WHEN regexp_full_match(given_country, '[A-Za-z][A-Za-z]') THEN upper(given_country) END AS country,
            given_action::VARCHAR AS action,
            CASE WHEN given_action = 'page' THEN given_page_type END::VARCHAR AS page_type,
            given_query::VARCHAR AS query,
            item_identity::VARCHAR AS item_id,
            CASE WHEN isfinite(number) THEN number END AS price,
            coalesce(given_action = 'purchase' OR given_purchase, false) AS is_purchase,
            given_address::VARCHAR AS address,
            coalesce(given_is_twin, false) AS is_twin,
            readable,
            given_said::VARCHAR AS said,
            given_written::VARCHAR AS written,
            given_agent::VARCHAR AS agent,
            out_of_order,
            client_identity IS NULL AND visitor_identity IS NOT NULL AS visitor_clients,
            given_country IS NOT NULL AND country IS NULL AS bad_countries,
            given_price IS NOT NULL AND price IS NULL AS bad_prices
        FROM (
            SELECT *, {identities}, TRY_CAST(given_price AS DOUBLE) AS number
            FROM (
                SELECT *, coalesce(given_time < lag(given_time) OVER (), false) AS out_of_order
                FROM (SELECT event_id, readable, {said} FROM ({given.row.query(first_number)}))
            )
        )"""
