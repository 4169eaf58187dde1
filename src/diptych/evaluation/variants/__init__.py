"""Variants: which choice of protocol would explain a printed number."""

from __future__ import annotations

from diptych.evaluation.variants.arrays import explore_rows, explore_scores
from diptych.evaluation.variants.exploration import Change, Exploration, Variant, explain
from diptych.evaluation.variants.explore import TOLERANCE, explore
from diptych.evaluation.variants.recompute import MatrixScores, Recompute, RowScores, Scored
from diptych.evaluation.variants.settings import AXES, Axis, Choice, Inputs, NotPossible, Settings

__all__ = [
    "AXES",
    "TOLERANCE",
    "Axis",
    "Change",
    "Choice",
    "Exploration",
    "Inputs",
    "MatrixScores",
    "NotPossible",
    "Recompute",
    "RowScores",
    "Scored",
    "Settings",
    "Variant",
    "explain",
    "explore",
    "explore_rows",
    "explore_scores",
]
