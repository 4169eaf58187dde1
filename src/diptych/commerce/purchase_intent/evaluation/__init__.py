"""Evaluate models of purchase intent: cross-validation, measures with intervals, calibration, importance."""

from diptych.commerce.purchase_intent.evaluation.evaluate import GivenScores, evaluate, evaluate_scores
from diptych.commerce.purchase_intent.evaluation.measures import Platt, fit_platt, log_odds
from diptych.commerce.purchase_intent.evaluation.result import Evaluation

__all__ = ["Evaluation", "GivenScores", "Platt", "evaluate", "evaluate_scores", "fit_platt", "log_odds"]
