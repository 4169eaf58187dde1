"""Tables as dataclasses of arrays of one length: some of their rows, and several one after the other."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

Table = TypeVar("Table", bound="Rows")


@dataclass(frozen=True)
class Rows:
    """A table whose every field is an array of as many rows."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self: Table, rows: np.ndarray) -> Table:
        """Some of the rows, by number or by mask."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def but(self: Table, **columns: Any) -> Table:
        """The same rows with other values in some columns: an array, or one value for all."""
        return replace(
            self, **{name: np.broadcast_to(values, len(self)).copy() for name, values in columns.items()}
        )

    @classmethod
    def joined(cls: type[Table], *parts: Table) -> Table:
        """All rows of all parts."""
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})
