"""Readers of shops' products; an entry point of ``diptych.readers`` adds them."""

from diptych.commerce.readers import feed, xmarket
from diptych.commerce.scenes import products as products

__all__ = ["feed", "xmarket"]
