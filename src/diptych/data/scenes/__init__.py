"""Scenes: generated pictures with captions whose every fact is known.

``facts`` says what can be true, ``world`` samples it, ``captions`` tells it, ``draw`` shows it and ``make`` writes a
dataset of it. ``products`` is a shop of things with pictures of the same shapes and backgrounds, in a category tree;
``shop_log`` is what its visitors do in sessions, and which of these end in a purchase.
"""

from diptych.data.scenes.captions import finer
from diptych.data.scenes.facts import (
    DESCRIBABLE,
    FACT_VALUES,
    NEVER_DESCRIBED,
    SHARED,
    TOPICS,
    Described,
    described,
)
from diptych.data.scenes.make import VERSION, make_scenes, read_scenes, scenes
from diptych.data.scenes.products import make_product_scenes, product_scenes, read_product_scenes
from diptych.data.scenes.shop_log import make_shop_log

__all__ = [
    "DESCRIBABLE",
    "FACT_VALUES",
    "NEVER_DESCRIBED",
    "SHARED",
    "TOPICS",
    "VERSION",
    "Described",
    "described",
    "finer",
    "make_product_scenes",
    "make_scenes",
    "make_shop_log",
    "product_scenes",
    "read_product_scenes",
    "read_scenes",
    "scenes",
]
