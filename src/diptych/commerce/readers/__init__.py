"""Readers of shops' products; an entry point adds them to those of ``diptych.data.readers``."""

from diptych.commerce.readers import feed, product_scenes, xmarket

__all__ = ["feed", "product_scenes", "xmarket"]
