"""Classifiers by name: built, fitted, saved and read back."""

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel, Weighting
from diptych.commerce.purchase_intent.models.fitted import FEWEST, FittedModel, fit_model

__all__ = ["FEWEST", "MODELS", "FittedModel", "IntentModel", "Weighting", "fit_model"]
