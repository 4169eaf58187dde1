"""Scenes: generated pictures with captions whose every fact is known.

``facts`` says what can be true, ``world`` samples it, ``captions`` (with ``words``) tells it, ``draw``
(with ``outlines`` and ``backgrounds``) shows it, ``make`` (with ``chunks``) writes a dataset of it and
``read`` reads that as a Collection; ``finer`` tells more of the same scenes. The first four take a generator
and nothing else from outside, so another kind of dataset can be made of the same objects and pictures beside
this one.
"""

from diptych.data.scenes.facts import (
    DESCRIBABLE,
    FACT_VALUES,
    NEVER_DESCRIBED,
    SHARED,
    TOPICS,
    Described,
    described,
)
from diptych.data.scenes.finer import finer
from diptych.data.scenes.make import VERSION, make_scenes
from diptych.data.scenes.read import read_scenes, scenes

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
    "make_scenes",
    "read_scenes",
    "scenes",
]
