"""Stress: an encoder queried with perturbed captions and images over a gallery that stays as it is."""

from diptych.evaluation.stress.comparison import ComparedRow, StressComparison, compare_stress, is_stressed
from diptych.evaluation.stress.conditions import Condition, open_condition
from diptych.evaluation.stress.result import (
    Agreement,
    ChangedDrop,
    Example,
    LengthBin,
    Preference,
    StressResult,
    StressRow,
)
from diptych.evaluation.stress.stress import DEFAULT_SEEDS, STRESS_MEASURES, obstacle, stress
from diptych.evaluation.stress.tables import (
    comparison_summary,
    comparison_tables,
    stress_charts,
    stress_summary,
    stress_tables,
)

__all__ = [
    "DEFAULT_SEEDS",
    "STRESS_MEASURES",
    "Agreement",
    "ChangedDrop",
    "ComparedRow",
    "Condition",
    "Example",
    "LengthBin",
    "Preference",
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
