"""A catalogue with other splits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.splits.declaration import SPLITS, SplitOptions
from diptych.core.errors import UnknownNameError


def assign_splits(catalogue: Catalogue, kind: str, **options: Any) -> Catalogue:
    """The same products with the splits that ``kind`` gives them."""
    declared = SPLITS.get(kind)
    for name in options:
        if name not in declared.takes:
            raise UnknownNameError(f"option of the {kind!r} split", name, declared.takes)
    splits, notes = declared.assign(catalogue, SplitOptions(**options))
    return replace(catalogue, splits=splits, notes=(*catalogue.notes, *notes))
