"""Scenes: generated images with captions whose every fact is known.

``facts`` says what can be true, ``world`` samples it, ``captions`` tells it, ``draw`` shows it and ``make`` writes a
dataset of it.
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
