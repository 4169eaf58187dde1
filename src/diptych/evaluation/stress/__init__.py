"""Stress: an encoder asked with perturbed queries over a gallery that stays as it is."""

from diptych.evaluation.stress.beside import BesideRow, StressComparison, beside
from diptych.evaluation.stress.beside_sayings import say_beside
from diptych.evaluation.stress.condition import Condition
from diptych.evaluation.stress.obstacles import obstacle
from diptych.evaluation.stress.result import StressResult
from diptych.evaluation.stress.rows import Agreement, ChangedDrop, Example, LengthBin, Preference, StressRow
from diptych.evaluation.stress.sayings import say_row, sayings
from diptych.evaluation.stress.stress import DEFAULT_SEEDS, STRESS_MEASURES, stress

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
