"""Generated products, as ``diptych data products`` writes them."""

from __future__ import annotations

from pathlib import Path

from diptych.commerce.scenes.products import read_product_scenes
from diptych.core.reading import beginning_of
from diptych.data.collection import Collection
from diptych.data.readers.contract import looks, reader

_BEGINNING = '{"dataset":"product-scenes"'


@reader(
    "product-scenes",
    "generated products with a category tree, as diptych data products writes them",
    "dataset.json",
    claims=looks(lambda file: beginning_of(file, len(_BEGINNING)) == _BEGINNING),
)
def read(path: Path | str) -> Collection:
    """Read generated products."""
    return read_product_scenes(path)
