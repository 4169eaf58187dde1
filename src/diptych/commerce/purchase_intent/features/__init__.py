"""Features of a session after k pages: thesis Table 6.7."""

from diptych.commerce.purchase_intent.features.fitting import FEATURES, Feature, FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.make import make_features
from diptych.commerce.purchase_intent.features.table import FeatureTable, open_features
from diptych.commerce.purchase_intent.options import FeatureOptions

__all__ = [
    "FEATURES",
    "Feature",
    "FeatureOptions",
    "FeatureTable",
    "FittedFeatures",
    "fit_features",
    "make_features",
    "open_features",
]
