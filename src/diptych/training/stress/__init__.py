"""Stress: an encoder asked with perturbed queries over a gallery that stays as it is."""

from diptych.training.stress.beside import BesideRow, StressComparison, beside
from diptych.training.stress.beside_sayings import say_beside
from diptych.training.stress.condition import Condition
from diptych.training.stress.obstacles import obstacle
from diptych.training.stress.result import StressResult
from diptych.training.stress.rows import Agreement, ChangedDrop, Example, LengthBin, Preference, StressRow
from diptych.training.stress.sayings import say_row, sayings
from diptych.training.stress.stress import DEFAULT_SEEDS, STRESS_MEASURES, stress

__all__ = [
    "DEFAULT_SEEDS",
    "STRESS_MEASURES",
    "Agreement",
    "BesideRow",
    "ChangedDrop",
    "Condition",
    "Example",
    "LengthBin",
    "Preference",
    "StressComparison",
    "StressResult",
    "StressRow",
    "beside",
    "obstacle",
    "say_beside",
    "say_row",
    "sayings",
    "stress",
]
