"""Measuring category-to-image retrieval: one ranker, or all models in all settings with several seeds."""

from diptych.commerce.category_to_image.evaluation.choosing import all_models
from diptych.commerce.category_to_image.evaluation.evaluate import evaluate_models
from diptych.commerce.category_to_image.evaluation.given import evaluate_given
from diptych.commerce.category_to_image.evaluation.groups import GroupValue
from diptych.commerce.category_to_image.evaluation.measure import measure_ranker
from diptych.commerce.category_to_image.evaluation.models import TRAINED, modalities_of, printed_name
from diptych.commerce.category_to_image.evaluation.names import (
    CATEGORY_MEASURES,
    PRODUCT_MEASURES,
    PUBLISHED_COLUMNS,
)
from diptych.commerce.category_to_image.evaluation.protocol import GridProtocol
from diptych.commerce.category_to_image.evaluation.result import ModelsEvaluation
from diptych.commerce.category_to_image.evaluation.rows import ModelRow, Value

__all__ = [
    "CATEGORY_MEASURES",
    "PRODUCT_MEASURES",
    "PUBLISHED_COLUMNS",
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
