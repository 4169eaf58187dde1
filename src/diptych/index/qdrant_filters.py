"""Conditions on items' metadata, as people write them, in Qdrant's terms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from diptych.core.errors import UsageError
from diptych.index.qdrant_connection import models

Where = Mapping[str, Any]
"""Per field a value, a list of values any of which will do, or a range ``{"gte": 10, "lt": 20}``."""

_BOUNDS = ("gt", "gte", "lt", "lte")
_EXAMPLE = 'where={"category": "shoes", "colour": ["red", "blue"], "price": {"gte": 10, "lt": 20}}'


def filter_of(where: Where) -> Any:
    """The filter that lets through items for which every condition holds.

    A field that holds a list fulfils a condition when one of its entries does; ``"attributes.colour"``
    names a field inside a field. An item without the field does not fulfil it.
    """
    if not isinstance(where, Mapping) or not where:
        raise UsageError(f"where={where!r} holds no condition", _EXAMPLE)
    return models().Filter(must=[_condition(field, wanted) for field, wanted in where.items()])


def _condition(field: str, wanted: Any) -> Any:
    m = models()
    if not isinstance(field, str) or not field:
        raise UsageError(f"{field!r} is not the name of a field of the metadata", _EXAMPLE)
    if isinstance(wanted, Mapping):
        return m.FieldCondition(key=field, range=m.Range(**_bounds(field, wanted)))
    if isinstance(wanted, list | tuple | set | frozenset):
        return _any_of(field, list(wanted))
    return _equal(field, wanted)


def _equal(field: str, wanted: Any) -> Any:
    m = models()
    if isinstance(wanted, float) and math.isfinite(wanted):  # Qdrant matches no floats, but compares them
        return m.FieldCondition(key=field, range=m.Range(gte=wanted, lte=wanted))
    if isinstance(wanted, str | bool | int):
        return m.FieldCondition(key=field, match=m.MatchValue(value=wanted))
    raise UsageError(f"where: {field}={wanted!r} can be no item's value", _EXAMPLE)


def _any_of(field: str, wanted: list[Any]) -> Any:
    m = models()
    kinds = {type(value) for value in wanted}
    if not wanted:
        raise UsageError(f"where: {field}=[] lets nothing through", "leave the field out, or name values")
    if kinds in ({str}, {int}):
        return m.FieldCondition(key=field, match=m.MatchAny(any=wanted))
    return m.Filter(should=[_equal(field, value) for value in wanted])


def _bounds(field: str, wanted: Mapping[str, Any]) -> dict[str, float]:
    for name, bound in wanted.items():
        number = isinstance(bound, int | float) and not isinstance(bound, bool) and math.isfinite(bound)
        if name not in _BOUNDS or not number:
            raise UsageError(
                f"where: {field}={{{name!r}: {bound!r}}} is no bound of a range",
                f"bounds are numbers under {', '.join(_BOUNDS)}",
            )
    if not wanted:
        raise UsageError(f"where: the range of {field} has no bounds", f"give one of {', '.join(_BOUNDS)}")
    return dict(wanted)


def field_types(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The Qdrant type of every top-level field of the metadata whose values are all of one type.

    A server searches filtered quickly only by fields that it indexes, and it wants their types.
    """
    kinds: dict[str, set[str]] = {}
    for record in records:
        for field, value in record.items():
            values = value if isinstance(value, list) else [value]
            kinds.setdefault(field, set()).update(_type_of(entry) for entry in values if entry is not None)
    numbers = {"integer", "float"}
    named = {field: {"float"} if kind == numbers else kind for field, kind in kinds.items()}
    return {field: next(iter(kind)) for field, kind in named.items() if len(kind) == 1 and "" not in kind}


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return {str: "keyword", int: "integer", float: "float"}.get(type(value), "")
