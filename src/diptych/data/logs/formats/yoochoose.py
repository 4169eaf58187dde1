"""YooChoose: clicks and buys of the RecSys Challenge 2015, as published (no header) or with names of columns.

``yoochoose-clicks.dat`` is session, time, item, category; ``yoochoose-buys.dat`` session, time, item, price,
quantity, with a price of 0 where it is not known. Excerpts have a header and often seconds since 1970. Visitors,
devices and channels are unknown; a client is a session.

Source: Ben-Shimon et al., RecSys Challenge 2015 and the YOOCHOOSE Dataset, RecSys 2015.
"""

from __future__ import annotations

import re

from diptych.core.errors import DataError
from diptych.data.logs.declaration import LOG_FORMATS, Given, LogFormat
from diptych.data.logs.rows import Row
from diptych.data.logs.source_files import SourceFile

__all__: list[str] = []

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
    """What is in which column: by their names, or else by their number."""
    by_name = {name.lower().replace("_", ""): name for name in file.first}
    found = {what: by_name[name] for what, names in _NAMES.items() for name in names if name in by_name}
    if {"session", "time", "item"} <= set(found):
        known = {name for names in _NAMES.values() for name in names} | _OTHERS
        return found if set(by_name) <= known else {}
    if len(file.first) in (_CLICK, _BUY) and all(map(_BARE.fullmatch, file.first[:3])):
        bare = {"session": "1", "time": "2", "item": "3"}
        return bare | ({"price": "4"} if len(file.first) == _BUY else {})
    return {}


def _given(file: SourceFile) -> Given:
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
        _given,
        notes=("a client is a session; only clicks on items are pages",),
        general=1,
        others=("dataset-readme", "yoochoose-test"),
    )
)
