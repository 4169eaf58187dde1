"""Metadata of items: one JSON object each, and conditions on its fields that a search is restricted by."""

import itertools
import json
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.reading import parse_json
from diptych.data.columns import BLOCK

# The metadata of one item.
Record = Mapping[str, Any]

# Per field a value, a list of values any of which will do, or a range ``{"gte": 10, "lt": 20}``.
Where = Mapping[str, Any]

BOUNDS = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
_AGAIN = "build the index again"
_EXAMPLE = 'where={"category": "shoes", "colour": ["red", "blue"], "price": {"gte": 10, "lt": 20}}'


def check_records(records: Sequence[Record], ids: Sequence[str]) -> list[str]:
    """Return the metadata of each id as a line of JSON."""
    if len(records) != len(ids):
        raise DataError(f"metadata of {len(records):,} items given for {len(ids):,}", "give one per item")
    lines = []
    for name, record in zip(ids, records, strict=True):
        try:
            lines.append(json.dumps(dict(record), ensure_ascii=False, allow_nan=False))
            lines[-1].encode()
        except (TypeError, ValueError) as error:
            message = f"the metadata of {name!r} is not JSON: {error}"
            raise DataError(message, "give texts, numbers, lists, mappings") from None
    return lines


def check_where(where: Where) -> None:
    """Raise a UsageError unless conditions have the form of :data:`Where`."""
    if not isinstance(where, Mapping) or not where:
        raise UsageError(f"where={where!r} holds no condition", _EXAMPLE)
    for field, wanted in where.items():
        if not isinstance(field, str) or not field:
            raise UsageError(f"{field!r} is not the name of a field of the metadata", _EXAMPLE)
        if isinstance(wanted, Mapping):
            numbers = [type(bound) in (int, float) and math.isfinite(bound) for bound in wanted.values()]
            if not wanted or not all(numbers) or not set(wanted) <= set(BOUNDS):
                raise UsageError(
                    f"where: {field}={dict(wanted)!r} is no range",
                    f"bounds are numbers under {', '.join(BOUNDS)}",
                )
            continue
        values = wanted if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
        if not values:
            raise UsageError(f"where: {field}=[] lets nothing through", "leave the field out, or name values")
        for value in values:
            if not isinstance(value, str | int) and not (isinstance(value, float) and math.isfinite(value)):
                raise UsageError(f"where: {field}={value!r} can be no item's value", _EXAMPLE)


class _Field:
    """The different values of one field, and which items have them; a list counts with each of its entries."""

    def __init__(self, name: str) -> None:
        self.path, self.read = name.split("."), 0
        self.codes: dict[tuple[type, Any], int] = {}
        self._slots, self._values = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def extend(self, records: Iterable[tuple[int, Any]]) -> None:
        slots, values = [], []
        for slot, found in records:
            for key in self.path:
                found = found.get(key) if isinstance(found, dict) else None
            for value in found if isinstance(found, list) else (found,):
                if isinstance(value, str | int | float):
                    slots.append(slot)
                    values.append(self.codes.setdefault((type(value), value), len(self.codes)))
        self._slots = np.concatenate([self._slots, np.array(slots, dtype=np.int64)])
        self._values = np.concatenate([self._values, np.array(values, dtype=np.int64)])

    def fulfilling(self, wanted: Any) -> list[int]:
        """Return the codes of the values that fulfil a condition."""
        if isinstance(wanted, Mapping):
            numbers = (one for one in self.codes.items() if one[0][0] in (int, float))
            bounds = [(BOUNDS[name], bound) for name, bound in wanted.items()]
            return [
                code for (_, value), code in numbers if all(holds(value, bound) for holds, bound in bounds)
            ]
        if isinstance(wanted, list | tuple | set | frozenset):
            return [code for one in wanted for code in self.fulfilling(one)]
        if isinstance(wanted, float):
            return self.fulfilling({"gte": wanted, "lte": wanted})
        kind = next(kind for kind in (bool, int, str) if isinstance(wanted, kind))
        return [self.codes[kind, wanted]] if (kind, wanted) in self.codes else []

    def mask(self, wanted: Any, count: int) -> np.ndarray:
        fulfils, mask = np.zeros(len(self.codes), dtype=bool), np.zeros(count, dtype=bool)
        fulfils[self.fulfilling(wanted)] = True
        mask[self._slots[fulfils[self._values]]] = True
        return mask


class RecordTable:
    """The metadata of numbered items as JSON lines; a field is read when a condition first names it.

    ``"attributes.colour"`` names a field inside a field; an item without the field does not fulfil its condition.

    Args:
        stored: a line per item, such as a :class:`~diptych.data.columns.StringTable`.
    """

    def __init__(self, stored: Sequence[str]) -> None:
        self._stored, self._added = stored, list[str]()
        self._fields: dict[str, _Field] = {}

    def append(self, lines: Iterable[str]) -> None:
        self._added += lines

    def __len__(self) -> int:
        return len(self._stored) + len(self._added)

    def lines(self, items: Sequence[int]) -> Iterator[str]:
        """Yield the lines of items, read in blocks."""
        held = len(self._stored)
        for start in range(0, len(items), BLOCK):
            block = items[start : start + BLOCK]
            first, last = int(min(block)), int(max(block)) + 1
            stored = self._stored[first : min(last, held)] if first < held else []
            for item in block:
                yield stored[item - first] if item < held else self._added[item - held]

    def _parsed(self, items: range) -> Iterator[list[tuple[int, dict[str, Any]]]]:
        for start in range(items.start, items.stop, BLOCK):
            block = range(start, min(start + BLOCK, items.stop))
            records = parse_json(f"[{','.join(self.lines(block))}]", "the items' metadata", fix=_AGAIN)
            if len(records) != len(block) or not all(isinstance(one, dict) for one in records):
                raise StorageError("the items' metadata is corrupt: a line is no JSON object", _AGAIN)
            yield list(zip(block, records, strict=True))

    def mask(self, where: Where) -> np.ndarray:
        """(n,) bool: which items fulfil all conditions.

        Raises:
            UsageError: no conditions, or one on a field that no item has.
        """
        check_where(where)
        fields = {name: self._fields.get(name) or _Field(name) for name in where}
        for block in self._parsed(range(min(field.read for field in fields.values()), len(self))):
            for field in fields.values():
                field.extend(one for one in block if one[0] >= field.read)
        for name, field in fields.items():
            field.read = len(self)
            if not field.codes:
                records = itertools.chain.from_iterable(self._parsed(range(len(self))))
                known = ", ".join(sorted({key for _, record in records for key in record}))
                raise UsageError(f"no item has a field {name!r}", f"fields of the items: {known or 'none'}")
        self._fields |= fields
        masks = [field.mask(where[name], len(self)) for name, field in fields.items()]
        return np.asarray(np.logical_and.reduce(masks))
