"""One file per format of logs; each adds its declaration to ``LOG_FORMATS``."""

from __future__ import annotations

import re
from pathlib import Path

from diptych.commerce.logs.canonical import LOG_FORMATS, Given, LogFormat
from diptych.commerce.logs.mapping import TARGETS, ColumnMapping
from diptych.commerce.logs.rows import Row
from diptych.commerce.logs.schema import YES_WORDS
from diptych.commerce.logs.source_files import SourceFile
from diptych.commerce.logs.sql import choose, read_time
from diptych.commerce.scenes.shop_log import ACTIONS, MARKER, RAW_COLUMNS, ShopLog, event_files
from diptych.core.errors import DataError
from diptych.core.reading import read_json


def _recognises(file: SourceFile) -> bool:
    return file.has("time") and (file.has("client") or file.has("visitor"))


def _given(file: SourceFile) -> Given:
    return ColumnMapping({target: target for target in TARGETS if file.has(target)}).given(file)


LOG_FORMATS.add(
    LogFormat(
        "columns",
        "your own CSV, TSV, JSON lines or Parquet: name its columns with --column or --mapping",
        _recognises,
        _given,
        general=9,
    )
)


# Diginetica: views, queries and purchases of the CIKM Cup 2016, with semicolons as published or with commas.
#
# A time is a day and the milliseconds since the session began; when in the day it began is not published. So a
# session is taken to begin at midnight, and hours say nothing. A client is a session; users are known in a third of
# them. Queries without words are pages of a category. Clicks on results (``train-clicks.csv``) are views as well
# and are left out.
#
# Source: CIKM Cup 2016 Track 2, Personalized E-Commerce Search Challenge.

_TIME = {"sessionid", "userid", "eventdate"}


def _names(file: SourceFile) -> dict[str, str]:
    """Return the columns by their names without capitals, dots and underscores: both editions have the same then."""
    plain = str.maketrans("", "", "._")
    return {name.lower().translate(plain).replace("timeframems", "timeframe"): name for name in file.first}


def _kind(file: SourceFile) -> str:
    names = set(_names(file))
    if not _TIME | {"timeframe"} <= names:
        return ""
    if "searchstringtokens" in names:
        return "queries"
    return "purchases" if "ordernumber" in names else "views" if "itemid" in names else ""


def _diginetica_given(file: SourceFile) -> Given:
    names, kind = _names(file), _kind(file)
    if not kind:
        raise DataError(
            f"{file.name} holds no views, queries or purchases of Diginetica",
            "give train-item-views.csv, train-queries.csv and train-purchases.csv, or their folder",
        )
    row = Row(file)
    session = row[names["sessionid"]]
    day, since = row.time(names["eventdate"], "iso"), read_time(row[names["timeframe"]], "unix-ms")
    typed = f"nullif({row[names['searchstringtokens']]}, 'NA')" if kind == "queries" else "NULL"
    actions = {
        "views": "'page'",
        "queries": f"CASE WHEN {typed} IS NULL THEN 'page' ELSE 'query' END",
        "purchases": "'purchase'",
    }
    return Given(
        row,
        time=f"{day} + {since}",
        client=session,
        visitor=row[names["userid"]],
        session=session,
        action=actions[kind],
        page_type="'category'" if kind == "queries" else "'product'",
        query=typed,
        item="NULL" if kind == "queries" else row[names["itemid"]],
    )


LOG_FORMATS.add(
    LogFormat(
        "diginetica",
        "views, queries and purchases of the CIKM Cup 2016: give the files, or their folder",
        lambda file: bool(_kind(file)),
        _diginetica_given,
        notes=(
            "a client is a session; each is taken to begin at midnight of its day, so hours of the day say nothing",
        ),
        others=("products", "product-categories", "train-clicks"),
    )
)


# REES46: events of multi-category and cosmetics shops, October 2019 and later, as on Kaggle.
#
# A row is a view of a product, an item put into or taken out of the basket, or a purchase. Users are known by a
# permanent identifier in every event, so no session is anonymous; there are no devices, channels or queries.
#
# Source: M. Kechinov, eCommerce behavior data from multi category store, REES46 Marketing Platform, 2019.

_ACTIONS = {"page": ["view"], "add": ["cart"], "remove": ["remove_from_cart"], "purchase": ["purchase"]}


def _rees46_given(file: SourceFile) -> Given:
    row = Row(file)
    event = row["event_type"]
    return Given(
        row,
        time=row.time("event_time", "iso"),
        client=row["user_id"],
        visitor=row["user_id"],
        session=row["user_session"],
        action=choose(event, _ACTIONS),
        said=event,
        page_type="'product'",
        item=row["product_id"],
        price=row["price"],
    )


LOG_FORMATS.add(
    LogFormat(
        "rees46",
        "events of REES46 shops (Kaggle): view, cart, remove_from_cart, purchase",
        lambda file: file.has("event_time", "event_type", "product_id", "user_id", "user_session"),
        _rees46_given,
        notes=("every event has a user, so every session is identified; only product pages are logged",),
    )
)


def _marked(folder: Path) -> bool:
    if not (folder / MARKER).is_file():
        return False
    marker = read_json(folder / MARKER)
    return isinstance(marker, dict) and marker.get("dataset") == ShopLog.dataset


