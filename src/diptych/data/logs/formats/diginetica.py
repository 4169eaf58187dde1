"""Diginetica: views, queries and purchases of the CIKM Cup 2016, with semicolons as published or with commas.

A time is a day and the milliseconds since the session began; when in the day it began is not published. So a
session is taken to begin at midnight, and hours say nothing. A client is a session; users are known in a third of
them. Queries without words are pages of a category. Clicks on results (``train-clicks.csv``) are views as well
and are left out.

Source: CIKM Cup 2016 Track 2, Personalized E-Commerce Search Challenge.
"""

from __future__ import annotations

from diptych.core.errors import DataError
from diptych.data.logs.declaration import LOG_FORMATS, Given, LogFormat
from diptych.data.logs.rows import Row
from diptych.data.logs.source_files import SourceFile
from diptych.data.logs.times import read_time

__all__: list[str] = []

_TIME = {"sessionid", "userid", "eventdate"}


def _names(file: SourceFile) -> dict[str, str]:
    """The columns by their names without capitals, dots and underscores: both editions have the same then."""
    plain = str.maketrans("", "", "._")
    return {name.lower().translate(plain).replace("timeframems", "timeframe"): name for name in file.first}


def _kind(file: SourceFile) -> str:
    names = set(_names(file))
    if not _TIME | {"timeframe"} <= names:
        return ""
    if "searchstringtokens" in names:
        return "queries"
    return "purchases" if "ordernumber" in names else "views" if "itemid" in names else ""


def _given(file: SourceFile) -> Given:
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
        _given,
        notes=(
            "a client is a session; each is taken to begin at midnight of its day, so hours of the day say nothing",
        ),
        others=("products", "product-categories", "train-clicks"),
    )
)
