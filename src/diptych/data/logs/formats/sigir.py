"""Coveo's log of the SIGIR eCom 2021 data challenge: ``browsing_train.csv`` and ``search_train.csv``.

A client is a session, which is all that is published of a visitor. A product's page is told twice, as a ``detail``
of the product and as a page view; the page view of the same time and address is dropped and counted. Queries are
vectors: the first digits of their MD5 stand for what was typed, so that equal queries are equal.

Source: Tagliabue et al., SIGIR 2021 E-Commerce Workshop Data Challenge, 2021 (its dataset's README).
"""

from __future__ import annotations

from diptych.data.logs.declaration import LOG_FORMATS, Given, LogFormat
from diptych.data.logs.rows import Row
from diptych.data.logs.source_files import SourceFile
from diptych.data.logs.sql import choose

__all__: list[str] = []

_BROWSING = ("session_id_hash", "event_type", "product_action", "server_timestamp_epoch_ms")
_SEARCH = ("session_id_hash", "query_vector", "server_timestamp_epoch_ms")
_ACTIONS = {
    "page": ["detail", "pageview"],
    "add": ["add"],
    "remove": ["remove"],
    "purchase": ["purchase"],
    "other": ["click"],
}


def _given(file: SourceFile) -> Given:
    return _queries(file) if file.has("query_vector") else _browsing(file)


def _browsing(file: SourceFile) -> Given:
    row = Row(file)
    session, product = row["session_id_hash"], row["product_action"]
    said = f"coalesce({product}, {row['event_type']})"
    return Given(
        row,
        time=row.time("server_timestamp_epoch_ms", "unix-ms"),
        client=session,
        session=session,
        action=choose(said, _ACTIONS),
        said=said,
        page_type=f"CASE WHEN {product} = 'detail' THEN 'product' ELSE 'page' END",
        item=row["product_sku_hash"],
        address=row["hashed_url"],
        is_twin=f"{product} IS NULL",
    )


def _queries(file: SourceFile) -> Given:
    row = Row(file)
    session = row["session_id_hash"]
    return Given(
        row,
        time=row.time("server_timestamp_epoch_ms", "unix-ms"),
        client=session,
        session=session,
        action="'query'",
        query=f"left(md5({row['query_vector']}), 16)",
    )


LOG_FORMATS.add(
    LogFormat(
        "sigir",
        "Coveo's log of the SIGIR eCom 2021 challenge: browsing_train.csv and search_train.csv, or their folder",
        lambda file: file.has(*_BROWSING) or file.has(*_SEARCH),
        _given,
        notes=(
            "a client is a session; times are shifted by an unknown number of weeks; a query is its vector's MD5",
        ),
        others=("sku_to_content",),
    )
)
