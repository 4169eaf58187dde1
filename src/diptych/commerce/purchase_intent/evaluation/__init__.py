"""Evaluate models of purchase intent: cross-validation, measures with intervals, calibration, importance."""

from diptych.commerce.purchase_intent.evaluation.calibration import Platt, fit_platt, log_odds
from diptych.commerce.purchase_intent.evaluation.compare import Difference, compare, contrast
from diptych.commerce.purchase_intent.evaluation.evaluate import evaluate
from diptych.commerce.purchase_intent.evaluation.given import GivenScores, evaluate_scores
from diptych.commerce.purchase_intent.evaluation.presets import PRESETS, Preset
from diptych.commerce.purchase_intent.evaluation.result import Evaluation

__all__ = [
    "PRESETS",
    "Difference",
    "Evaluation",
    "GivenScores",
    "Platt",
    "Preset",
    "compare",
    "contrast",
    "evaluate",
    "evaluate_scores",
    "fit_platt",
    "log_odds",
]
