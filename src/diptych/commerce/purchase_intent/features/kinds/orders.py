"""What the visitor bought before."""

from __future__ import annotations

import numpy as np

from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.plain import Plain, column_values
from diptych.commerce.purchase_intent.features.view import SessionsView

__all__ = ["DAYS_SINCE_PURCHASE", "ORDERS"]


def _days_since(view: SessionsView) -> np.ndarray:
    days, orders = view.columns["days_since_purchase"], view.columns["orders"]
    never: np.ndarray = np.where(np.isnan(orders), np.nan, orders == 0)  # NaN: nobody knows the visitor
    return np.stack([days, never], axis=1)


_ORDERS = Plain(("orders",), column_values("orders"))
_DAYS_SINCE = Plain(("days-since-purchase", "days-since-purchase:never"), _days_since)

ORDERS = FEATURES.add(
    Feature(
        name="orders",
        label="number of orders",
        description="the visitor's sessions with a purchase, where its first came before this session's start",
        group="history",
        dynamic=False,
        baseline=True,
        columns=("orders",),
        fit=_ORDERS.fit,
        load=_ORDERS.load,
    )
)

DAYS_SINCE_PURCHASE = FEATURES.add(
    Feature(
        name="days-since-purchase",
        label="days since last purchase",
        description="days from the latest of these purchases to this start, none where there is none; and whether "
        "there is none",
        group="history",
        dynamic=False,
        baseline=True,
        columns=("days_since_purchase", "orders"),
        fit=_DAYS_SINCE.fit,
        load=_DAYS_SINCE.load,
    )
)
