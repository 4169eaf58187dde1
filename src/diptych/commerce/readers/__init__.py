"""Readers of shops' products; an entry point of ``diptych.readers`` adds them."""

from diptych.commerce.readers import feed, xmarket
from diptych.commerce.scenes import products

__all__ = ["feed", "products", "xmarket"]
