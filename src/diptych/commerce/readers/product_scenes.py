"""Generated products, as ``diptych data products`` writes them."""

from __future__ import annotations

from pathlib import Path

from diptych.commerce.scenes.products import read_product_scenes
from diptych.core.reading import beginning_of
from diptych.data.readers.declaration import READERS, Reader

_BEGINNING = '{"dataset":"product-scenes"'


def _recognises(path: Path) -> bool:
    return beginning_of(path / "dataset.json", len(_BEGINNING)) == _BEGINNING


READERS.add(
    Reader(
        "product-scenes",
        "generated products with a category tree, as diptych data products writes them",
        _recognises,
        read_product_scenes,
        {},
    )
)