def _files(folder: Path) -> list[Path] | None:
    return sorted(folder.glob(event_files(read_json(folder / MARKER)["format"]))) if _marked(folder) else None


def _zone(folder: Path) -> str:
    return str(read_json(folder / MARKER)["zone"])


def _shop_log_given(file: SourceFile) -> Given:
    row = Row(file)
    action, purchased = row["action"], row["purchased"]
    return Given(
        row,
        time=row.time("time", "iso"),
        client=row["cookie"],
        visitor=row["customer"],
        device=row["device"],
        channel=row["channel"],
        country=row["country"],
        action=choose(action, {canonical: [said] for said, canonical in ACTIONS.items()}),
        said=action,
        page_type=row["page"],
        query=row["query"],
        item=row["item"],
        price=row["price"],
        purchase=f"{choose(purchased, {'yes': YES_WORDS})} = 'yes'",
    )


LOG_FORMATS.add(
    LogFormat(
        "shop-log",
        "a generated shop log: the folder that diptych data shop-log made",
        lambda file: file.first == tuple(RAW_COLUMNS),
        _shop_log_given,
        files=_files,
        zone=_zone,
    )
)


# Coveo's log of the SIGIR eCom 2021 data challenge: ``browsing_train.csv`` and ``search_train.csv``.
#
# A client is a session, which is all that is published of a visitor. A product's page is told twice, as a ``detail``
# of the product and as a page view; the page view of the same time and address is dropped and counted. Queries are
# vectors: the first digits of their MD5 stand for what was typed, so that equal queries are equal.
#
# Source: Tagliabue et al., SIGIR 2021 E-Commerce Workshop Data Challenge, 2021 (its dataset's README).

_BROWSING = ("session_id_hash", "event_type", "product_action", "server_timestamp_epoch_ms")
_SEARCH = ("session_id_hash", "query_vector", "server_timestamp_epoch_ms")
_SIGIR_ACTIONS = {
    "page": ["detail", "pageview"],
    "add": ["add"],
    "remove": ["remove"],
    "purchase": ["purchase"],
    "other": ["click"],
}


def _sigir_given(file: SourceFile) -> Given:
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
        action=choose(said, _SIGIR_ACTIONS),
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
        _sigir_given,
        notes=(
            "a client is a session; times are shifted by an unknown number of weeks; a query is its vector's MD5",
        ),
        others=("sku_to_content",),
    )
)


# YooChoose: clicks and buys of the RecSys Challenge 2015, as published (no header) or with names of columns.
#
# ``yoochoose-clicks.dat`` is session, time, item, category; ``yoochoose-buys.dat`` session, time, item, price,
# quantity, with a price of 0 where it is not known. Excerpts have a header and often seconds since 1970. Visitors,
# devices and channels are unknown; a client is a session.
#
# Source: Ben-Shimon et al., RecSys Challenge 2015 and the YOOCHOOSE Dataset, RecSys 2015.

_NAMES = {
    "session": ("sessionid", "session"),
    "time": ("timestamp", "time"),
    "item": ("itemid", "item"),
    "price": ("price",),
    "quantity": ("quantity",),
}
_OTHERS = {"category", "categoryid", "cat"}
_BARE = re.compile(r"\d+\.?\d*|\d{4}-\d\d-\d\dT[\d:.]+Z")
_CLICK, _BUY = 4, 5  # values in a line without names


def _columns(file: SourceFile) -> dict[str, str]:
    """Return what is in which column: by their names, or else by their number."""
    by_name = {name.lower().replace("_", ""): name for name in file.first}
    found = {what: by_name[name] for what, names in _NAMES.items() for name in names if name in by_name}
    if {"session", "time", "item"} <= set(found):
        known = {name for names in _NAMES.values() for name in names} | _OTHERS
        return found if set(by_name) <= known else {}
    if len(file.first) in (_CLICK, _BUY) and all(map(_BARE.fullmatch, file.first[:3])):
        bare = {"session": "1", "time": "2", "item": "3"}
        return bare | ({"price": "4"} if len(file.first) == _BUY else {})
    return {}


def _yoochoose_given(file: SourceFile) -> Given:
    columns = _columns(file)
    if not columns:
        raise DataError(
            f"{file.name} is neither clicks nor buys of YooChoose",
            "clicks are session, time, item and category; buys have price and quantity in its place",
        )
    row = Row(file, header=not columns["session"].isdigit())
    session = row[columns["session"]]
    bought = "price" in columns
    return Given(
        row,
        time=row.time(columns["time"]),
        client=session,
        session=session,
        action="'purchase'" if bought else "'page'",
        page_type="'product'",
        item=row[columns["item"]],
        price=f"nullif({row[columns['price']]}, '0')" if bought else "NULL",
    )


LOG_FORMATS.add(
    LogFormat(
        "yoochoose",
        "clicks and buys of the RecSys Challenge 2015: give both files, or their folder",
        lambda file: file.kind == "text" and bool(_columns(file)),
        _yoochoose_given,
        notes=("a client is a session; only clicks on items are pages",),
        general=1,
        others=("dataset-readme", "yoochoose-test"),
    )
)
