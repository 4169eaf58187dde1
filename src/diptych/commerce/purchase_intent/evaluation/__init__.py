"""Evaluate models of purchase intent: cross-validation, measures with intervals, calibration, importance."""

from diptych.commerce.purchase_intent.evaluation.evaluate import Evaluation, evaluate
from diptych.commerce.purchase_intent.evaluation.measures import Platt, fit_platt, log_odds

__all__ = ["Evaluation", "Platt", "evaluate", "fit_platt", "log_odds"]
