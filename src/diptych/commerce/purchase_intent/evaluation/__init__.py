"""Evaluate models of purchase intent: cross-validation, measures with intervals, calibration, importance."""

from diptych.commerce.purchase_intent.evaluation.cross_validation import Evaluation, evaluate
from diptych.commerce.purchase_intent.models import Calibration, fit_platt, log_odds

__all__ = ["Calibration", "Evaluation", "evaluate", "fit_platt", "log_odds"]
