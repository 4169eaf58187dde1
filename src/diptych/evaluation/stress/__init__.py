"""Stress: an encoder queried with perturbed captions and images over a gallery that stays as it is."""

from diptych.evaluation.stress.comparison import StressComparison, compare_stress, is_stressed
from diptych.evaluation.stress.conditions import open_condition
from diptych.evaluation.stress.result import Example, StressResult, StressRow
from diptych.evaluation.stress.stress import DEFAULT_SEEDS, obstacle, stress

__all__ = [
    "DEFAULT_SEEDS",
    "Example",
    "StressComparison",
    "StressResult",
    "StressRow",
    "compare_stress",
    "is_stressed",
    "obstacle",
    "open_condition",
    "stress",
]
