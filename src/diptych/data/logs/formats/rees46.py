"""REES46: events of multi-category and cosmetics shops, October 2019 and later, as on Kaggle.

A row is a view of a product, an item put into or taken out of the basket, or a purchase. Users are known by a
permanent identifier in every event, so no session is anonymous; there are no devices, channels or queries.

Source: M. Kechinov, eCommerce behavior data from multi category store, REES46 Marketing Platform, 2019.
"""

from __future__ import annotations

from diptych.data.logs.declaration import LOG_FORMATS, Given, LogFormat
from diptych.data.logs.rows import Row
from diptych.data.logs.source_files import SourceFile
from diptych.data.logs.sql import choose

__all__: list[str] = []

_ACTIONS = {"page": ["view"], "add": ["cart"], "remove": ["remove_from_cart"], "purchase": ["purchase"]}


def _given(file: SourceFile) -> Given:
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
        _given,
        notes=("every event has a user, so every session is identified; only product pages are logged",),
    )
)
