"""Generated products, as ``diptych data products`` writes them."""

from __future__ import annotations

from pathlib import Path

from diptych.commerce.scenes.products import read_product_scenes
from diptych.data.collection import Collection
from diptych.data.readers.contract import begins, reader


@reader(
    "product-scenes",
    "generated products with a category tree, as diptych data products writes them",
    "dataset.json",
    claims=begins('{"dataset":"product-scenes"'),
)
def read(path: Path | str) -> Collection:
    """Read generated products."""
    return read_product_scenes(path)
