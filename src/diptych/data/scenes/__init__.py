"""Scenes: generated pictures with captions whose every fact is known.

``facts`` says what can be true, ``world`` samples it, ``captions`` (with ``words``) tells it, ``draw``
(with ``outlines`` and ``backgrounds``) shows it, ``make`` (with ``chunks``) writes a dataset of it and
``read`` reads that as a Collection; ``finer`` tells more of the same scenes. The first four take a generator
and nothing else from outside, so another kind of dataset can be made of the same objects and pictures beside
this one.

``shop_log`` is another world: visitors of a shop, what they do in sessions, and which of these end in a purchase.
``products`` is a third: what the shop sells, with pictures of the same shapes and backgrounds, in a category tree.
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
