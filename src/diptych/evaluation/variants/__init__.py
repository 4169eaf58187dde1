"""Variants: which choice of protocol would explain a printed number.

From scores and a ground truth recompute what was printed under every choice of declared axes, and say which
changes bring it within tolerance: :func:`explore_scores` from score matrices, :func:`explore_rows` from
embeddings, :func:`explore` from several test sets (:class:`RowScores`, :class:`MatrixScores`).
"""

from __future__ import annotations

from diptych.evaluation.variants.arrays import (
    already_cut,
    as_ground_truth,
    as_matching,
    explore_rows,
    explore_scores,
)
from diptych.evaluation.variants.exploration import (
    NEAR,
    Change,
    Exploration,
    Refusal,
    SingleChange,
    Variant,
    explain,
)
from diptych.evaluation.variants.explore import TOLERANCE, explore
from diptych.evaluation.variants.recompute import MatrixScores, Recompute, RowScores, Scored
from diptych.evaluation.variants.settings import AXES, Axis, Choice, Inputs, NotPossible, Settings, Step

__all__ = [
    "AXES",
    "NEAR",
    "TOLERANCE",
    "Axis",
    "Change",
    "Choice",
    "Exploration",
    "Inputs",
    "MatrixScores",
    "NotPossible",
    "Recompute",
    "Refusal",
    "RowScores",
    "Scored",
    "Settings",
    "SingleChange",
    "Step",
    "Variant",
    "already_cut",
    "as_ground_truth",
    "as_matching",
    "explain",
    "explore",
    "explore_rows",
    "explore_scores",
]
