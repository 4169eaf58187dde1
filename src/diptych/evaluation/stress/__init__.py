"""Stress: an encoder queried with perturbed captions and images over a gallery that stays as it is."""

from diptych.evaluation.stress.comparison import StressComparison, compare_stress, is_stressed
from diptych.evaluation.stress.conditions import open_condition
from diptych.evaluation.stress.result import Example, StressResult, StressRow
from diptych.evaluation.stress.stress import DEFAULT_SEEDS, obstacle, stress
from diptych.evaluation.stress.tables import (
    comparison_summary,
    comparison_tables,
    stress_charts,
    stress_summary,
    stress_tables,
)

__all__ = [
    "DEFAULT_SEEDS",
    "Example",
    "StressComparison",
    "StressResult",
    "StressRow",
    "compare_stress",
    "comparison_summary",
    "comparison_tables",
    "is_stressed",
    "obstacle",
    "open_condition",
    "stress",
    "stress_charts",
    "stress_summary",
    "stress_tables",
]
