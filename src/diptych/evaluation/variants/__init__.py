"""Variants: which choice of protocol would explain a printed number."""

from diptych.evaluation.variants.arrays import explore_rows, explore_scores
from diptych.evaluation.variants.axes import AXES, Axis, Choice, Settings
from diptych.evaluation.variants.exploration import TOLERANCE, Change, Exploration, Variant, explain
from diptych.evaluation.variants.explore import explore
from diptych.evaluation.variants.recompute import NotPossible, Recompute, Scored

__all__ = [
    "AXES",
    "TOLERANCE",
    "Axis",
    "Change",
    "Choice",
    "Exploration",
    "NotPossible",
    "Recompute",
    "Scored",
    "Settings",
    "Variant",
    "explain",
    "explore",
    "explore_rows",
    "explore_scores",
]
