"""The splits that the dataset came with."""

from __future__ import annotations

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.splits.declaration import SPLITS, SplitKind, SplitOptions

__all__ = ["GIVEN"]


def _assign(catalogue: Catalogue, options: SplitOptions) -> tuple[list[str], tuple[str, ...]]:
    return list(catalogue.splits), ()


GIVEN = SPLITS.add(
    SplitKind(
        name="given",
        description="the splits that the dataset came with",
        takes=frozenset(),
        assign=_assign,
    )
)
