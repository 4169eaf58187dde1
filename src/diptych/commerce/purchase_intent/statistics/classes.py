"""Words that several statistics share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

ALL = "all"
"""In the place of a device: all of them together."""

CALLED_ALL = '"all"'
"""A device type that a log calls so: one of all, which must not be taken for them."""

CLASSES = (True, False)
"""Purchase sessions, and others: the order of tables."""

INTERVAL: Mapping[str, str] = {
    "low": "lower end of the interval; null where nothing can be said",
    "high": "upper end of it",
}


def apart_from_all(table: ir.Table) -> ir.Table:
    """The same table, in which no device is called as all of them are."""
    import ibis

    return table.mutate(device=ibis.ifelse(table.device == ALL, CALLED_ALL, table.device))


def sorted_with_all(devices: Iterable[str]) -> list[str]:
    """All together first, then each."""
    return [ALL, *sorted(set(devices) - {ALL})]
