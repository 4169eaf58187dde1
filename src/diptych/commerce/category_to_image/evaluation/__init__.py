"""Measuring category-to-image retrieval: one ranker, or all models in all settings with several seeds."""

from diptych.commerce.category_to_image.evaluation.evaluate import all_models, evaluate_given, evaluate_models
from diptych.commerce.category_to_image.evaluation.grid import (
    TRAINED,
    GridProtocol,
    modalities_of,
    printed_name,
)
from diptych.commerce.category_to_image.evaluation.measure import (
    CATEGORY_MEASURES,
    PRODUCT_MEASURES,
    measure_ranker,
)
from diptych.commerce.category_to_image.evaluation.result import ModelsEvaluation
from diptych.commerce.category_to_image.evaluation.summary import GroupValue, ModelRow, Value

__all__ = [
    "CATEGORY_MEASURES",
    "PRODUCT_MEASURES",
    "TRAINED",
    "GridProtocol",
    "GroupValue",
    "ModelRow",
    "ModelsEvaluation",
    "Value",
    "all_models",
    "evaluate_given",
    "evaluate_models",
    "measure_ranker",
    "modalities_of",
    "printed_name",
]
