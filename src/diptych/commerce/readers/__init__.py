"""Readers of shops' products; an entry point of ``diptych.readers`` adds them."""

from diptych.commerce.readers import feed, xmarket
from diptych.commerce.scenes.products import read_product_scenes
from diptych.data.readers.contract import begins, reader

__all__ = ["feed", "xmarket"]

reader(
    "product-scenes",
    "generated products with a category tree, as diptych data products writes them",
    "dataset.json",
    claims=begins('{"dataset":"product-scenes"'),
)(read_product_scenes)
