"""Scenes: generated pictures with captions whose every fact is known."""

from diptych.data.scenes.facts import (
    DESCRIBABLE,
    FACT_VALUES,
    NEVER_DESCRIBED,
    SHARED,
    TOPICS,
    Described,
    described,
)
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
    "make_scenes",
    "read_scenes",
    "scenes",
]
