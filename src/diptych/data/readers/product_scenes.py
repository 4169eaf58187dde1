"""The embedded shop, as ``diptych scenes --products`` writes it."""

from __future__ import annotations

from pathlib import Path

from diptych.core.reading import beginning_of
from diptych.data.readers.declaration import READERS, Reader
from diptych.data.scenes import read_product_scenes

_BEGINNING = '{"dataset":"product-scenes"'


def _recognises(path: Path) -> bool:
    return beginning_of(path / "dataset.json", len(_BEGINNING)) == _BEGINNING


READERS.add(
    Reader(
        "product-scenes",
        "generated products with a category tree, as diptych scenes --products writes them",
        _recognises,
        read_product_scenes,
        {},
    )
)
